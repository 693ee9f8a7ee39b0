import StateServer
import StateTestSupport
import StateWire
import Testing

/// Nothing is compacted while a backup is made, and no longer.
struct BackupPauseTests {
    private func isPaused(_ peer: Peer) throws -> Bool {
        let reply = try peer.ask("STATE.COMPACT")
        guard let error = reply.errorText else { return false }
        #expect(error.hasPrefix("CONFLICT a backup is being made"), "\(error)")
        return true
    }

    @Test(arguments: ["RESET", "STATE.BACKUP END"])
    func `a command that ends the backup ends the pause`(command: String) throws {
        let stored = try StoredServer()
        let (reader, other) = (try stored.connect(), try stored.connect())
        _ = try other.ask("SET k 1")
        #expect(try reader.ask("STATE.BACKUP BEGIN").errorText == nil)
        #expect(try isPaused(other))
        #expect(try reader.ask(command).errorText == nil)
        #expect(try !isPaused(other))
    }

    @Test func `the end of the connection ends the pause`() throws {
        let stored = try StoredServer()
        let (reader, other) = (try stored.connect(), try stored.connect())
        _ = try other.ask("SET k 1")
        #expect(try reader.ask("STATE.BACKUP BEGIN").errorText == nil)
        #expect(try isPaused(other))
        reader.socket.end()
        #expect(try eventually(within: .seconds(20)) { try !isPaused(other) })
    }

    @Test func `a backup that is refused at its beginning pauses nothing`() throws {
        let stored = try StoredServer { $0.replyByteCount = 64 }
        let (reader, other) = (try stored.connect(), try stored.connect())
        _ = try other.ask("SET k 1")
        #expect(try reader.ask("STATE.BACKUP BEGIN").errorText?.hasPrefix("TOOBIG") == true)
        #expect(try !isPaused(other))
    }

    @Test func `the pause lasts as long as one of two backups`() throws {
        let stored = try StoredServer()
        let (first, second) = (try stored.connect(), try stored.connect())
        let other = try stored.connect()
        _ = try other.ask("SET k 1")
        for reader in [first, second, first] {
            #expect(try reader.ask("STATE.BACKUP BEGIN").errorText == nil)
        }
        #expect(try first.ask("RESET").errorText == nil)
        #expect(try isPaused(other))
        #expect(try second.ask("RESET").errorText == nil)
        #expect(try !isPaused(other))
    }
}
