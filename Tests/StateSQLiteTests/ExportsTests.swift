import StateSQLite
import Testing

struct ExportsTests {
    @Test func `StateSQLite brings the operators and transactions of containers with it`() throws {
        let key: Key = "audio/volume"
        let volume = try SQLiteState(0.5, key: key, in: .inMemory)
        try volume ~> 0.75
        try withTransaction { tx in tx[volume] += 0.25 }
        #expect(volume.value == 1)
    }
}
