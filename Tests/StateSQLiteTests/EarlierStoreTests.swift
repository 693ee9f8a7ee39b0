import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// Stores of earlier versions.
struct EarlierStoreTests {
    @Test func `a store with pages of 8 KiB, as earlier versions made them, is served`() throws {
        let store = try TemporaryStore()
        try store.fill(sampleChanges(500))
        let expected = try store.contents()
        let mark = try readFile(store.mark)
        do {
            let connection = try Stranger(store.database)
            for command in [
                "PRAGMA journal_mode=DELETE", "PRAGMA page_size=8192", "VACUUM",
                "PRAGMA journal_mode=WAL",
            ] { try connection.run(command) }
        }
        try store.putMark(mark)
        #expect(try readFile(store.database).count.isMultiple(of: 8_192))
        #expect(try store.contents().changes == expected.changes)
        let keyspace = try LocalKeyspace(backing: store.backing())
        try keyspace.apply([.set("key/1", [1])])
        try keyspace.compact(to: keyspace.revision)
        keyspace.close()
        #expect(try store.check().findings == [])
        #expect(try Stranger(store.database).run("PRAGMA page_size") == [["8192"]])
    }
}
