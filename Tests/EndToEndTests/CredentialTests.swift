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
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let peer = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { for descriptor in [listener, peer] { close(descriptor) } }
        let path = daemon.directory.path(of: "asked")
        defer { unlink(path) }
        try bind(listener, Array(path.utf8))
        try #require(listen(listener, 1) == 0)
        if !name.isEmpty { try bind(peer, [0] + Array(name.utf8)) }
        try address(Array(path.utf8)) { try #require(connect(peer, $0, $1) == 0) }
        let accepted = accept(listener, nil, nil)
        defer { close(accepted) }
        let program = "\(builtProgram("statectl")) --socket \(daemon.socketPath)"
        return try runCommand(
            "/bin/bash",
            ["-c", "exec \(program) credential \(prefix) <&\(accepted)"]
        )
    }

    private func bind(_ descriptor: Int32, _ name: [UInt8]) throws {
        try address(name) { try #require(Glibc.bind(descriptor, $0, $1) == 0) }
    }

    private func address(
        _ name: [UInt8],
        _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Void
    ) throws {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let place = try #require(MemoryLayout<sockaddr_un>.offset(of: \.sun_path))
        let size = socklen_t(place + name.count)
        try withUnsafePointer(to: &address) {
            try $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { try body($0, size) }
        }
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
