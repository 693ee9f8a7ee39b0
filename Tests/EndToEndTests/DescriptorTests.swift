import StateTestSupport
import StateWire
import Testing

/// A daemon that has no more file descriptors.
struct DescriptorTests {
    private let daemon: Daemon

    init() throws {
        daemon = try Daemon("--memory")
        // It raises its limit before it serves.
        #expect(try Peer(daemon.socketPath).ask("PING") == .simple("PONG"))
    }

    /// Bounds what the daemon may have open, without restarting it.
    private func allow(_ count: Int) throws {
        let result = try runCommand("prlimit", ["--pid", String(daemon.pid), "--nofile=\(count):"])
        #expect(result.exitCode == 0, "\(result)")
    }

    /// How many descriptors it has without a gap.
    private func count() throws -> Int {
        let list = try runCommand("ls", ["/proc/\(daemon.pid)/fd"]).lines
        let taken = Set(list.compactMap { Int($0) })
        return try #require((0...taken.count).first { !taken.contains($0) })
    }

    @Test func `without descriptors and without clients it waits, and serves once there are some`()
        throws
    {
        try allow(3)
        let peer = try Peer(daemon.socketPath)
        try peer.send("PING")
        let isLogged = eventually { daemon.log.contains("no more file descriptors") }
        try #require(isLogged, "nothing is logged: \(daemon.log)")
        // No event tells of it.
        try allow(1_000)
        #expect(try peer.next() == .simple("PONG"))
        let count = daemon.log.split(separator: "\n").count {
            $0.contains("no more file descriptors")
        }
        #expect(count == 1)
    }

    @Test
    func
        `while there are none, new clients are refused by name, and those that are there are served`()
        throws
    {
        let first = try Peer(daemon.socketPath)
        #expect(try first.ask("PING") == .simple("PONG"))
        try allow(try count() + 2)
        var peers: [Peer] = []
        var refusal: String?
        while refusal == nil, peers.count < 100 {
            let peer = try Peer(daemon.socketPath)
            try? peer.send("PING")
            let reply = try peer.next()
            refusal = reply.errorText
            if refusal == nil { peers.append(peer) }
        }
        #expect(refusal == "LIMIT the daemon has no more file descriptors; try again later")
        #expect(try first.ask("PING") == .simple("PONG"))
        for _ in 0..<100 {
            #expect(
                try Peer(daemon.socketPath).rest().map(\.shown)
                    == ["-LIMIT the daemon has no more file descriptors; try again later"]
            )
        }
        withExtendedLifetime(peers) {}
        try allow(1_000)
        #expect(try Peer(daemon.socketPath).ask("PING") == .simple("PONG"))
    }
}
