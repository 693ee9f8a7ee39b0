import Synchronization

/// How many rows of a store are loaded, for those who wait for it; readable on any thread.
package final class LoadProgress: Sendable {
    private let rows = Atomic<Int64>(0)
    private let expected = Atomic<Int64>(-1)

    /// The rows that were read since the load began.
    package var rowCount: Int64 { rows.load(ordering: .relaxed) }

    /// All rows, as of the last clean stop; nil if there was none, or before the load.
    package var expectedRowCount: Int64? {
        let count = expected.load(ordering: .relaxed)
        return count < 0 ? nil : count
    }

    /// Such as `2 of 5 rows`; nil before the first row.
    package var text: String? {
        let count = rowCount
        guard count > 0 else { return nil }
        return expectedRowCount.map { "\(count) of \($0) rows" } ?? "\(count) rows"
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
