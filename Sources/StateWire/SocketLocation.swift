package import StateModel
import StatePlatform

/// Where the daemon's socket is.
///
/// ```
/// --socket PATH                         given
/// $STATED_SOCKET                        given
/// $XDG_RUNTIME_DIR/stated/stated.sock   of a user, if the directory is the user's own
/// $XDG_STATE_HOME/stated/stated.sock    of a user; ~/.local/state if the variable is not set
/// /run/stated/stated.sock               of root, and the last choice of everybody
/// ```
///
/// A given path is used in any case. Otherwise the daemon serves the first path that is its own,
/// and a client takes the first that exists. The result depends only on the fields, so that a table
/// can test it.
package struct SocketLocation {
    /// The longest path that `sockaddr_un` holds with its closing zero.
    package static let pathByteLimit = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    /// The socket of the machine's daemon.
    private static let systemPath = "/run/stated/stated.sock"

    /// What exists at a path.
    package enum Presence: Hashable, Sendable {
        /// Nothing.
        case absent
        /// Something of this uid.
        case owned(by: UInt32)
        /// Unknown: the caller has no permission to search a directory of the path.
        case hidden
    }

    /// The value of a variable, nil if it is not set.
    private let environment: (String) -> String?
    /// The effective user.
    private let uid: UInt32
    /// What exists at a path; called only if there is a choice.
    private let presence: (String) -> Presence

    package init(
        environment: @escaping (String) -> String?,
        uid: UInt32,
        presence: @escaping (String) -> Presence
    ) {
        self.environment = environment
        self.uid = uid
        self.presence = presence
    }

    /// For the environment and the user of this process.
    package static var process: SocketLocation {
        SocketLocation(
            environment: { getenv($0).map { String(cString: $0) } },
            uid: geteuid(),
            presence: { path in
                var status = stat()
                if stat(path, &status) == 0 { return .owned(by: status.st_uid) }
                return errno == ENOENT || errno == ENOTDIR ? .absent : .hidden
            }
        )
    }

    /// The path that a client connects to.
    ///
    /// - Parameter option: The value of `--socket`.
    /// - Returns: A path that exists if one does, else the first that was tried.
    /// - Throws: ``StateError/Code/err`` for a path that is empty or too long for a socket.
    package func clientPath(option: String?) throws(StateError) -> String {
        if let given = given(option) { return try checked(given) }
        let candidates = candidates
        guard candidates.count > 1 else { return try checked(candidates[0]) }
        let existing = candidates.first { presence($0) != .absent }
        return try checked(existing ?? candidates[0])
    }

    /// Whose daemon it is.
    package enum Daemon: Hashable, Sendable {
        /// The machine's.
        case system
        /// The user's own.
        case user
    }

    /// The path that a client connects to if it names whose daemon it means.
    ///
    /// - Returns: Of the user's paths one that exists if one does, else the first.
    /// - Throws: ``StateError/Code/err`` if the environment names no directory of the user.
    package func clientPath(of daemon: Daemon) throws(StateError) -> String {
        guard daemon == .user else { return SocketLocation.systemPath }
        let paths = userPaths
        guard let first = paths.first else {
            throw StateError(
                .err,
                "none of $XDG_RUNTIME_DIR, $XDG_STATE_HOME and $HOME names a directory of this user"
            )
        }
        return try checked(paths.first { presence($0) != .absent } ?? first)
    }

    /// The path that the daemon serves, as ``clientPath(option:)`` but whatever exists.
    package func serverPath(option: String?) throws(StateError) -> String {
        try checked(given(option) ?? candidates[0])
    }

    /// The default paths, best first; never empty.
    private var candidates: [String] {
        uid == 0 ? [SocketLocation.systemPath] : userPaths + [SocketLocation.systemPath]
    }

    /// Where a user's own daemon is, best first.
    private var userPaths: [String] {
        var paths: [String] = []
        if let runtime = directory("XDG_RUNTIME_DIR"), presence(runtime) == .owned(by: uid) {
            paths.append(runtime + "/stated/stated.sock")
        }
        let fallback = directory("HOME").map { $0 + "/.local/state" }
        if let state = directory("XDG_STATE_HOME") ?? fallback {
            paths.append(state + "/stated/stated.sock")
        }
        return paths
    }

    private func given(_ option: String?) -> String? {
        if let option { return option }
        return environment("STATED_SOCKET").flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The directory in a variable. A relative one is ignored:
    /// https://specifications.freedesktop.org/basedir-spec/latest/#variables
    private func directory(_ variable: String) -> String? {
        environment(variable).flatMap { $0.utf8.first == UInt8(ascii: "/") ? $0 : nil }
    }

    private func checked(_ path: String) throws(StateError) -> String {
        guard !path.isEmpty else { throw StateError(.err, "the path of the socket is empty") }
        let (count, limit) = (path.utf8.count, SocketLocation.pathByteLimit)
        guard count <= limit else {
            throw StateError(
                .err,
                "socket path '\(path)' has \(count) bytes; the limit is \(limit)"
            )
        }
        return path
    }
}
