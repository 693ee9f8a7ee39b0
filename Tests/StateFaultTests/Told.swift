import StateTestSupport

/// Something that a client was told, by a reply or an event.
struct Told {
    /// How many calls for the log had begun when it had arrived.
    var place: Int
    /// Of the commit; nil where it was not said.
    var revision: Int64?
    /// Keys with the values that they were said to have been set to, all by one commit; nil: deleted.
    var changes: [Change]
    /// Whether these are all changes of the commit, in order.
    var isWhole = false

    struct Change: Hashable {
        var key: String
        var value: String?
    }
}

/// What has to be in a store by when, found from what was told and the history in which all of it is.
struct ToldBounds {
    private struct Row {
        var index: Int
        var revision: Int64
    }

    /// In order of place; rows and revisions that nothing later goes below.
    private var bounds: [(place: Int, rowCount: Int, revision: Int64)] = []
    /// What was told and is not in the history, or not so.
    private(set) var faults: [String] = []

    /// Where `mayDefer` is true of all its keys, what was told may not be stored yet.
    init(
        _ told: [Told],
        in history: StoredHistory,
        deferring mayDefer: (String) -> Bool = { _ in false }
    ) {
        var places: [Told.Change: Row] = [:]
        var commits: [Int64: [Told.Change]] = [:]
        for (index, row) in history.rows.enumerated() {
            let change = Told.Change(key: row.key, value: row.value)
            // A delete is found by the commit that it belongs to.
            if row.value != nil { places[change] = Row(index: index, revision: row.revision) }
            commits[row.revision, default: []].append(change)
        }
        var rowCount = 0
        var revision: Int64 = 0
        for one in told.sorted(by: { $0.place < $1.place }) {
            let rows = one.changes.compactMap { places[$0] }
            let isThere = rows.count == one.changes.count { $0.value != nil }
            let revisions = Set(rows.map(\.revision))
            let fits = one.revision.map { told in revisions.allSatisfy { $0 == told } } ?? true
            let isWhole = !one.isWhole || commits[one.revision ?? 0] == one.changes
            if !isThere || revisions.count > 1 || !fits || !isWhole {
                faults.append("told and not in the store, or not so: \(one)")
            }
            if one.changes.allSatisfy({ mayDefer($0.key) }) { continue }
            rowCount = max(rowCount, rows.map { $0.index + 1 }.max() ?? 0)
            revision = max(revision, one.revision ?? 0, revisions.max() ?? 0)
            bounds.append((one.place, rowCount, revision))
        }
    }

    /// The rows and the revision that were told before the call at `place` began.
    func told(before place: Int) -> (rowCount: Int, revision: Int64) {
        var (low, high) = (0, bounds.count)
        while low < high {
            let middle = (low + high) / 2
            if bounds[middle].place < place { low = middle + 1 } else { high = middle }
        }
        return low == 0 ? (0, 0) : (bounds[low - 1].rowCount, bounds[low - 1].revision)
    }
}
