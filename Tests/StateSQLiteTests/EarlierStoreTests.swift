import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// Stores of earlier versions, whose pages have another size.
struct EarlierStoreTests {
    let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    /// 500 changes in pages of `size` bytes.
    private func fill(pagesOf size: Int) throws {
        try store.fill(sampleChanges(500))
        let mark = try readFile(store.mark)
        do {
            let connection = try Stranger(store.database)
            for command in [
                "PRAGMA journal_mode=DELETE", "PRAGMA page_size=\(size)", "VACUUM",
                "PRAGMA journal_mode=WAL",
            ] { try connection.run(command) }
        }
        try store.putMark(mark)
        try #require(try readFile(store.database).count.isMultiple(of: size))
    }

    @Test(arguments: [2_048, 8_192])
    func `a store with pages of another size, as earlier versions made them, is served`(
        size: Int
    ) throws {
        try fill(pagesOf: size)
        #expect(try store.contents().changes.map(\.plain) == sampleChanges(500))
        let keyspace = try LocalKeyspace(backing: store.backing())
        try keyspace.apply([.set("key/1", [1])])
        try keyspace.compact(to: keyspace.revision)
        keyspace.close()
        #expect(try store.check().findings == [])
        #expect(try Stranger(store.database).run("PRAGMA page_size") == [["\(size)"]])
    }

    /// A power failure may tear the header of a log that begins anew.
    @Test(arguments: [2_048, 8_192], [true, false])
    func `a damaged header of the log costs such a store nothing`(
        size: Int,
        isMoved: Bool
    ) throws {
        try fill(pagesOf: size)
        let last = BuiltBatch.Change(
            revision: 501,
            key: Array("last".utf8),
            value: [1],
            created: 501
        )
        try commitAndLeave(last, isMoved: isMoved)
        try overwriteByte(of: store.log, at: 8)
        let expected = sampleChanges(500) + [last]
        if isMoved {
            #expect(try store.contents().changes.map(\.plain) == expected)
        } else {
            let error = try #require(throws: StateError.self) { try store.contents() }
            #expect(error.code == .corrupt)
            let target = try TemporaryStore()
            _ = try store.salvage(to: target)
            #expect(try target.contents().changes.map(\.plain) == expected)
        }
    }

    /// Ends without closing, as a process that is killed.
    private func commitAndLeave(_ change: BuiltBatch.Change, isMoved: Bool) throws {
        let backing = store.backing {
            $0.movesAside = false
            $0.checkpointByteCount = isMoved ? 1 : 8 << 20
        }
        _ = try backing.load { _ in }
        try BuiltBatch([change]).commit(to: backing)
        backing.maintain()
    }

    private func overwriteByte(of path: String, at place: Int) throws {
        var bytes = try readFile(path)
        bytes[place] ^= 0xFF
        try write(bytes, to: path)
    }
}
