import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// A history that is so long that it is read on a thread of its own.
struct LongHistoryTests {
    let store: TemporaryStore
    private let changes: [BuiltBatch.Change]

    /// Short values, and some that are longer than what the threads exchange at once.
    init() throws {
        store = try TemporaryStore()
        var random = SplitMix(seed: Seed.base)
        changes = (1...Int64(5_000)).map { revision in
            let size =
                random.chance(1)
                ? Int.random(in: 250_000...600_000, using: &random)
                : Int.random(in: 0...300, using: &random)
            return BuiltBatch.Change(
                revision: revision,
                key: Array("key/\(revision)".utf8),
                value: random.chance(5)
                    ? nil : [UInt8](repeating: UInt8(revision % 251), count: size),
                created: revision
            )
        }
        try store.fill(changes)
    }

    @Test func `a long history is read whole and in order`() throws {
        let contents = try store.contents()
        #expect(contents.changes.map(\.plain) == changes)
        #expect(contents.loaded.revision == 5_000)
    }

    @Test func `never silent about storage: damage in a long history is named`() throws {
        var bytes = try readFile(store.database)
        // In the middle of some value.
        let place = try #require(
            (bytes.count / 2..<bytes.count - 8).first { start in
                bytes[start] != 0 && bytes[start..<start + 8].allSatisfy { $0 == bytes[start] }
            }
        )
        bytes[place] ^= 1
        try write(bytes, to: store.database)
        let error = try #require(throws: StateError.self) { try store.contents() }
        #expect(error.code == .corrupt && error.message.contains("the row of revision"))
    }
}
