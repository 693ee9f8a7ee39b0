import StateEngine
import StateLog
import StateModel
import StateSQLite

/// What is whole of a settled store, what is missing, and from which revision on all of it is there.
struct StoreLosses {
    private let rows: StoreRemains?
    private let database: String

    // What the log has.
    /// The places of the changes in whole frames, in order.
    private var places: [HistoryPlace] = []
    /// The newest change of each key that rows should have.
    private var settled: [[UInt8]: (revision: Int64, isLive: Bool)] = [:]
    private(set) var metadata: [String: String] = [:]
    private(set) var floors = HistoryFloors()
    private var ruledFloor: Int64 = 0
    /// The highest revision of any change.
    private var highest: Int64 = 0
    private var log = LogFacts()
    private var missing = Missing()
    private var damage = Damage()

    /// What the log says of itself.
    private struct LogFacts {
        /// Whether there is one.
        var exists = false
        /// Whether it has left something to the database.
        var hasRewrites = false
        var notes: [String] = []
        var origin: Int64?
        var life: LogLife?
    }

    /// What is missing of the log.
    private struct Missing {
        var lines: [String] = []
        /// Up to this revision changes may be missing.
        var end: Int64 = 0
        /// Whether the next change comes after some that are missing.
        var isOpen = false
        /// The last change that superseded one that is not there, though nothing was missing then.
        var linkEnd: Int64 = 0
        var changeCount: Int64 = 0
        var hasUncounted = false
        var superseded: [(place: HistoryPlace, key: [UInt8], by: Int64)] = []
    }

    /// What is not as it was written.
    private struct Damage {
        /// Changes in damaged frames, by what they say of themselves.
        var changes: [StoreRemains.DamagedRow] = []
        /// The keys of damaged rows and changes, and the newest whole version of each.
        var keys: Set<[UInt8]> = []
        var served: [[UInt8]: Int64] = [:]
    }

    init(_ rows: StoreRemains?, database: String) {
        (self.rows, self.database) = (rows, database)
        metadata = rows?.metadata ?? [:]
        floors = rows?.floors ?? HistoryFloors()
    }

    /// Whether every row is whole.
    private var hasAllRows: Bool {
        guard let rows, let known = rows.known else { return false }
        return rows.gaps.isEmpty && rows.damagedRows.isEmpty && rows.rowCount == known.rowCount
    }

    /// Whether the rows say all there is of a key up to a revision.
    func isSettled(_ revision: Int64) -> Bool {
        hasAllRows && revision <= rows?.known?.revision ?? 0
    }

    var hasAnything: Bool { !places.isEmpty || rows?.known != nil || rows?.rowCount ?? 0 > 0 }

    // MARK: Reading

    /// Passes every change that is whole, those of whole frames in order; those of damaged frames have no
    /// links.
    func forEachChange(
        _ remains: LogRemains?,
        _ receive: (borrowing StoredChange, ChangeLink) throws(StateError) -> Void
    ) throws {
        var last = HistoryPlace(revision: 0, ordinal: -1)
        _ = try remains?.read { part in
            switch part {
            case .frame(let contents, let time, _):
                try StoreLosses.read(contents, time) { change, link throws(StateError) in
                    guard change.place > last else { return }
                    last = change.place
                    try receive(change, link)
                }
            case .damaged(let contents, let time):
                try StoreLosses.readDamaged(contents, time) {
                    change,
                    isWhole throws(StateError) in
                    if isWhole { try receive(change, ChangeLink()) }
                }
            case .gap, .end: break
            }
        }
    }

    private static func read(
        _ contents: Bytes,
        _ time: Int64,
        _ receive: (StoredChange, ChangeLink) throws(StateError) -> Void
    ) throws {
        var failure: StateError?
        // A frame that matches its checksum is what was written.
        try CommitCoder.read(contents, at: time, comparingRows: false) { change, link in
            guard failure == nil else { return }
            do throws(StateError) { try receive(copy change, copy link) } catch { failure = error }
        }
        if let failure { throw failure }
    }

    /// Passes what may be changes in a damaged frame, and whether each is one that was written.
    private static func readDamaged(
        _ contents: Bytes,
        _ time: Int64,
        _ receive: (StoredChange, _ isWhole: Bool) throws(StateError) -> Void
    ) throws(StateError) {
        var failure: StateError?
        // It ends where it makes no sense.
        try? CommitCoder.read(contents, at: time, comparingRows: false) { found, link in
            guard failure == nil else { return }
            var change = copy found
            let isWhole =
                link.checksum == CommitCoder.checksum(of: change) && change.isPossible
            // No checksum of its own covers what it supersedes.
            (change.previousRevision, change.previousOrdinal) = (0, 0)
            do throws(StateError) { try receive(change, isWhole) } catch { failure = error }
        }
        if let failure { throw failure }
    }

    /// Reads the log, and finds what is missing of it and of the rows.
    mutating func survey(_ remains: LogRemains?, directory: String) throws {
        var facts = LogFacts()
        facts.exists = !(remains?.isEmpty ?? true)
        facts.hasRewrites = remains?.hasRewrites ?? false
        (facts.origin, facts.notes) = (remains?.origin, remains?.notes ?? [])
        var segmentCount: Int64 = 0
        var hasGap = false
        facts.life = try remains?.read { part in
            switch part {
            case .frame(let contents, let time, let isSettled):
                segmentCount += try take(contents, time, isSettled: isSettled)
            case .damaged(let contents, let time):
                segmentCount += try takeDamaged(contents, time)
            case .gap(let sentence):
                hasGap = true
                noteGap(sentence)
            case .end(let changeCount):
                if hasGap {
                    missing.changeCount += max(0, Int64(changeCount ?? 0) - segmentCount)
                    missing.hasUncounted = missing.hasUncounted || changeCount == nil
                }
                (segmentCount, hasGap) = (0, false)
            }
        }
        // One behind the last segment was of no segment.
        if hasGap { missing.hasUncounted = true }
        if missing.isOpen { missing.end = max(missing.end, highest) }
        log = facts
        judgeLinks()
        if !log.exists { noteMissingLog(directory) }
        try noteRows()
    }

    private mutating func noteMissingLog(_ directory: String) {
        guard let known = rows?.known, known.life > 0 else { return }
        missing.lines.append(
            known.isClosed
                ? "the log, \(directory), is missing: the database has all values, but not the history"
                : "the log, \(directory), is missing: changes after revision \(known.revision) are lost"
        )
        missing.hasUncounted = true
        missing.end = max(missing.end, known.revision)
    }

    private mutating func noteGap(_ sentence: String) {
        let revision = places.last?.revision ?? 0
        missing.lines.append("\(sentence); changes after revision \(revision) may be lost there")
        missing.isOpen = true
        missing.end = max(missing.end, revision)
    }

    /// - Returns: How many changes there are.
    private mutating func take(
        _ contents: Bytes,
        _ time: Int64,
        isSettled: Bool
    ) throws -> Int64 {
        var count: Int64 = 0
        try CommitCoder.read(contents, at: time, comparingRows: false) { change, link in
            count += 1
            let last = places.last ?? HistoryPlace(revision: 0, ordinal: -1)
            if change.place > last { take(change, copy link) }
        } metadata: { name, text in
            take(name, text, isSettled: isSettled)
        }
        return count
    }

    private mutating func take(_ change: borrowing StoredChange, _ link: ChangeLink) {
        if missing.isOpen { missing.end = max(missing.end, change.revision - 1) }
        missing.isOpen = false
        takeNewest(change)
        noteLink(change, link)
        places.append(change.place)
    }

    private mutating func takeNewest(_ change: borrowing StoredChange) {
        highest = max(highest, change.revision)
        guard change.revision <= rows?.known?.revision ?? .max else { return }
        settled[Array(change.key)] = (change.revision, change.value != nil)
    }

    private mutating func noteLink(_ change: borrowing StoredChange, _ link: ChangeLink) {
        guard let place = change.previousPlace, !link.isAfterDelete, link.carried == nil,
            !contains(place)
        else { return }
        missing.superseded.append((place, Array(change.key), change.revision))
    }

    /// Leaves out what rules did not keep: their floors come in later frames.
    private mutating func judgeLinks() {
        missing.superseded.removeAll { link in
            let floor = link.key.withUnsafeBytes { floors.revision(of: $0) }
            if floor >= link.by { return true }
            missing.linkEnd = max(missing.linkEnd, link.by)
            return places.first.map { link.place <= $0 } ?? true
        }
    }

    private func contains(_ place: HistoryPlace) -> Bool {
        var (low, high) = (0, places.count)
        while low < high {
            let middle = (low + high) / 2
            if places[middle] < place { low = middle + 1 } else { high = middle }
        }
        return low < places.count && places[low] == place
    }

    private mutating func take(_ name: String, _ text: String?, isSettled: Bool) {
        if let (floor, floors) = StoreRemains.floor(name, text) {
            ruledFloor = max(ruledFloor, floor ?? 0)
            if let floors { self.floors.raise(to: floors) }
        } else if name.hasPrefix(MetaWriter.metadataPrefix), !isSettled || isMissing(name) {
            metadata[name] = text
        }
    }

    private func isMissing(_ name: String) -> Bool {
        guard let rows else { return true }
        return rows.lacksMetadata || rows.lostMetadata.contains(name)
    }

    private mutating func takeDamaged(_ contents: Bytes, _ time: Int64) throws -> Int64 {
        var count: Int64 = 0
        try StoreLosses.readDamaged(contents, time) { change, isWhole throws(StateError) in
            if isWhole {
                count += 1
                takeNewest(change)
                missing.end = max(missing.end, change.revision)
            } else if change.key.count <= Key.maximumByteCount {
                let key = Array(change.key)
                damage.changes.append(.init(key: key, revision: change.revision))
                damage.keys.insert(key)
            }
        }
        return count
    }

    /// Finds how many rows are lost that the log has not, either.
    private mutating func noteRows() throws {
        guard let rows else { return }
        for row in rows.damagedRows { damage.keys.insert(row.key) }
        let settled = rows.known?.revision ?? .max
        var (latest, latestUnsettled): (Int64, Int64) = (0, 0)
        try rows.readRows { change in
            highest = max(highest, change.revision)
            self.settled[Array(change.key)] = nil
            guard !contains(change.place) else { return }
            if change.revision > settled {
                latestUnsettled = max(latestUnsettled, change.revision)
            } else if let first = places.first, change.place > first {
                latest = max(latest, change.revision)
            }
        }
        // A kill between the transactions of a settle leaves rows that are newer than the settled place.
        if latestUnsettled > 0, log.exists {
            missing.lines.append(
                "the database has revision \(latestUnsettled), which the log has not: changes after "
                    + "revision \(max(settled, places.last?.revision ?? 0)) may be lost"
            )
            missing.hasUncounted = true
        }
        missing.end = max(missing.end, latest, latestUnsettled)
    }

    // MARK: What is missing

    /// Rows that are lost, and of which the log has no version.
    private var lostRows: Int64 {
        guard let rows, let known = rows.known else { return 0 }
        let foundCount = settled.values.count { $0.isLive || $0.revision > known.floor }
        return max(0, known.rowCount - rows.rowCount - Int64(foundCount))
    }

    var lostRowCount: Int64 {
        isEmpty ? 0 : max(missing.changeCount + lostRows, Int64(missing.superseded.count))
    }

    /// Whether the number of lost rows is known; otherwise more may be lost.
    var isCounted: Bool { !missing.hasUncounted && (rows?.known != nil || isLogAll) }

    /// Whether the log has all changes that there ever were.
    private var isLogAll: Bool {
        log.origin == 0 && !log.hasRewrites && missing.lines.isEmpty
    }

    /// Whether every row and every change is there.
    var isEmpty: Bool {
        missing.lines.isEmpty && missing.superseded.isEmpty && lostRows == 0 && !isOfDifferentTimes
            && (rows?.known != nil || isLogAll)
    }

    private var isOfDifferentTimes: Bool {
        guard let life = log.life, let known = rows?.known else { return false }
        return ![life.number, life.before].contains(known.life)
    }

    var lostMetadata: [String] {
        guard let rows else { return [] }
        let names = rows.lostMetadata.filter { metadata[$0] == nil }
        return names + (rows.lacksMetadata && metadata.isEmpty && !isLogAll ? [""] : [])
    }

    /// From this revision on every state and every change is there.
    var wholeFrom: Int64 {
        guard let rows, let known = rows.known, rows.floors != nil, !isOfDifferentTimes else {
            return isLogAll ? max(missing.linkEnd, ruledFloor) : highest
        }
        var revision = max(known.floor, known.leastFloor, ruledFloor, missing.end, missing.linkEnd)
        if !hasAllRows { revision = max(revision, known.revision) }
        guard let first = places.first else { return max(revision, known.revision) }
        return max(revision, min(log.origin ?? .max, first.revision - 1))
    }

    /// Revisions of the new store continue above this one: no client remembers one that it will give to
    /// another change.
    var leastRevision: Int64 {
        let known = rows?.known
        let newest = max(highest, known?.revision ?? 0, known?.leastRevision ?? 0, log.origin ?? 0)
        return min(newest + 1 << 32, RevisionReservation.largestRevision)
    }

    // MARK: The report

    /// Takes what the new store serves.
    mutating func noteServed(_ change: borrowing StoredChange) {
        let key = Array(change.key)
        if damage.keys.contains(key) {
            damage.served[key] = change.value == nil ? nil : change.revision
        }
    }

    /// The damage, a sentence each.
    func lines() -> [String] {
        fileLines() + missing.lines.map { "lost: \($0)" } + rowLines() + damagedLines()
            + missing.superseded.map { lost in
                "lost: revision \(lost.place.revision) of key \(StateError.quoted(key: lost.key)); "
                    + "revision \(lost.by), which superseded it, is intact"
            }
            + lostMetadata.map { name in
                name.isEmpty
                    ? "meta cannot be read: the metadata there is lost"
                    : "lost: the metadata entry '\(StateError.printable(name))'"
            }
    }

    private func fileLines() -> [String] {
        var lines = log.notes
        if let rows {
            lines += rows.notes
            if rows.known == nil {
                lines.append("meta cannot be read: nobody knows how many rows there were")
            }
        } else if !isLogAll {
            lines.append(
                "lost: \(database) is missing: values that are not in the log any more are lost"
            )
        } else {
            lines.append("\(database) is missing; the log has all changes that there ever were")
        }
        if isOfDifferentTimes {
            lines.append("the database and the log are of different times: changes may be lost")
        }
        return lines
    }

    private func rowLines() -> [String] {
        guard let rows else { return [] }
        var lines = rows.gaps.map { gap in
            switch (gap.after, gap.before) {
            case (nil, nil): "the rows of the database cannot be read"
            case (let after?, nil): "rows after key \(StateError.quoted(key: after)) cannot be read"
            case (nil, let before?):
                "rows before key \(StateError.quoted(key: before)) cannot be read"
            case (let after?, let before?):
                "rows after key \(StateError.quoted(key: after)) and before key "
                    + "\(StateError.quoted(key: before)) cannot be read"
            }
        }
        if let known = rows.known, lostRows > 0 {
            lines.append("the database had \(known.rowCount) rows, \(rows.rowCount) are intact")
        }
        return lines
    }

    private func damagedLines() -> [String] {
        let found = (rows?.damagedRows ?? []).sorted { $0.key.lexicographicallyPrecedes($1.key) }
        return (found.map { ($0, "the row") } + damage.changes.map { ($0, "a change in the log") })
            .map { row, what in
                let rest =
                    damage.served[row.key].map {
                        "the newest intact version of that key has revision \($0)"
                    }
                    ?? "no intact version of that key is left"
                return
                    "damaged: \(what) of key \(StateError.quoted(key: row.key)), apparently revision "
                    + "\(row.revision); \(rest)"
            }
    }
}
