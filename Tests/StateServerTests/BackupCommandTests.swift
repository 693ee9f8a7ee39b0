import StateEngine
import StateTestSupport
import StateWire
import Testing

/// STATE.BACKUP and the compaction beside it.
struct BackupCommandTests {
    private let clock: Observed<Int64>
    private let server: StoredServer

    init() throws {
        let clock = Observed<Int64>(1_000_000)
        self.clock = clock
        server = try StoredServer(clock: { clock.current })
    }

    /// The pause of a backup is over, and everything superseded is removed.
    private func compactAfterThePause() throws {
        clock.update { $0 += 61_000 }
        let reply = try server.connect().ask("STATE.COMPACT")
        try #require(reply.errorText == nil, "\(reply)")
    }

    @Test func `a backup whose values were compacted before its first piece is refused`() throws {
        let (writer, reader) = (try server.connect(), try server.connect())
        for key in ["a", "b", "c"] { _ = try writer.ask("SET \(key) 1") }
        let begun = try reader.ask("STATE.BACKUP BEGIN")
        #expect(begun["keys"] == .integer(3))
        _ = try writer.ask("SET a 2")
        _ = try writer.ask("DEL b")
        try compactAfterThePause()
        let refused = try reader.ask("STATE.BACKUP NEXT")
        #expect(refused.errorText?.hasPrefix("COMPACTED ") == true, "\(refused)")
        // Beginning again helps.
        #expect(try reader.ask("STATE.BACKUP BEGIN")["keys"] == .integer(2))
        #expect(try reader.ask("STATE.BACKUP NEXT").errorText == nil)
    }
}
