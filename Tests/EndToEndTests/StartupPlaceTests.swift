import Glibc
import StateTestSupport
import Testing

/// Where a user who says nothing is served.
///
/// Where root runs the tests, the daemon runs as another user.
struct StartupPlaceTests {
    /// Somebody who owns nothing on the machine.
    private static let stranger: uid_t = 65_534

    let scratch: TemporaryDirectory
    let home: String

    init() throws {
        scratch = try TemporaryDirectory()
        chmod(scratch.path, 0o755)
        home = scratch.path(of: "home")
        try makeDirectory(home)
    }

    /// A directory that belongs to the user who runs the daemon.
    private func makeDirectory(_ path: String) throws {
        try #require(mkdir(path, 0o755) == 0)
        if geteuid() == 0 { try #require(chown(path, Self.stranger, Self.stranger) == 0) }
    }

    /// The daemon as a user without privileges, behind the programs of `prefix`.
    private func start(
        _ arguments: String...,
        environment: [String: String],
        behind prefix: [String] = []
    ) throws -> Program {
        // A copy, for the stranger may not be let in where the original is. Made by a process of its own: a
        // file cannot be run while anybody has it open for writing, a child of another test included.
        let copy = scratch.path(of: "stated")
        let copying = try runCommand("cp", [builtProgram("stated"), copy])
        try #require(copying.exitCode == 0, "\(copying)")
        let id = "\(Self.stranger)"
        let change = ["setpriv", "--reuid", id, "--regid", id, "--clear-groups"]
        return try Program(
            (geteuid() == 0 ? change : []) + prefix + [copy] + arguments,
            environment: environment
        )
    }

    /// The directory that systemd makes for a session of the user who runs the daemon.
    private static let session = "/run/user/\(geteuid() == 0 ? stranger : geteuid())"

    @Test(.enabled(if: access(session, F_OK) != 0, "the user has a session"))
    func `with HOME alone, socket and values are below .local/state`() throws {
        let daemon = try start(environment: ["HOME": home])
        try daemon.waitForErrors(containing: " serves ")
        let state = home + "/.local/state/stated"
        try RawSocket.connected(to: state + "/stated.sock").ask("PING", awaiting: "+PONG\r\n")
        #expect(daemon.errors.contains(" from \(state), loaded in "))
        #expect(fileStatus(home + "/.local")?.st_mode == S_IFDIR | 0o700)
        #expect(fileStatus(state)?.st_mode == S_IFDIR | 0o700)
        #expect(fileStatus(state + "/stated.sock")?.st_mode == S_IFSOCK | 0o600)
        #expect(fileStatus(state + "/stated.db") != nil)
    }

    @Test func `the runtime directory has the socket, the state directory the values`() throws {
        let (runtime, state) = (scratch.path(of: "runtime"), scratch.path(of: "state"))
        try makeDirectory(runtime)
        try makeDirectory(state)
        let daemon = try start(environment: [
            "HOME": home, "XDG_RUNTIME_DIR": runtime, "XDG_STATE_HOME": state,
        ])
        try daemon.waitForErrors(containing: " serves ")
        try RawSocket.connected(to: runtime + "/stated/stated.sock")
            .ask("PING", awaiting: "+PONG\r\n")
        #expect(fileStatus(state + "/stated/stated.db") != nil)
        #expect(fileStatus(home + "/.local") == nil)
    }

    @Test func `STATE_DIRECTORY of the service manager has the values`() throws {
        let given = scratch.path(of: "given")
        try makeDirectory(given)
        let daemon = try start(environment: [
            "HOME": home, "XDG_RUNTIME_DIR": given, "STATE_DIRECTORY": given + ":/x",
        ])
        try daemon.waitForErrors(containing: " serves ")
        #expect(fileStatus(given + "/stated.db") != nil)
    }

    @Test func `without a home it says what to say instead`() throws {
        try makeDirectory(scratch.path(of: "own"))
        let program = try start("--socket", scratch.path(of: "own/s.sock"), environment: [:])
        #expect(try program.end() == 2)
        #expect(program.errors.contains("set HOME or use --data"))
    }

    @Test func `fewer open files than clients need is a warning, and it serves`() throws {
        let daemon = try start(
            environment: ["HOME": home, "XDG_RUNTIME_DIR": home],
            behind: ["prlimit", "--nofile=512:512"]
        )
        try daemon.waitForErrors(containing: " serves ")
        let warning =
            "stated: warning: at most 448 clients instead of 10000: the limit of open files is 512; raise "
        #expect(daemon.errors.contains(warning))
        try RawSocket.connected(to: home + "/stated/stated.sock")
            .ask("PING", awaiting: "+PONG\r\n")
    }

    @Test func `a socket that a daemon left before it had a mode is stale`() throws {
        let runtime = scratch.path(of: "runtime")
        try makeDirectory(runtime)
        let path = runtime + "/s"
        try #require(mknod(path, S_IFSOCK, 0) == 0 && chmod(path, 0) == 0)
        if geteuid() == 0 { try #require(chown(path, Self.stranger, Self.stranger) == 0) }
        let daemon = try start("--socket", path, "--memory", environment: ["HOME": home])
        try daemon.waitForErrors(containing: " serves ")
        #expect(fileStatus(path)?.st_mode == S_IFSOCK | 0o600)
    }
}
