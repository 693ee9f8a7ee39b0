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
    }

    @Test func `bounded: a description of commands without end is refused`() throws {
        let names = Array(repeating: "client", count: 1_000).joined(separator: " ")
        for verb in ["COMMAND DOCS", "COMMAND INFO"] {
            #expect(try isRefused("\(verb) \(names)", "LIMIT"))
        }
        #expect(try peer.ask("COMMAND DOCS client get").elements?.isEmpty == false)
        #expect(try isRefused("CONFIG GET " + names + names + names, "LIMIT"))
        for (command, count) in [("COMMAND DOCS", 20), ("INFO everything", 1_000)] {
            _ = try peer.ask("MULTI")
            #expect(try isUndone(command, count))
        }
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
