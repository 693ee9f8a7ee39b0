import StateEngine

/// Counts the rows up to the compacted revision while a store is read.
///
/// Only the keyspace knows which of them are superseded, for it has the keys: it says so while it
/// takes them over, in ``SQLiteBacking/didLoad(superseding:)``. The links of the rows do not: the
/// row that superseded another may be gone.
final class LoadedRows {
    let compacted: Int64
    private(set) var rows: SweptRows
    /// The rows behind the compacted revision.
    var retained = RetainedRows()
    /// Whether everything that is superseded was named.
    let isComplete: Bool
    /// Superseded rows behind the compacted revision that no row names: rules have removed the row
    /// that superseded them.
    private(set) var orphans: [HistoryPlace] = []
    private var isCounted = false
    /// The row that the row read last names.
    private var previous: HistoryPlace?

    /// - Parameters:
    ///   - compacted: The last revision that is counted.
    ///   - isComplete: False if nobody names what is superseded.
    ///   - rowLimit: Rows of a stretch.
    init(compacted: Int64, isComplete: Bool, rowLimit: Int) {
        rows = SweptRows(rowLimit: rowLimit)
        self.compacted = compacted
        self.isComplete = isComplete
    }

    /// Counts the next row that is read.
    func read(_ change: borrowing StoredChange) {
        isCounted = change.revision <= compacted
        previous = change.previousPlace
        guard isCounted else { return }
        rows.append(
            HistoryPlace(revision: change.revision, ordinal: change.ordinal),
            byteCount: Int64(change.value?.count ?? 0),
            isTombstone: change.value == nil
        )
    }

    /// The row that was read last superseded the one at `place`.
    func supersede(_ place: HistoryPlace, byteCount: Int) {
        // A later row is part of the history, and so is what it supersedes, if it names it.
        if isCounted || place != previous && place.revision <= compacted {
            rows.supersede(place, byteCount: Int64(byteCount))
        } else if place != previous {
            orphans.append(place)
        }
    }
}
