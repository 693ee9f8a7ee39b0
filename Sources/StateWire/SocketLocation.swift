package import StateModel
import StatePlatform
import StateSystem

/// Where the daemon's socket is.
///
/// ```
/// --socket PATH                         given
/// $STATED_SOCKET                        given
/// $XDG_RUNTIME_DIR/stated/stated.sock   of a user, if the directory is the user's own; else
/// /run/user/UID/stated/stated.sock      the same, for cron, su and others without the variable
/// $XDG_STATE_HOME/stated/stated.sock    of a user; ~/.local/state if the variable is not set
/// /run/stated/stated.sock               of root, and the last choice of everybody
/// ```
///
/// A given path is used in any case. Otherwise the daemon serves the first path that is its own,
/// and a client takes the first that exists. The result depends only on the fields, so that a table
/// can test it.
///
/// A socket that refuses connections belonged to a daemon that was killed. A client then goes on in
/// the same order, but not from a user's socket to the machine's: a change would go to another
/// store, and nobody would notice. For the same reason it does not take the machine's daemon if
/// the user's own runs and its socket is not found.
package struct SocketLocation {
    /// The longest path that `sockaddr_un` holds with its closing zero.
    package static let pathByteLimit = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    /// The socket of the machine's daemon.
    private static let systemPath = "/run/stated/stated.sock"

    /// What exists at a path.
    package enum Presence: Hashable, Sendable {
        /// Nothing, or a link that neither this user nor root has made.
        case absent
        /// Something of this uid.
        case owned(by: UInt32)
        /// Unknown: the caller has no permission to search a directory of the path.
        case hidden
    }

    /// A socket of a client.
    package struct Choice: Sendable {
        package let path: String
        /// Why it is this one, in words that docs/operations.md lists.
        package let reason: String
        /// Where the choice goes on if nobody serves it; empty if the user has named it.
        fileprivate var others: [Choice] = []
        /// Whether it is the machine's because no socket of this user was found.
        fileprivate var isLastResort = false

        fileprivate init(_ path: String, _ reason: String) {
            (self.path, self.reason) = (path, reason)
        }
    }

    /// The value of a variable, nil if it is not set.
    private let environment: (String) -> String?
    /// The effective user.
    private let uid: UInt32
    /// What exists at a path; called only if there is a choice.
    private let presence: (String) -> Presence
    /// The process that has locked a file, 0 if only that is known, nil if none has; called only
    /// before a last resort.
    private let owner: (String) -> Int32?

    package init(
        environment: @escaping (String) -> String?,
        uid: UInt32,
        presence: @escaping (String) -> Presence,
        owner: @escaping (String) -> Int32? = { _ in nil }
    ) {
        self.environment = environment
        self.uid = uid
        self.presence = presence
        self.owner = owner
    }

    /// For the environment and the user of this process.
    package static var process: SocketLocation {
        let uid = geteuid()
        return SocketLocation(
            environment: { getenv($0).map { String(cString: $0) } },
            uid: uid,
            presence: { path in
                var status = stat()
                var code = lstat(path, &status)
                if code == 0, status.st_mode & S_IFMT == S_IFLNK {
                    guard status.st_uid == uid || status.st_uid == 0 else { return .absent }
                    code = stat(path, &status)
                }
                if code == 0 { return .owned(by: status.st_uid) }
                return errno == ENOENT || errno == ENOTDIR ? .absent : .hidden
            },
            owner: FileLocks.owner(of:)
        )
    }

    // MARK: Clients

    /// The socket that a client connects to.
    ///
    /// - Parameter option: The value of `--socket`.
    /// - Returns: One that exists if one does, else the first that was tried.
    /// - Throws: ``StateError/Code/err`` for a path that is empty or too long for a socket.
    package func clientChoice(option: String?) throws(StateError) -> Choice {
        if let option { return Choice(try checked(option), "--socket") }
        if let variable { return Choice(try checked(variable), "$STATED_SOCKET") }
        guard uid != 0 else {
            return Choice(SocketLocation.systemPath, "machine: this user is root")
        }
        var machine = Choice(SocketLocation.systemPath, "machine: no socket of this user exists")
        machine.isLastResort = true
        return try first(of: userChoices + [machine])
    }

    /// Whose daemon it is.
    package enum Daemon: Hashable, Sendable {
        /// The machine's.
        case system
        /// The user's own.
        case user
    }

    /// The socket that a client connects to if it names whose daemon it means.
    ///
    /// - Returns: Of the user's sockets one that exists if one does, else the first.
    /// - Throws: ``StateError/Code/err`` if the environment names no directory of the user.
    package func clientChoice(of daemon: Daemon) throws(StateError) -> Choice {
        guard daemon == .user else { return Choice(SocketLocation.systemPath, "--system") }
        let choices = userChoices
        guard !choices.isEmpty else {
            throw StateError(
                .err,
                "none of $XDG_RUNTIME_DIR, \(sessionDirectory), $XDG_STATE_HOME and $HOME names a "
                    + "directory of this user"
            )
        }
        return try first(of: choices)
    }

    private func first(of choices: [Choice]) throws(StateError) -> Choice {
        let index = choices.firstIndex(where: mayExist) ?? 0
        var choice = Choice(try checked(choices[index].path), choices[index].reason)
        choice.others = Array(choices[(index + 1)...])
        choice.isLastResort = choices[index].isLastResort
        return choice
    }

    /// Whether there may be a socket; for a user's own not if it is somebody else's, of whom su
    /// without `-` leaves `$XDG_STATE_HOME`.
    private func mayExist(_ choice: Choice) -> Bool {
        switch presence(choice.path) {
        case .absent: false
        case .owned(let owner): choice.isLastResort || owner == uid
        case .hidden: true
        }
    }

    /// Connects to a socket, or to the next one if nobody serves it.
    ///
    /// - Parameters:
    ///   - choice: Becomes the socket that was tried last. Once connected it stays that one: a
    ///     connection that is restored must not be to another store.
    ///   - attempt: Connects to a path; returns 0 or the error number.
    /// - Returns: The result of the last attempt.
    /// - Throws: ``StateError/Code/unreachable``, naming both daemons, if only the machine's is left
    ///   and this user has one, too.
    package func connect(
        to choice: inout Choice,
        _ attempt: (String) -> Int32
    ) throws(StateError) -> Int32 {
        try checkLastResort(choice)
        var code = attempt(choice.path)
        while code == ECONNREFUSED, choice.others.contains(where: mayExist) {
            let next = try first(of: choice.others)
            guard !next.isLastResort else {
                throw StateError(
                    .unreachable,
                    "no daemon serves \(choice.path): the one of this user was killed; start it "
                        + "again with stated, or use the one of the machine with --system "
                        + "(\(next.path))"
                )
            }
            choice = next
            code = attempt(choice.path)
        }
        if code == 0 { (choice.others, choice.isLastResort) = ([], false) }
        return code
    }

    /// Refuses the machine's daemon if the user's own runs: it has the values of this user, which
    /// other shells of the same user may reach.
    private func checkLastResort(_ choice: Choice) throws(StateError) {
        guard choice.isLastResort, let directory = stateDirectory,
            let pid = owner(directory + "/stated/lock")
        else { return }
        let process = pid > 0 ? " (process \(pid))" : ""
        throw StateError(
            .unreachable,
            "a daemon of this user\(process) serves \(directory)/stated, but its socket is not "
                + "found: set $XDG_RUNTIME_DIR as it was when it started, or $STATED_SOCKET, or use "
                + "the one of the machine with --system (\(choice.path))"
        )
    }

    // MARK: The daemon

    /// The path that the daemon serves, as ``clientChoice(option:)`` but whatever exists.
    package func serverPath(option: String?) throws(StateError) -> String {
        let own = uid == 0 ? nil : userChoices.first?.path
        return try checked(option ?? variable ?? own ?? SocketLocation.systemPath)
    }

    // MARK: Directories

    /// Where a user's own daemon is, best first.
    private var userChoices: [Choice] {
        var choices: [Choice] = []
        func add(_ directory: String, _ reason: String) {
            choices.append(Choice(directory + "/stated/stated.sock", "user: " + reason))
        }
        if let runtime = directory("XDG_RUNTIME_DIR"), presence(runtime) == .owned(by: uid) {
            add(runtime, "$XDG_RUNTIME_DIR")
        } else if uid != 0, presence(sessionDirectory) == .owned(by: uid) {
            let reason = ", as $XDG_RUNTIME_DIR names no directory of this user"
            add(sessionDirectory, sessionDirectory + reason)
        }
        if let stateDirectory {
            let isNamed = directory("XDG_STATE_HOME") != nil
            add(stateDirectory, isNamed ? "$XDG_STATE_HOME" : "~/.local/state")
        }
        return choices
    }

    // What systemd makes for each user who has a session, or lingers:
    // https://www.freedesktop.org/software/systemd/man/latest/pam_systemd.html
    private var sessionDirectory: String { "/run/user/\(uid)" }

    private var stateDirectory: String? {
        directory("XDG_STATE_HOME") ?? directory("HOME").map { $0 + "/.local/state" }
    }

    private var variable: String? {
        environment("STATED_SOCKET").flatMap { $0.isEmpty ? nil : $0 }
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
