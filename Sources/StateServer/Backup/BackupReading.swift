import StateEngine
import StateModel
import StateSystem
import StateWire

/// Reads the store at one revision, in pieces of about 256 KiB.
///
/// What is read does not change, because settling and compaction pause while pieces are asked for; if
/// something was removed since the beginning nevertheless, the backup fails.
///
/// First come the newest changes of keys up to a floor, which the store has in rows, in the order of keys;
/// then the changes after it. The floor is that of the history, or, where that begins later, as of a store
/// that keeps none, the end of the rows. With history, a change that has superseded one up to the
/// floor comes after that one. Without, changes are read twice: a change names the one that it supersedes,
/// so the first time finds which are superseded at the revision, with 16 bytes of memory each.
///
/// The history thread uses it while a ``BackupJob`` reads, the loop thread before and after: the proof
/// of `@unchecked Sendable`.
final class BackupReading: @unchecked Sendable {
    private let revision: Int64
    private let since: Int64
    private let includesHistory: Bool
    private let compaction: any CompactingBacking
    private var writer = BackupWriter()
    private var piece: [UInt8] = []
    private(set) var hasEnded = false

    /// The removals when the reading began, and that which was under way then.
    private let removalCount: Int
    /// Whether it was checked that nothing is missing.
    private var isWhole = false
    private var place: HistoryPlace
    /// Where it begins; known once it is whole.
    private struct Beginning {
        /// The rows end there, and the changes begin.
        var floor: Int64 = 0
        /// The oldest state that the history has.
        var oldest: Int64 = 0
        /// No row has a change after it; 0 without rows, and for a backup of changes only.
        var lastRowRevision: Int64 = 0
    }
    private var beginning = Beginning()
    /// The last key whose row was read, and whether all were.
    private var rows = (lastKey: nil as [UInt8]?, areRead: false)
    /// What rows up to the revision supersede, in order once it is complete; nil with history.
    private var superseded: [HistoryPlace]?
    private var isSupersededComplete = false

    /// What was read of the changes, and not passed on yet.
    private struct Held {
        /// The changes, and what they superseded, as rows.
        var (newer, newerCount): ([UInt8], Int) = ([], 0)
        var (older, olderCount): ([UInt8], Int) = ([], 0)
        /// Superseded changes that are in the log themselves; it cannot be asked while it passes changes.
        var olderPlaces: [HistoryPlace] = []
        /// Whether no more changes follow.
        var isLast = false
    }
    private var held = Held()

    private static let pieceByteCount = 256 << 10

    init(
        at revision: Int64,
        since: Int64,
        includesHistory: Bool,
        _ compaction: any CompactingBacking
    ) {
        (self.revision, self.since) = (revision, since)
        (self.includesHistory, self.compaction) = (includesHistory, compaction)
        let count = compaction.removalCount
        removalCount = count + count % 2
        place = .end(of: since)
        superseded = includesHistory ? nil : []
    }

    /// Bytes that it holds.
    var byteCount: Int {
        piece.count + held.newer.count + held.older.count
            + ((superseded?.count ?? 0) + held.olderPlaces.count) * 16
    }

    // MARK: On the loop thread

    /// The beginning of the file; readers of the rows compare their keys with `keyCount`.
    func begin(epoch: Epoch, keyCount: Int, version: String, time: Int64) -> [UInt8] {
        BackupFrame.magic
            + writer.frame(
                .head,
                [
                    ("version", version), ("epoch", epoch.description),
                    ("revision", "\(revision)"), ("since", "\(since)"),
                    ("history", includesHistory ? "yes" : "no"), ("keys", "\(keyCount)"),
                    ("time", "\(time)"),
                ]
            )
    }

    /// The frame of the handlers' records, as they are with the revision; empty if there are none.
    func metadata(_ core: borrowing KeyspaceCore) -> [UInt8] {
        var payload: [UInt8] = []
        var count = 0
        core.forEachDurableMetadataEntry { name, text in
            for part in [name, text] {
                payload.append(littleEndian: UInt32(part.utf8.count))
                payload += part.utf8
            }
            count += 1
        }
        return count == 0 ? [] : writer.frame(.metadata, itemCount: count, payload)
    }

    func takePiece() -> [UInt8] {
        defer { piece = [] }
        return piece
    }

    // MARK: On the history thread

    /// Reads the next piece, which may be empty.
    ///
    /// - Returns: Whether there is one; if not, it goes on later.
    func readPiece(of history: any HistoryReading) throws -> Bool {
        let before = compaction.removalCount
        // Only while a transaction ends that began before the pause.
        guard before % 2 == 0 || before > removalCount else {
            BlockingSemaphore().wait(nanoseconds: 1_000_000)
            return false
        }
        guard before == removalCount else { throw BackupReading.wasCompacted }
        let frame = try history.snapshot { compacted in
            try requireWhole(history, compacted)
            if !includesHistory, !isSupersededComplete {
                try findSuperseded(history)
                return [UInt8]()
            }
            if let settled = history as? any SettledReading, !rows.areRead {
                return try readRows(settled)
            }
            return try readChanges(history)
        }
        guard compaction.removalCount == removalCount else { throw BackupReading.wasCompacted }
        piece = frame
        return true
    }

    private static var wasCompacted: StateError {
        StateError(.compacted, "the history was compacted during the backup; begin again")
    }

    /// No value of the revision may be missing, and none of the changes since another backup.
    ///
    /// Storage is ahead of what is published: it may have compacted up to a later commit before the
    /// pause.
    private func requireWhole(_ history: any HistoryReading, _ compacted: Int64) throws {
        guard !isWhole else { return }
        let ruled = try history.floors().highest
        if since > 0, max(compacted, ruled) > since {
            throw StateError.compacted(since, oldest: max(compacted, ruled))
        }
        (beginning.floor, beginning.oldest) = (compacted, min(compacted, revision))
        if let settled = history as? any SettledReading {
            guard settled.lastRowRevision <= revision else { throw BackupReading.wasCompacted }
            rows.areRead = since > 0
            if since == 0 {
                beginning.floor = min(compacted, settled.settledRevision)
                beginning.lastRowRevision = settled.lastRowRevision
                place = .end(of: beginning.floor)
            }
        }
        guard max(beginning.floor, ruled) <= revision else { throw BackupReading.wasCompacted }
        isWhole = true
    }

    private func findSuperseded(_ history: any HistoryReading) throws {
        var budget = HistoryBudget(byteCount: .max)
        let isAtEnd = try history.forEachChange(after: place, through: revision) { change in
            place = change.place
            if let previous = change.previousPlace { superseded?.append(previous) }
            return budget.take(byteCount: 1)
        }
        guard isAtEnd else { return }
        superseded?.sort()
        isSupersededComplete = true
        place = .end(of: history is any SettledReading ? max(since, beginning.floor) : since)
    }

    /// The newest changes of keys up to the floor.
    private func readRows(_ settled: any SettledReading) throws -> [UInt8] {
        var budget = HistoryBudget(byteCount: BackupReading.pieceByteCount)
        var payload: [UInt8] = []
        var count = 0
        rows.areRead = try settled.forEachRow(after: rows.lastKey) { row in
            rows.lastKey = Array(row.key)
            let before = payload.count
            if row.revision <= beginning.floor, !isSuperseded(row.place) {
                row.appendBackupRow(to: &payload)
                count += 1
            }
            return budget.take(byteCount: payload.count - before)
        }
        return count > 0 ? writer.frame(.rows, itemCount: count, payload) : []
    }

    private func readChanges(_ history: any HistoryReading) throws -> [UInt8] {
        if held.newer.isEmpty, held.olderPlaces.isEmpty { try passChanges(history) }
        // What is superseded comes first, in pieces of its own if it is long.
        while let place = held.olderPlaces.last {
            guard held.older.count < BackupReading.pieceByteCount else { return takeOlder() }
            let isThere = try history.withChange(at: place, supersededBy: nil) {
                $0.appendBackupRow(to: &held.older)
            }
            if isThere { held.olderCount += 1 }
            held.olderPlaces.removeLast()
        }
        let rows = takeOlder() + frame(&held.newerCount, &held.newer)
        guard held.isLast else { return rows }
        hasEnded = true
        // Without history, it begins here.
        let floors = includesHistory ? try history.floors().text : ""
        let lines =
            [(name: "compacted", value: "\(includesHistory ? beginning.oldest : revision)")]
            + floors.split(separator: "\n").map { (name: "floor", value: String($0)) }
        return rows + writer.end(lines)
    }

    private func takeOlder() -> [UInt8] { frame(&held.olderCount, &held.older) }

    /// The frame of some rows, which are taken; empty if there are none.
    private func frame(_ count: inout Int, _ rows: inout [UInt8]) -> [UInt8] {
        defer { (count, rows) = (0, []) }
        return count > 0 ? writer.frame(.rows, itemCount: count, rows) : []
    }

    /// Takes the next changes, and the versions that they carry.
    private func passChanges(_ history: any HistoryReading) throws {
        var budget = HistoryBudget(byteCount: BackupReading.pieceByteCount)
        func pass(_ change: borrowing StoredChange, _ carried: PastChange?) -> Bool {
            place = change.place
            let before = held.newer.count + held.older.count
            if includesHistory || !isSuperseded(place) {
                change.appendBackupRow(to: &held.newer)
                held.newerCount += 1
            }
            if let previous = change.previousPlace, lacksRow(of: previous, before: change.revision)
            {
                if let carried {
                    carried.withChange(of: change.key) { $0.appendBackupRow(to: &held.older) }
                    held.olderCount += 1
                } else {
                    held.olderPlaces.append(previous)
                }
            }
            return budget.take(byteCount: held.newer.count + held.older.count - before)
        }
        if let rows = history as? any SettledReading {
            held.isLast = try rows.forEachCarryingChange(after: place, through: revision, pass)
        } else {
            held.isLast = try history.forEachChange(after: place, through: revision) {
                pass($0, nil)
            }
        }
        // In their order each frame of the log is read once; the next one is the last.
        held.olderPlaces.sort(by: >)
    }

    /// Whether what a change superseded belongs to the state at the floor, and its row may have a later
    /// change of the key.
    private func lacksRow(of previous: HistoryPlace, before revision: Int64) -> Bool {
        includesHistory && previous.revision <= beginning.floor
            && revision <= beginning.lastRowRevision
    }

    /// Whether a later change up to the revision supersedes one.
    ///
    /// Deletes are passed, too: if compaction has removed the successor of an older row, nothing else
    /// shows that the key was deleted.
    private func isSuperseded(_ place: HistoryPlace) -> Bool {
        guard let superseded else { return false }
        var (low, high) = (0, superseded.count)
        while low < high {
            let middle = (low + high) / 2
            if superseded[middle] < place { low = middle + 1 } else { high = middle }
        }
        return low < superseded.count && superseded[low] == place
    }
}
