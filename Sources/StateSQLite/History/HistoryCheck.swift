import StateEngine

/// Checks what must hold from row to row: checksums, order, and the chain of changes of each key.
package struct HistoryCheck {
    /// The newest change of a key so far.
    private struct Newest {
        var place: HistoryPlace
        var created: Int64
        var version: Int64
        var isDelete: Bool
    }

    /// Up to this revision, superseded rows and deletes may have been removed.
    var compacted: Int64 = 0
    /// What rules may have removed besides, unless it is live.
    var floors = HistoryFloors()
    /// Whether rows may have been removed during the check, because the store's owner compacts it.
    var isBesideOwner = false
    private(set) var rowCount: Int64 = 0
    /// Keys with a value.
    private(set) var entryCount = 0
    private(set) var last = HistoryPlace(revision: 0, ordinal: -1)
    private var number: Int64 = 0
    private var newest: [[UInt8]: Newest] = [:]
    /// Rows that do not match their checksum.
    ///
    /// A row that refers to one of them is not reported again.
    private var damaged: Set<HistoryPlace> = []

    /// Checks the next row, and reports each fault.
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
        let isIntact = checksum == Int64(RowChecksum.of(change))
        guard isIntact, change.isPossible else {
            let finding =
                isIntact ? "has numbers that no change can have" : "does not match its checksum"
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

    /// The fault in a row's position, if there is one.
    private func orderFinding(_ rowNumber: Int64, _ place: HistoryPlace) -> String? {
        if place <= last {
            return "comes after revision \(last.revision), ordinal \(last.ordinal)"
        }
        // Only compaction removes rows.
        let oldest = max(compacted, floors.highest)
        if last.revision <= oldest, oldest > 0 { return nil }
        if rowNumber != number + 1 {
            return "comes after row \(number): \(rowNumber &- number &- 1) rows are missing"
        }
        let expected = place.revision == last.revision ? last.ordinal &+ 1 : 0
        if place.ordinal != expected, damaged.isEmpty {
            return "should have ordinal \(expected): its transaction is incomplete"
        }
        return nil
    }

    /// The fault in a change's reference to the one that it supersedes.
    private func chainFinding(_ change: borrowing StoredChange, _ old: Newest?) -> String? {
        guard let previous = change.previousPlace else {
            guard let old else { return beginningFinding(change) }
            // A delete between the two may have been removed.
            if old.isDelete || isBesideOwner, old.place.revision <= compacted { return nil }
            return "does not name the change before it, which is revision "
                + "\(old.place.revision), ordinal \(old.place.ordinal)"
        }
        if damaged.contains(previous) { return nil }
        guard let old, previous == old.place else {
            let oldest = max(compacted, floors.revision(of: change.key))
            let isGone = previous.revision <= oldest && old.map { $0.place < previous } ?? true
            return isGone
                ? nil
                : "supersedes revision \(previous.revision), ordinal \(previous.ordinal), "
                    + (old.map { "but the last is revision \($0.place.revision)" }
                        ?? "which is missing")
        }
        return successionFinding(change, old)
    }

    /// The fault in the first change of a key.
    private func beginningFinding(_ change: borrowing StoredChange) -> String? {
        if change.value == nil { return "deletes a key that does not exist" }
        let (created, version) = (change.created, change.version)
        if created == change.revision, version > 0 { return nil }
        return "says it was created at \(created), version \(version)"
    }

    /// The fault in a change, compared with the one that it supersedes.
    private func successionFinding(_ change: borrowing StoredChange, _ old: Newest) -> String? {
        let (created, version) = (change.created, change.version)
        // A transaction may delete a key and set it again, or set it several times: only the last
        // change is stored.
        let isAnew = created == change.revision
        if change.value == nil {
            if old.isDelete { return "deletes a key that is already deleted" }
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
