import StateEngine
import StateModel
import StateWire

/// Reads the store at one revision, in pieces of about 256 KiB.
///
/// The rows up to the revision do not change, and compaction pauses while pieces are asked for; if it
/// has removed something since the beginning nevertheless, the backup fails. With history, all rows are passed on. Without,
/// the rows are read twice: a row names the one that it supersedes, so the first time finds which are
/// superseded at the revision, with 16 bytes of memory each.
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
    /// What rows up to the revision supersede, in order once it is complete; nil with history.
    private var superseded: [HistoryPlace]?
    private var isSupersededComplete = false
    /// The first of them that is not before ``place``.
    private var nextSuperseded = 0

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
    var byteCount: Int { piece.count + (superseded?.count ?? 0) * 16 }

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

    /// The frame of the handlers' records; empty if there are none.
    func metadata(_ context: inout CommandContext) -> [UInt8] {
        var payload: [UInt8] = []
        var count = 0
        context.core.forEachMetadataEntry(&context.receipt) { name, text in
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
        guard before % 2 == 0 || before > removalCount else { return false }
        guard before == removalCount else { throw BackupReading.wasCompacted }
        let frame = try history.snapshot { compacted in
            try requireWhole(history, compacted)
            if !includesHistory, !isSupersededComplete {
                try findSuperseded(history)
                return [UInt8]()
            }
            return try readRows(history, compacted)
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
        let oldest = max(compacted, try history.floors().highest)
        guard oldest <= revision else { throw BackupReading.wasCompacted }
        if since > 0, oldest > since { throw StateError.compacted(since, oldest: oldest) }
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
        place = .end(of: 0)
    }

    private func readRows(_ history: any HistoryReading, _ compacted: Int64) throws -> [UInt8] {
        var budget = HistoryBudget(byteCount: BackupReading.pieceByteCount)
        var payload: [UInt8] = []
        var count = 0
        let isAtEnd = try history.forEachChange(after: place, through: revision) { change in
            place = change.place
            let before = payload.count
            let isPassed = includesHistory ? true : isLast(change)
            if isPassed {
                change.appendBackupRow(to: &payload)
                count += 1
            }
            return budget.take(byteCount: payload.count - before)
        }
        let rows = count > 0 ? writer.frame(.rows, itemCount: count, payload) : []
        guard isAtEnd else { return rows }
        hasEnded = true
        // Without history, it begins here.
        let floors = includesHistory ? try history.floors().text : ""
        let lines =
            [(name: "compacted", value: "\(includesHistory ? compacted : revision)")]
            + floors.split(separator: "\n").map { (name: "floor", value: String($0)) }
        return rows + writer.end(lines)
    }

    /// Whether no later row up to the revision supersedes a row.
    ///
    /// Deletes are passed, too: if compaction has removed the successor of an older row, nothing else
    /// shows that the key was deleted.
    private func isLast(_ change: borrowing StoredChange) -> Bool {
        guard let superseded else { return false }
        let place = change.place
        while nextSuperseded < superseded.count, superseded[nextSuperseded] < place {
            nextSuperseded += 1
        }
        return nextSuperseded == superseded.count || superseded[nextSuperseded] != place
    }
}
