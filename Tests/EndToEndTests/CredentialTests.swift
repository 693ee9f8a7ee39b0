import Glibc
import StateTestSupport
import Testing

/// `statectl credential`: what systemd gets for `LoadCredential=` from a socket.
struct CredentialTests {
    private let daemon: Daemon

    init() throws {
        daemon = try Daemon()
        let result = try Statectl.run(daemon, "set", "credentials/a.service/password", "p\nq")
        try #require(result.exitCode == 0)
    }

    /// Runs it with a connection as its standard input whose peer has this abstract name.
    private func ask(as name: String, prefix: String = "credentials/") throws -> CommandResult {
        let path = daemon.directory.path(of: "asked")
        defer { unlink(path) }
        let listener = try RawSocket.bound(to: path)
        try #require(listen(listener.descriptor, 1) == 0)
        let peer = try name.isEmpty ? .unbound() : RawSocket.bound(to: "@\(name)")
        try #require(peer.connect(to: path))
        let accepted = accept(listener.descriptor, nil, nil)
        defer { close(accepted) }
        let program = "\(builtProgram("statectl")) --socket \(daemon.socketPath)"
        return try runCommand(
            "bash",
            ["-c", "exec \(program) credential \(prefix) <&\(accepted)"]
        )
    }

    @Test func `the unit and the name in the peer's name say which value it is`() throws {
        let result = try ask(as: "4f1d-\(getpid())/unit/a.service/password")
        #expect(result.exitCode == 0, "\(result)")
        #expect(result.text == "p\nq")
    }

    @Test func `an absent key is nothing, and said`() throws {
        let result = try ask(as: "4f1e-\(getpid())/unit/b.service/password")
        #expect(result.exitCode == 1)
        #expect(result.output.isEmpty)
        #expect(result.errorText.contains("'credentials/b.service/password'"))
    }

    @Test(arguments: [
        "", "x", "1/unit/a.service", "1/unit/a.service/", "1/unit/a/b/c", "1/other/a/b",
    ])
    func `another peer gets nothing`(name: String) throws {
        let result = try ask(as: name.isEmpty ? "" : "\(name)")
        #expect(result.exitCode == 2, "\(result)")
        #expect(result.output.isEmpty)
    }

    @Test func `a prefix ends in a slash`() throws {
        let result = try ask(as: "4f1f-\(getpid())/unit/a.service/password", prefix: "credentials")
        #expect(result.exitCode == 2)
        #expect(result.errorText.contains("prefix"))
    }
}
