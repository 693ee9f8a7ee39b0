import StateEngine
import StateModel
import StateSQLite

/// Makes a store from a backup, or from one and the changes since.
///
/// The new store has another epoch and its revisions rise by 2^32, like those of a copy: clients may
/// have seen later commits of the other store. Rows keep their revisions, owners and times.
package struct StoreRestore {
    /// The result.
    package struct Summary: Hashable, Sendable {
        /// Rows in the new store.
        package var rowCount: Int64
        /// Keys with a value.
        package var entryCount: Int
        /// Revisions of the new store continue above this one.
        package var revision: Int64
        /// The revision of the backup.
        package var backupRevision: Int64
    }

    private let files: [String]
    private let target: String
    private let progress: (Int64) -> Void

    /// - Parameters:
    ///   - files: A whole backup, then backups since the one before each; `-` is standard input.
    ///   - target: The directory of the new store, which must not exist.
    ///   - progress: Called periodically with the number of rows restored so far.
    package init(
        files: [String],
        target: String,
        progress: @escaping (Int64) -> Void = { _ in }
    ) {
        (self.files, self.target, self.progress) = (files, target, progress)
    }

    /// Makes the new store; if this throws, nothing is left of it.
    ///
    /// What others have put at `target`, before or meanwhile, stays.
    ///
    /// - Throws: ``StateError``: ``StateError/Code/storage`` if `target` exists or cannot be written,
    ///   ``StateError/Code/locked`` if another process makes a store there meanwhile,
    ///   ``StateError/Code/noSpace``, ``StateError/Code/corrupt``, naming the file and the piece,
    ///   ``StateError/Code/err`` if the files do not follow one another.
    /// - Complexity: O(*n*) in the bytes of the backup, which are checked while they are read, and
    ///   once more in the new store; memory for a piece.
    package func run() throws -> Summary {
        // Before anything is read: from here on, no other process makes a store there.
        let store = try NewStore(directory: target, isNew: true)
        let readers = try files.map { file throws(StateError) in try BackupReader(path: file) }
        try requireSeries(readers)
        let (revision, leastRevision) = try restore(readers, store)
        let found = try store.check(progress)
        try readers.last?.requireKeys(found.entryCount)
        try store.keep()
        return Summary(
            rowCount: found.rowCount,
            entryCount: found.entryCount,
            revision: leastRevision,
            backupRevision: revision
        )
    }

    /// Each backup begins where the one before ends, or earlier.
    private func requireSeries(_ readers: [BackupReader]) throws(StateError) {
        var last: BackupReader?
        for reader in readers {
            let since = reader.head.number("since") ?? 0
            defer { last = reader }
            guard let last else {
                guard since == 0 else {
                    throw StateError(
                        .err,
                        "\(reader.name) has only the changes since revision \(since): name the "
                            + "whole backup before it"
                    )
                }
                continue
            }
            guard since > 0, since <= last.head.number("revision") ?? 0,
                reader.head.text("epoch") == last.head.text("epoch")
            else {
                throw StateError(.err, "\(reader.name) does not continue \(last.name)")
            }
        }
    }

    private func restore(
        _ readers: [BackupReader],
        _ store: NewStore
    ) throws -> (Int64, leastRevision: Int64) {
        var state = Restoring(store: store, progress: progress)
        for reader in readers {
            state.metadata = [:]
            while let frame = try reader.next() { try state.take(frame, of: reader) }
        }
        guard let revision = readers.last?.head.number("revision"), revision >= state.last.revision,
            revision <= RevisionReservation.largestRevision - 1 << 32
        else {
            throw StateError(.corrupt, "\(files.last ?? ""): its revision cannot be right")
        }
        let leastRevision = revision + 1 << 32
        try store.finish(
            compacted: state.compacted,
            leastRevision: leastRevision,
            floors: state.floors,
            metadata: state.metadata
        ) {}
        return (revision, leastRevision)
    }
}

/// What is restored so far.
private struct Restoring {
    let store: NewStore
    let progress: (Int64) -> Void
    var last = HistoryPlace(revision: 0, ordinal: -1)
    var metadata: [String: String] = [:]
    /// The highest of all backups: later changes are all there.
    ///
    /// Between two of them deletes may have been compacted that the first has, and that changes in
    /// the second do not name.
    var compacted: Int64 = 0
    var floors = HistoryFloors()
    private var rowCount: Int64 = 0

    init(store: NewStore, progress: @escaping (Int64) -> Void) {
        (self.store, self.progress) = (store, progress)
    }

    mutating func take(_ frame: BackupFrame, of reader: BackupReader) throws {
        switch frame.kind {
        case .head: break
        case .metadata: try takeMetadata(frame, reader)
        case .rows: try takeRows(frame, reader)
        case .end: try takeEnd(frame, reader)
        }
    }

    private mutating func takeRows(_ frame: BackupFrame, _ reader: BackupReader) throws {
        let known = last
        var newCount = 0
        var isPossible = true
        let isReadable = frame.payload.withUnsafeBytes { bytes in
            StoredChange.forEachBackupRow(in: bytes, count: frame.itemCount) { change in
                // Two backups may overlap.
                guard change.place > last else { return }
                last = change.place
                newCount += 1
                isPossible = isPossible && change.isPossible
            }
        }
        guard isReadable, isPossible else { throw reader.unreadable(frame) }
        try frame.payload.withUnsafeBytes { bytes in
            try store.append(rowCount: newCount) { append throws(SQLiteFailure) in
                var newest = known
                _ = try StoredChange.forEachBackupRow(in: bytes, count: frame.itemCount) {
                    change throws(SQLiteFailure) in
                    guard change.place > newest else { return }
                    newest = change.place
                    try append(change)
                }
            }
        }
        rowCount += Int64(newCount)
        progress(rowCount)
    }

    /// Names and texts, each after its length.
    private mutating func takeMetadata(_ frame: BackupFrame, _ reader: BackupReader) throws {
        var rest = frame.payload[...]
        func next() -> String? {
            guard rest.count >= 4 else { return nil }
            let count = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(4)
            guard rest.count >= count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return String(decoding: rest.prefix(count), as: UTF8.self)
        }
        for _ in 0..<frame.itemCount {
            guard let name = next(), let text = next() else { throw reader.unreadable(frame) }
            metadata[name] = text
        }
    }

    private mutating func takeEnd(_ frame: BackupFrame, _ reader: BackupReader) throws {
        guard let compacted = frame.number("compacted") else { throw reader.unreadable(frame) }
        self.compacted = max(self.compacted, compacted)
        let lines = String(decoding: frame.payload, as: UTF8.self).split(separator: "\n")
            .filter { $0.hasPrefix("floor ") }.map { $0.dropFirst("floor ".count) }
        guard let floors = HistoryFloors(lines.joined(separator: "\n")) else {
            throw reader.unreadable(frame)
        }
        self.floors.raise(to: floors)
    }
}
