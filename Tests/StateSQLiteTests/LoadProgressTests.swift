import StateEngine
import StateSQLite
import Testing

/// How far a load is, for those who wait for it.
struct LoadProgressTests {
    private let store: TemporaryStore

    init() throws {
        store = try TemporaryStore()
        try store.fill(sampleChanges(5))
    }

    @Test func `each row is one of as many as there are`() throws {
        let backing = store.backing()
        var texts = [backing.loading.text]
        _ = try backing.load { _ in texts.append(backing.loading.text) }
        texts.append(backing.loading.text)
        backing.close()
        let counted = (1...5).map { "\($0) of 5 rows" }
        #expect(texts == [nil] + counted + ["5 of 5 rows"])
    }

    @Test func `what the log has behind the rows is counted with them`() throws {
        let other = try TemporaryStore()
        let running = store.backing()
        _ = try running.load { _ in }
        try BuiltBatch(sampleChanges(2, from: 6)).commit(to: running)
        try store.copy(to: other)
        running.close()
        let backing = other.backing()
        _ = try backing.load { _ in }
        #expect(backing.loading.expectedRowCount == 5)
        #expect(backing.loading.text == "7 rows and changes")
        backing.close()
    }
}
