import Synchronization

/// How many rows of a store, and changes in its log, are loaded, for those who wait for it; readable on
/// any thread.
package final class LoadProgress: Sendable {
    private let rows = Atomic<Int64>(0)
    private let expected = Atomic<Int64>(-1)

    /// The rows and changes that were read since the load began.
    package var rowCount: Int64 { rows.load(ordering: .relaxed) }

    /// The rows of the database; nil before the load.
    package var expectedRowCount: Int64? {
        let count = expected.load(ordering: .relaxed)
        return count < 0 ? nil : count
    }

    /// Such as `2 of 5 rows`, and once these are read, `7 rows and changes`; nil before the first row.
    package var text: String? {
        let count = rowCount
        guard count > 0 else { return nil }
        guard let expected = expectedRowCount, count <= expected else {
            return "\(count) rows and changes"
        }
        return "\(count) of \(expected) rows"
    }

    func begin(expecting count: Int64?) {
        rows.store(0, ordering: .relaxed)
        expected.store(count ?? -1, ordering: .relaxed)
    }

    /// Called by one thread at a time, so that it needs no atomic addition.
    @inline(__always)
    func noteRow() {
        rows.store(rows.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    }
}
