import StateTestSupport
import StateWire
import Testing

/// The memory that the daemon takes for clients that ask for much and read nothing.
struct ClientMemoryTests {
    private let directory: TemporaryDirectory
    private let daemon: Daemon

    init() throws {
        directory = try TemporaryDirectory()
        try directory.write("{ limits: { memoryBytes: '64MiB' } }", to: "stated.json5")
        daemon = try Daemon("--socket-mode", "0666", "--config", directory.path(of: "stated.json5"))
    }

    /// The most memory that it has had, in MiB.
    private func peak() throws -> Int {
        let status = String(decoding: try readFile("/proc/\(daemon.pid)/status"), as: UTF8.self)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
        return try #require(Int(line.filter(\.isNumber))) >> 10
    }

    @Test(.enabled(if: TestUser.areThere))
    func `stays within its limit, and another user is served`() throws {
        let user = try #require(TestUser(TestUser.names[0]))
        let words = "chmod"
        #expect(try runCommand(words, ["755", daemon.directory.path]).exitCode == 0)
        let victim = try Peer(daemon.socketPath)
        let value = String(repeating: "v", count: 1 << 20)
        for round in 0..<2 {
            for number in 0..<20 {
                #expect(try victim.ask("SET big/\(number) \(value)") == .simple("OK"), "\(round)")
            }
        }
        let before = try peak()
        // 1.2 GiB, if all were answered.
        let abusers = try (0..<60).map { number in
            let peer = Peer(try user.connect(to: daemon.socketPath))
            let command = [
                "STATE.LIST big/", "STATE.HISTORY big/1",
                "MGET" + (0..<20).map { " big/\($0)" }.joined(),
            ]
            try? peer.send(command[number % 3])
            if number % 10 == 0 {
                #expect(try victim.ask("PING") == .simple("PONG"))
                #expect(try victim.ask("GET big/1").textValue?.utf8.count == 1 << 20)
            }
            return peer
        }
        #expect(
            try victim.ask("SET large \(String(repeating: "v", count: 4 << 20))") == .simple("OK")
        )
        #expect(try victim.ask("GET large").textValue?.utf8.count == 4 << 20)
        #expect(try victim.ask("STATE.LIST big/").elements?.count == 20)
        // The limit, and what is there twice while one reply is made.
        let grown = try peak() - before
        #expect(grown < 64 + 64 + 32, "\(grown) MiB")
        for abuser in abusers { abuser.socket.end() }
    }
}
