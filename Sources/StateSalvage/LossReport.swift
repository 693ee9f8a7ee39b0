import StateEngine
import StateSQLite

/// Which rows of a history are lost, and what that means for the keys: as far as the rows that are whole tell.
///
/// Rows are numbered without gaps above the compacted revision, so a gap says how many are lost and between which
/// revisions; a later row of the same key, where there is one, names the lost row that it supersedes, and then only
/// history is lost. Of the other lost rows the key is not known: what is served of it is the newest row that is whole.
/// Where the compacted revision is not known, a gap may be what compaction left, and only the count of rows tells of losses.
struct LossReport {
    /// Rows that are missing between two that are whole.
    struct Gap {
        var numbers: ClosedRange<Int64>
        var revisions: ClosedRange<Int64>
    }

    private let found: FoundHistory
    /// nil where that cannot be read.
    private let compacted: Int64?
    private let gaps: [Gap]
    /// The newest revision that was acknowledged, as far as the mark says; 0 where it does not.
    private let acknowledged: Int64
    /// Whether the mark says that there was no clean stop since.
    private let wasKilled: Bool
    /// Lost changes that a whole row supersedes.
    private var superseded: [(place: HistoryPlace, key: [UInt8], by: Int64)] = []
    /// The newest whole row of each key that a damaged row has.
    private var served: [[UInt8]: Int64] = [:]
    private var liveKeys: Set<[UInt8]> = []

    init(_ found: FoundHistory, acknowledged: AcknowledgedCommit = AcknowledgedCommit()) {
        self.found = found
        self.acknowledged = acknowledged.revision
        wasKilled = acknowledged.log != nil
        compacted = found.map.number(.compacted)
        gaps = LossReport.gaps(found.rows, compacted ?? 0)
        for key in found.damagedRows.compactMap(\.key) { served[key] = 0 }
    }

    /// Notes a whole row; they come in their order.
    mutating func note(_ change: borrowing StoredChange) {
        let key = Array(change.key)
        if served[key] != nil { served[key] = change.revision }
        if change.value == nil { liveKeys.remove(key) } else { liveKeys.insert(key) }
        if let compacted, let previous = change.previousPlace, previous.revision > compacted,
            !found.contains(previous)
        {
            superseded.append((previous, key, change.revision))
        }
    }

    /// Keys with a value among the rows that are whole.
    var entryCount: Int { liveKeys.count }

    /// Whether every row that there was is whole.
    var isEmpty: Bool {
        guard superseded.isEmpty, !lacksAcknowledged else { return false }
        if let count = countedRows { return Int64(found.rows.count) >= count }
        return found.map.isWhole && found.damagedRows.isEmpty && gaps.isEmpty
            && !found.pages.mayLackPages
    }

    /// The newest revision that the store has itself.
    private var foundRevision: Int64 {
        let known = [found.map.number(.leastRevision), found.rows.last?.place.revision, compacted]
        return known.compactMap { $0 }.max() ?? 0
    }

    /// Whether the newest commits may be lost; where the rows are counted, their number tells.
    private var lacksAcknowledged: Bool { !isCounted && acknowledged > foundRevision }

    /// Whether nothing but a commit that is lost can have had the newest revision: compaction, or a note, would be noted.
    private var isAcknowledgedCertain: Bool {
        compacted != nil && found.map.number(.leastRevision) != nil
    }

    private var gapRowCount: Int64 { gaps.reduce(0) { $0 + Int64($1.numbers.count) } }

    /// Whether it is known how many rows there were.
    var isCounted: Bool { countedRows != nil }

    /// How many rows there were at the last clean stop; nil where commits came after it, though what says so may be lost with them.
    private var countedRows: Int64? {
        let isLater = wasKilled && acknowledged > foundRevision || found.pages.mayLackPages
        return isLater ? nil : found.map.number(.rowCount)
    }

    /// Rows that are lost for certain.
    var lostRowCount: Int64 {
        if isEmpty { return 0 }
        let missing = (countedRows ?? 0) - Int64(found.rows.count)
        return max(
            missing,
            compacted == nil ? 0 : gapRowCount,
            Int64(max(superseded.count, found.damagedRows.count)),
            lacksAcknowledged && isAcknowledgedCertain ? 1 : 0
        )
    }

    /// The revision that the new store goes on above: no client remembers one that it will give to another change.
    var leastRevision: Int64 {
        min(max(foundRevision, acknowledged) + 1 << 32, RevisionReservation.largestRevision)
    }

    /// From here on every change is there.
    var wholeFrom: Int64 {
        guard let compacted else { return leastRevision }
        if isEmpty { return compacted }
        // All that is lost lies between whole rows: else the newest rows may be among it.
        guard let count = countedRows,
            count - Int64(found.rows.count) == gapRowCount
        else { return leastRevision }
        let ends = gaps.map(\.revisions.upperBound) + superseded.map(\.by)
        return max(compacted, ends.max() ?? 0)
    }

    /// What is not whole, a sentence each.
    func lines() -> [String] { found.pages.logDamage + rowLines() + noteLines() }

    private func noteLines() -> [String] {
        var lostPages = RangeSet<Int>()
        for page in found.map.meta.lostPages { lostPages.insert(page) }
        let pages = lostPages.ranges.map {
            "\(LossReport.pages($0)) of meta cannot be read: what it had noted is lost"
        }
        return found.map.meta.lostMetadata.map { entry in
            let name = entry.name.map { " " + LossReport.name($0) } ?? ""
            return "lost: the note\(name) on page \(entry.page), which is not what was written"
        } + pages
    }

    private func rowLines() -> [String] {
        if isEmpty { return [] }
        var lines = gapLines() + found.damagedRows.map(line)
        lines += superseded.map { lost in
            "lost: revision \(lost.place.revision) of key \(LossReport.name(lost.key)); "
                + "revision \(lost.by), which superseded it, is whole"
        }
        lines += found.strayPages.ranges.map {
            "\(LossReport.pages($0)) cannot be read as part of anything"
        }
        return lines + doubtLines()
    }

    private func gapLines() -> [String] {
        let word = compacted == nil ? "missing" : "lost"
        let lines = gaps.map { gap in
            "\(word): \(LossReport.range("row", gap.numbers)), of "
                + LossReport.range("revision", gap.revisions)
        }
        guard compacted == nil, !gaps.isEmpty else { return lines }
        return lines + [
            "the compacted revision cannot be read: what is missing is lost, or was superseded "
                + "and compacted"
        ]
    }

    /// What may be lost that no row shows.
    private func doubtLines() -> [String] {
        var lines: [String] = []
        if let count = countedRows, count > found.rows.count {
            lines.append("the last clean stop left \(count) rows, \(found.rows.count) are whole")
        }
        if lacksAcknowledged {
            let revisions = LossReport.range("revision", foundRevision + 1...acknowledged)
            lines.append(
                "\(isAcknowledgedCertain ? "lost" : "missing"): \(revisions), "
                    + "acknowledged as the mark of the store says"
            )
        }
        if found.pages.mayLackPages {
            lines.append("frames of the log are damaged: rows that they alone had may be lost")
        }
        if !isCounted, !found.map.isWhole {
            let revision = found.rows.last?.place.revision ?? 0
            lines.append(
                "pages that lead to rows are damaged: rows after revision \(revision) may be lost"
            )
        }
        return lines
    }

    private func line(_ row: FoundHistory.DamagedRow) -> String {
        let page = "on page \(row.page)"
        guard let number = row.number, let revision = row.revision, let key = row.key else {
            return "damaged: a row \(page) that cannot be read"
        }
        let served = served[key] ?? 0
        return "damaged: row \(number) \(page), which says revision \(revision) of key "
            + LossReport.name(key)
            + (served > 0 ? "; its newest whole row is of revision \(served)" : "")
    }

    /// The whole key: who reads the list has to find it.
    private static func name(_ key: [UInt8]) -> String {
        key.withUnsafeBytes { StateError.quoted($0, upTo: Key.maximumByteCount) }
    }

    private static func range(_ word: String, _ range: ClosedRange<Int64>) -> String {
        range.count == 1
            ? "\(word) \(range.lowerBound)"
            : "\(word)s \(range.lowerBound) to \(range.upperBound)"
    }

    private static func pages(_ range: Range<Int>) -> String {
        LossReport.range("page", Int64(range.lowerBound)...Int64(range.upperBound - 1))
    }

    /// Where numbers are missing that compaction did not take away.
    private static func gaps(_ rows: [FoundHistory.Row], _ compacted: Int64) -> [Gap] {
        var gaps: [Gap] = []
        var last = (number: Int64(0), place: HistoryPlace(revision: 0, ordinal: 0))
        for (index, row) in rows.enumerated() {
            // No checksum covers the numbers: one that does not rise is not believed.
            let next = index + 1 < rows.count ? rows[index + 1].number : .max
            guard row.number > last.number, row.number < next else { continue }
            defer { last = (row.number, row.place) }
            let isExplained = compacted > 0 && last.place.revision <= compacted
            guard row.number > last.number + 1, !isExplained else { continue }
            // A commit may have lost its last rows or its first ones.
            let end = row.place.ordinal > 0 ? row.place.revision : row.place.revision - 1
            let start = min(max(1, last.place.revision), end)
            gaps.append(
                Gap(numbers: last.number + 1...row.number - 1, revisions: start...max(start, end))
            )
        }
        return gaps
    }
}
