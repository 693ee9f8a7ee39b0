import StateEngine

/// What must hold from row to row: checksums, the order, and the chain of changes of each key.
package struct HistoryCheck {
    /// The newest change of a key so far.
    private struct Newest {
        var place: HistoryPlace
        var created: Int64
        var version: Int64
        var isDelete: Bool
    }

    /// Up to here rows may be gone that others superseded, and deletes.
    var compacted: Int64 = 0
    /// Whether rows may have gone between those that were taken, for the store has an owner who compacts.
    var isBesideOwner = false
    private(set) var rowCount: Int64 = 0
    /// Keys with a value.
    private(set) var entryCount = 0
    private(set) var last = HistoryPlace(revision: 0, ordinal: -1)
    private var number: Int64 = 0
    private var newest: [[UInt8]: Newest] = [:]
    /// Rows that do not match their checksum: what names one of them says nothing new.
    private var damaged: Set<HistoryPlace> = []

    /// Checks one row after all before it, and reports each thing that is wrong.
    mutating func take(
        _ rowNumber: Int64,
        _ change: borrowing StoredChange,
        checksum: Int64,
        _ report: (String) -> Void
    ) {
        rowCount += 1
        let place = change.place
        let name = "row \(rowNumber) (revision \(place.revision), ordinal \(place.ordinal))"
        defer { number = rowNumber }
        let isWhole = checksum == Int64(RowChecksum.of(change))
        guard isWhole, change.isPossible else {
            let finding =
                isWhole ? "has numbers that no change has" : "does not match its checksum"
            report("\(name) \(finding)")
            damaged.insert(place)
            return
        }
        if let finding = orderFinding(rowNumber, place) { report("\(name) \(finding)") }
        let key = Array(change.key)
        if let finding = chainFinding(change, newest[key]) {
            report("\(name) of key \(StateError.quoted(change.key)) \(finding)")
        }
        let isDelete = change.value == nil
        let version = Newest(
            place: place,
            created: change.created,
            version: change.version,
            isDelete: isDelete
        )
        let old = newest.updateValue(version, forKey: key)
        entryCount += (isDelete ? 0 : 1) - (old.map { $0.isDelete ? 0 : 1 } ?? 0)
        last = max(last, place)
    }

    /// What is wrong with where a row stands.
    private func orderFinding(_ rowNumber: Int64, _ place: HistoryPlace) -> String? {
        if place <= last {
            return "comes after revision \(last.revision), ordinal \(last.ordinal)"
        }
        // Only compaction takes rows away.
        if last.revision <= compacted, compacted > 0 { return nil }
        if rowNumber != number + 1 {
            return "comes after row \(number): \(rowNumber &- number &- 1) rows are missing"
        }
        let expected = place.revision == last.revision ? last.ordinal &+ 1 : 0
        if place.ordinal != expected, damaged.isEmpty {
            return "should have ordinal \(expected): its transaction is not whole"
        }
        return nil
    }

    /// What is wrong with what a change says of the one that it supersedes.
    private func chainFinding(_ change: borrowing StoredChange, _ old: Newest?) -> String? {
        guard let previous = change.previousPlace else {
            guard let old else { return beginningFinding(change) }
            // Gone since may be a delete that was between the two.
            if old.isDelete || isBesideOwner, old.place.revision <= compacted { return nil }
            return "names no change that it supersedes; the last is of revision "
                + "\(old.place.revision), ordinal \(old.place.ordinal)"
        }
        if damaged.contains(previous) { return nil }
        guard let old, previous == old.place else {
            let isGone = previous.revision <= compacted && old.map { $0.place < previous } ?? true
            return isGone
                ? nil
                : "supersedes revision \(previous.revision), ordinal \(previous.ordinal), "
                    + (old.map { "but the last is of revision \($0.place.revision)" }
                        ?? "which is not there")
        }
        return successionFinding(change, old)
    }

    /// What is wrong with the first change of a key.
    private func beginningFinding(_ change: borrowing StoredChange) -> String? {
        if change.value == nil { return "deletes what was not there" }
        let (created, version) = (change.created, change.version)
        if created == change.revision, version > 0 { return nil }
        return "says it was created at \(created), version \(version)"
    }

    /// What is wrong with a change, given the one that it supersedes.
    private func successionFinding(_ change: borrowing StoredChange, _ old: Newest) -> String? {
        let (created, version) = (change.created, change.version)
        // A transaction may delete and set again, and set a key several times: one change, the last.
        let isAnew = created == change.revision
        if change.value == nil {
            if old.isDelete { return "deletes what was deleted" }
            if version == 0, isAnew || created == old.created { return nil }
        } else if isAnew {
            if version > 0 { return nil }
        } else if !old.isDelete, created == old.created, version > old.version {
            return nil
        }
        return "says it was created at \(created), version \(version), after \(old.created), "
            + "version \(old.version)"
    }
}
