import StateEngine
import StateSQLite

/// The lost rows of a history, and the effect on the keys, as far as the intact rows show.
///
/// Rows are numbered without gaps above the compacted revision, so a gap shows how many are lost
/// and between which revisions. A later row of the same key, if there is one, names the lost row
/// that it supersedes; then only history is lost. The keys of other lost rows are unknown: the
/// newest intact row of a key is served. If the compacted revision is unknown, a gap may be the
/// result of compaction, and only the count of rows shows losses.
struct LossReport {
    /// Missing rows between two intact ones.
    struct Gap {
        var numbers: ClosedRange<Int64>
        var revisions: ClosedRange<Int64>
    }

    private let found: FoundHistory
    /// Nil if it cannot be read.
    private let compacted: Int64?
    /// What rules have removed besides.
    private let floors: HistoryFloors
    private let gaps: [Gap]
    /// The newest acknowledged revision according to the stamp; 0 if the stamp has none.
    private let acknowledged: Int64
    /// Whether, according to the stamp, there was no clean stop since.
    private let wasKilled: Bool
    /// Lost changes that an intact row supersedes.
    private var superseded: [(place: HistoryPlace, key: [UInt8], by: Int64)] = []
    /// The newest intact row of each key of a damaged row.
    private var served: [[UInt8]: Int64] = [:]
    private var liveKeys: Set<[UInt8]> = []
    /// Changes that were deferred when the process ended, and the revision of the last one.
    private(set) var deferredCount: Int64 = 0
    private var deferredRevision: Int64 = 0

    init(_ found: FoundHistory, acknowledged: AcknowledgedCommit = AcknowledgedCommit()) {
        self.found = found
        self.acknowledged = acknowledged.revision
        wasKilled = acknowledged.log != nil
        compacted = found.map.number(.compacted)
        floors = found.map.floors
        gaps = LossReport.gaps(found.rows, max(compacted ?? 0, floors.highest))
        for key in found.damagedRows.compactMap(\.key) { served[key] = 0 }
    }

    /// Takes an intact row; rows must be passed in order.
    mutating func note(_ change: borrowing StoredChange) {
        let key = Array(change.key)
        if served[key] != nil { served[key] = change.revision }
        if change.value == nil { liveKeys.remove(key) } else { liveKeys.insert(key) }
        if let compacted, let previous = change.previousPlace, previous.revision > compacted,
            !found.contains(previous), previous.revision > floors.revision(of: change.key)
        {
            superseded.append((previous, key, change.revision))
        }
    }

    /// Takes a change behind all rows, that the process had deferred when it ended.
    mutating func note(deferred change: borrowing StoredChange) {
        let key = Array(change.key)
        if served[key] != nil { served[key] = change.revision }
        if change.value == nil { liveKeys.remove(key) } else { liveKeys.insert(key) }
        deferredCount += 1
        deferredRevision = change.revision
    }

    /// Keys with a value among the intact rows.
    var entryCount: Int { liveKeys.count }

    /// Whether every row is intact.
    var isEmpty: Bool {
        guard superseded.isEmpty, !lacksAcknowledged else { return false }
        // Rows that rules have removed may be found again, in place of others.
        if let count = countedRows {
            guard Int64(found.rows.count) >= count else { return false }
            if floors.isEmpty { return true }
        }
        return found.map.isWhole && found.damagedRows.isEmpty && gaps.isEmpty
            && !found.pages.mayLackPages
    }

    /// The newest revision found in the store itself.
    private var foundRevision: Int64 {
        let known = [found.map.number(.leastRevision), found.rows.last?.place.revision, compacted]
        return known.compactMap { $0 }.max() ?? 0
    }

    /// Whether the newest commits may be lost; if the rows are counted, their number shows it.
    private var lacksAcknowledged: Bool { !isCounted && acknowledged > foundRevision }

    /// Whether only a lost commit can have had the newest revision: compaction or metadata would
    /// have been recorded.
    private var isAcknowledgedCertain: Bool {
        compacted != nil && found.map.number(.leastRevision) != nil
    }

    private var gapRowCount: Int64 { gaps.reduce(0) { $0 + Int64($1.numbers.count) } }

    /// Whether the number of rows is known.
    var isCounted: Bool { countedRows != nil }

    /// The number of rows at the last clean stop; nil if commits came after it.
    ///
    /// The record of those may be lost, too.
    private var countedRows: Int64? {
        let isLater = wasKilled && acknowledged > foundRevision || found.pages.mayLackPages
        return isLater ? nil : found.map.number(.rowCount)
    }

    /// Rows that are certainly lost.
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

    /// Revisions of the new store continue above this one: no client remembers one that it will
    /// give to another change.
    var leastRevision: Int64 {
        let newest = max(foundRevision, acknowledged, deferredRevision)
        return min(newest + 1 << 32, RevisionReservation.largestRevision)
    }

    /// From this revision on every change is there.
    var wholeFrom: Int64 {
        guard let compacted else { return leastRevision }
        if isEmpty { return compacted }
        // If everything lost lies between intact rows, the newest rows are not among it.
        guard let count = countedRows,
            count - Int64(found.rows.count) == gapRowCount
        else { return leastRevision }
        let ends = gaps.map(\.revisions.upperBound) + superseded.map(\.by)
        return max(compacted, ends.max() ?? 0)
    }

    /// The damage, a sentence each.
    func lines() -> [String] { found.pages.logDamage + rowLines() + noteLines() }

    private func noteLines() -> [String] {
        var lostPages = RangeSet<Int>()
        for page in found.map.meta.lostPages { lostPages.insert(page) }
        let pages = lostPages.ranges.map {
            "\(LossReport.pages($0)) of meta cannot be read: the metadata there is lost"
        }
        return found.map.meta.lostMetadata.map { entry in
            let name = entry.name.map { " " + LossReport.name($0) } ?? ""
            return "lost: the metadata entry\(name) on page \(entry.page), which is damaged"
        } + pages
    }

    private func rowLines() -> [String] {
        if isEmpty { return [] }
        var lines = gapLines() + found.damagedRows.map(line)
        lines += superseded.map { lost in
            "lost: revision \(lost.place.revision) of key \(LossReport.name(lost.key)); "
                + "revision \(lost.by), which superseded it, is intact"
        }
        lines += found.strayPages.ranges.map {
            "\(LossReport.pages($0)) cannot be assigned to any table"
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
            "the compacted revision cannot be read: the missing rows are lost, or were "
                + "compacted"
        ]
    }

    /// Possible losses that no row shows.
    private func doubtLines() -> [String] {
        var lines: [String] = []
        if let count = countedRows, count > found.rows.count {
            lines.append("the last clean stop left \(count) rows, \(found.rows.count) are intact")
        }
        if lacksAcknowledged {
            let revisions = LossReport.range("revision", foundRevision + 1...acknowledged)
            lines.append(
                "\(isAcknowledgedCertain ? "lost" : "missing"): \(revisions), "
                    + "which were acknowledged according to stated.db-mark"
            )
        }
        if found.pages.mayLackPages {
            lines.append("frames of the log are damaged: rows that only they had may be lost")
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
        return "damaged: row \(number) \(page), apparently revision \(revision) of key "
            + LossReport.name(key)
            + (served > 0 ? "; the newest intact row of that key has revision \(served)" : "")
    }

    /// The complete key, because the reader of the report has to find it.
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

    /// Missing numbers that compaction does not explain.
    private static func gaps(_ rows: [FoundHistory.Row], _ compacted: Int64) -> [Gap] {
        var gaps: [Gap] = []
        var last = (number: Int64(0), place: HistoryPlace(revision: 0, ordinal: 0))
        var ignoredCount: Int64 = 0
        for (index, row) in rows.enumerated() {
            // No checksum covers the numbers: one that does not ascend is ignored.
            let next = index + 1 < rows.count ? rows[index + 1].number : .max
            guard row.number > last.number, row.number < next else {
                ignoredCount += 1
                continue
            }
            defer { (last, ignoredCount) = ((row.number, row.place), 0) }
            let isExplained = compacted > 0 && last.place.revision <= compacted
            // The rows whose numbers were ignored have numbers in between.
            let first = last.number + 1 + ignoredCount
            guard row.number > first, !isExplained else { continue }
            // A commit may have lost its last rows or its first ones.
            let end = row.place.ordinal > 0 ? row.place.revision : row.place.revision - 1
            let start = min(max(1, last.place.revision), end)
            gaps.append(
                Gap(numbers: first...row.number - 1, revisions: start...max(start, end))
            )
        }
        return gaps
    }
}
