import Glibc
package import StateModel

/// Where the daemon's socket is, for those who are told nothing and for those who are.
///
/// ```
/// --socket PATH                                 told
/// $STATED_SOCKET                                told
/// $XDG_RUNTIME_DIR/stated/stated.sock           a user's, where the directory is the user's own
/// $XDG_STATE_HOME/stated/stated.sock            a user's; ~/.local/state where the variable is not set
/// /run/stated/stated.sock                       root's, and the last resort of everybody
/// ```
///
/// Who is told a path takes that one and no other. The daemon serves the first that is its own; a client
/// takes the first that exists. All of it is a function of the arguments, so that a table can test it.
package enum SocketLocation {
    /// The longest path that `sockaddr_un` holds with its closing zero.
    package static let pathByteLimit = 107

    /// The socket of the machine's daemon.
    package static let systemPath = "/run/stated/stated.sock"

    /// What stands at a path.
    package enum Presence: Hashable, Sendable {
        /// Nothing.
        case absent
        /// Something of this uid.
        case owned(by: UInt32)
        /// Something may be there, but a directory on the way does not let the caller look.
        case hidden
    }

    /// The path that a client connects to.
    ///
    /// - Parameters:
    ///   - option: What `--socket` said.
    ///   - environment: The value of a variable, nil where it is not set.
    ///   - uid: The effective user.
    ///   - presence: What stands at a path; asked only where there is a choice.
    /// - Returns: A path that exists where one does, else the first that was tried.
    /// - Throws: ``StateError/Code/err`` for a path that no socket can have.
    package static func clientPath(
        option: String?,
        environment: (String) -> String?,
        uid: UInt32,
        presence: (String) -> Presence
    ) throws(StateError) -> String {
        if let told = told(option, environment) { return try checked(told) }
        let candidates = candidates(environment: environment, uid: uid, presence: presence)
        guard candidates.count > 1 else { return try checked(candidates[0]) }
        let existing = candidates.first { presence($0) != .absent }
        return try checked(existing ?? candidates[0])
    }

    /// The path that the daemon serves.
    ///
    /// The parameters are those of ``clientPath(option:environment:uid:presence:)``.
    ///
    /// - Throws: ``StateError/Code/err`` for a path that no socket can have.
    package static func serverPath(
        option: String?,
        environment: (String) -> String?,
        uid: UInt32,
        presence: (String) -> Presence
    ) throws(StateError) -> String {
        if let told = told(option, environment) { return try checked(told) }
        return try checked(candidates(environment: environment, uid: uid, presence: presence)[0])
    }

    /// The paths of those who are told none, best first; never empty.
    package static func candidates(
        environment: (String) -> String?,
        uid: UInt32,
        presence: (String) -> Presence
    ) -> [String] {
        guard uid != 0 else { return [systemPath] }
        var paths: [String] = []
        if let runtime = directory("XDG_RUNTIME_DIR", environment),
            presence(runtime) == .owned(by: uid)
        {
            paths.append(runtime + "/stated/stated.sock")
        }
        if let state = directory("XDG_STATE_HOME", environment) {
            paths.append(state + "/stated/stated.sock")
        } else if let home = directory("HOME", environment) {
            paths.append(home + "/.local/state/stated/stated.sock")
        }
        return paths + [systemPath]
    }

    /// A variable of this process.
    package static func processEnvironment(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }
    }

    /// What stands at `path` on this machine.
    package static func filePresence(_ path: String) -> Presence {
        var status = stat()
        if stat(path, &status) == 0 { return .owned(by: status.st_uid) }
        return errno == ENOENT || errno == ENOTDIR ? .absent : .hidden
    }

    private static func told(_ option: String?, _ environment: (String) -> String?) -> String? {
        if let option { return option }
        guard let variable = environment("STATED_SOCKET"), !variable.isEmpty else { return nil }
        return variable
    }

    /// A directory that a variable names. A relative one is ignored:
    /// https://specifications.freedesktop.org/basedir-spec/latest/#variables
    private static func directory(
        _ variable: String,
        _ environment: (String) -> String?
    ) -> String? {
        guard let path = environment(variable), path.utf8.first == UInt8(ascii: "/") else {
            return nil
        }
        return path
    }

    private static func checked(_ path: String) throws(StateError) -> String {
        guard !path.isEmpty else { throw StateError(.err, "the path of the socket is empty") }
        let count = path.utf8.count
        guard count <= pathByteLimit else {
            throw StateError(
                .err,
                "socket path '\(path)' has \(count) bytes; the limit is \(pathByteLimit)"
            )
        }
        return path
    }
}
