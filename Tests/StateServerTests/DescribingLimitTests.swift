import StateTestSupport
import StateWire
import Testing

/// What takes long although it names no keys is limited before it begins, for users without rights.
@Suite(.enabled(if: TestUser.areThere, "only root can act as other users"))
struct DescribingLimitTests {
    private let server: ServedKeyspace
    private let peer: Peer

    init() throws {
        server = try ServedKeyspace()
        peer = try server.connect(as: TestUser.names[0]).peer
    }

    private func isRefused(_ command: String, _ code: String) throws -> Bool {
        let reply = try peer.ask(command).shown
        return reply.hasPrefix("-\(code)")
    }

    /// Whether EXEC of so many commands is undone because it takes too long.
    private func isUndone(_ command: String, _ count: Int) throws -> Bool {
        try peer.send(Array(repeating: command, count: count).map(Peer.words))
        _ = try peer.next(count)
        let reply = try peer.ask("EXEC").shown
        return reply.hasPrefix("-LIMIT") || reply.contains("more than 10000 keys")
            || reply.contains("entries in one transaction, the limit")
    }

    @Test func `bounded: a description of commands without end is refused`() throws {
        let names = Array(repeating: "client", count: 1_000).joined(separator: " ")
        for verb in ["COMMAND DOCS", "COMMAND INFO"] {
            #expect(try isRefused("\(verb) \(names)", "LIMIT"))
        }
        #expect(try peer.ask("COMMAND DOCS client get").elements?.isEmpty == false)
        #expect(try isRefused("CONFIG GET " + names + names + names, "LIMIT"))
        for (command, count) in [
            ("COMMAND DOCS", 20), ("INFO everything", 1_000), ("ACL CAT", 1_000),
            ("STATE.STATUS", 1_000), ("STATE.WATCHES", 1_000), ("STATE.RULES", 1_000),
            ("CLIENT LIST", 1_300), ("CLIENT INFO", 2_000), ("MEMORY STATS", 1_000),
        ] {
            _ = try peer.ask("MULTI")
            #expect(try isUndone(command, count), "\(command)")
        }
    }

    @Test func `bounded: a command with names or numbers without end is refused`() throws {
        let numbers = (0..<20_000).map(String.init).joined(separator: " ")
        for verb in [
            "CLIENT LIST ID", "CLIENT KILL ID", "SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE",
            "PUNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE",
        ] {
            #expect(try isRefused("\(verb) \(numbers)", "LIMIT"), "\(verb)")
        }
        #expect(try peer.ask("CLIENT LIST ID 1 2 3").textValue != nil)
    }

    @Test func `bounded: connections and watches that a command of EXEC looks at count`() throws {
        let others = try (0..<200).map { _ in try server.connect(as: TestUser.names[0]).peer }
        for other in others { _ = try other.ask("PING") }
        // Each has a row.
        _ = try peer.ask("MULTI")
        #expect(try isUndone("CLIENT LIST", 60))
        _ = try peer.ask("MULTI")
        _ = try peer.ask("CLIENT LIST")
        #expect(
            try peer.ask("EXEC").elements?.first?.textValue?.split(separator: "\n").count == 201
        )
        withExtendedLifetime(others) {}
    }

    @Test(.disabled(if: Extent.isSanitized, "800 MiB are hashed"))
    func `bounded: what reads a long value counts for as many keys in EXEC`() throws {
        let value = [UInt8](repeating: 1, count: 8 << 20)
        #expect(try peer.ask([Array("SET".utf8), Array("big".utf8), value]).shown == "+OK")
        for (command, count) in [("DIGEST big", 100), ("DUMP big", 6)] {
            _ = try peer.ask("MULTI")
            #expect(try isUndone(command, count))
        }
        _ = try peer.ask("MULTI")
        _ = try peer.ask("DIGEST big")
        #expect(try peer.ask("EXEC").elements?.count == 1)
    }

    @Test func `bounded: patterns that take long to compare count as several, or are refused`()
        throws
    {
        _ = try peer.ask("HELLO 3")
        let long = String(repeating: "a", count: 2_000)
        #expect(try isRefused("CLIENT TRACKING ON BCAST PREFIX \(long)", "TOOBIG"))
        #expect(try isRefused("PUBSUB CHANNELS *\(long)", "TOOBIG"))
        let glob = String(repeating: "*a", count: 480)
        #expect(try isRefused("STATE.WATCH \(glob)b \(glob)c", "LIMIT"))
        #expect(try isRefused("PSUBSCRIBE \(glob)b \(glob)c", "LIMIT"))
    }
}
