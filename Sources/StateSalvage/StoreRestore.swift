import Glibc
import StateEngine
import StateModel
import StateSQLite
import StateSystem

/// Makes a settled store from a backup, or from one and the changes since.
///
/// The new store has another epoch and its revisions rise by 2^32, like those of a copy: clients may
/// have seen later commits of the other store. Changes keep their revisions, owners and times. What was
/// live at the revision at which the history of the backup begins becomes rows of the database; later
/// changes go to the log.
///
/// The files are read twice: only their ends say where the history begins.
package struct StoreRestore {
    /// The result.
    package struct Summary: Hashable, Sendable {
        /// Rows and changes in the new store.
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
    /// - Complexity: O(*n*) in the bytes of the backup, which are checked before anything is written,
    ///   and once more in the new store; memory for a transaction. What is not a file is copied to
    ///   the disk first.
    package func run() throws -> Summary {
        do { return try make() } catch let error as StateError where error.code == .noSpace {
            throw StateError(
                .noSpace,
                "the disk of \(target) is full, and nothing was restored: \(error.message)"
            )
        }
    }

    private func make() throws -> Summary {
        // Before anything is read: from here on, no other process makes a store there.
        let store = try NewStore(directory: target, isNew: true)
        var sources: [BackupSource] = []
        for file in files { sources.append(try BackupSource(file, spoolingIn: target)) }
        let readers = try sources.map { source throws(StateError) in try source.reader() }
        try BackupSource.requireSeries(readers)
        var found = BackupContents()
        for reader in readers { try found.read(reader) }
        guard let revision = readers.last?.head.number("revision"), revision >= found.last,
            revision <= RevisionReservation.largestRevision - 1 << 32
        else {
            throw StateError(.corrupt, "\(files.last ?? ""): its revision cannot be right")
        }
        let leastRevision = revision + 1 << 32
        try write(sources, found, leastRevision, to: store)
        let loaded = try store.open { _ in }
        let summary = try store.check(progress)
        try readers.last?.requireKeys(summary.entryCount)
        guard loaded.revision == leastRevision else {
            throw StateError(.corrupt, "the new store continues after revision \(loaded.revision)")
        }
        try store.keep()
        return Summary(
            rowCount: summary.rowCount,
            entryCount: summary.entryCount,
            revision: leastRevision,
            backupRevision: revision
        )
    }

    private func write(
        _ sources: [BackupSource],
        _ found: BackupContents,
        _ leastRevision: Int64,
        to store: NewStore
    ) throws {
        let draft = try store.makeDraft(base: found.compacted)
        var rowCount: Int64 = 0
        // Two backups may overlap: those before have everything up to there.
        var known: Int64 = 0
        for source in sources {
            let reader = try source.reader()
            defer { known = reader.head.number("revision") ?? 0 }
            while let frame = try reader.next() {
                guard frame.kind == .rows else { continue }
                let isReadable = try frame.payload.withUnsafeBytes { bytes throws in
                    try StoredChange.forEachBackupRow(in: bytes, count: frame.itemCount) {
                        (change: borrowing StoredChange) throws(StateError) in
                        guard change.revision > known else { return }
                        rowCount += 1
                        if change.revision <= found.compacted {
                            try draft.put(change)
                        } else {
                            try draft.append(change)
                        }
                    }
                }
                guard isReadable else { throw reader.unreadable(frame) }
                progress(rowCount)
            }
        }
        guard rowCount == found.rowCount else {
            throw StateError(.storage, "\(files.last ?? "") was changed meanwhile; try again")
        }
        try draft.finish(
            StoreDraft.Ending(
                leastRevision: leastRevision,
                floors: found.floors,
                metadata: found.metadata
            )
        )
    }
}

/// What a series of backups has besides its rows.
private struct BackupContents {
    /// The highest revision of a row.
    private(set) var last: Int64 = 0
    /// The backups that were read have everything up to there.
    private var known: Int64 = 0
    private(set) var rowCount: Int64 = 0
    private(set) var metadata: [String: String] = [:]
    /// The highest of all backups: later changes are all there.
    ///
    /// Between two of them deletes may have been compacted that the first has, and that changes in
    /// the second do not name.
    private(set) var compacted: Int64 = 0
    private(set) var floors = HistoryFloors()

    /// Reads the next backup of the series, and checks all of it.
    mutating func read(_ reader: BackupReader) throws(StateError) {
        metadata = [:]
        defer { known = reader.head.number("revision") ?? 0 }
        while let frame = try reader.next() {
            switch frame.kind {
            case .head: break
            case .metadata: try takeMetadata(frame, reader)
            case .rows: try takeRows(frame, reader)
            case .end: try takeEnd(frame, reader)
            }
        }
    }

    private mutating func takeRows(
        _ frame: BackupFrame,
        _ reader: BackupReader
    ) throws(StateError) {
        var isPossible = true
        let isReadable = frame.payload.withUnsafeBytes { bytes in
            StoredChange.forEachBackupRow(in: bytes, count: frame.itemCount) { change in
                guard change.revision > known else { return }
                last = max(last, change.revision)
                rowCount += 1
                isPossible = isPossible && change.isPossible
            }
        }
        guard isReadable, isPossible else { throw reader.unreadable(frame) }
    }

    /// Names and texts, each after its length.
    private mutating func takeMetadata(
        _ frame: BackupFrame,
        _ reader: BackupReader
    ) throws(StateError) {
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
            guard let name = next(), let text = next(),
                name.hasPrefix(MetaWriter.metadataPrefix)
            else { throw reader.unreadable(frame) }
            metadata[name] = text
        }
    }

    private mutating func takeEnd(
        _ frame: BackupFrame,
        _ reader: BackupReader
    ) throws(StateError) {
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

/// A backup that can be read again: a file, or a copy of what came through a pipe.
private final class BackupSource {
    private let path: String
    private let name: String
    /// That of the copy, which has no name any more; -1 without one.
    private let descriptor: Int32

    /// - Parameters:
    ///   - file: A path; `-` is standard input.
    ///   - directory: Where a copy has room.
    /// - Throws: ``StateError/Code/storage`` or ``StateError/Code/noSpace``.
    init(_ file: String, spoolingIn directory: String) throws(StateError) {
        name = file == "-" ? "standard input" : file
        var status = stat()
        let isFile =
            file != "-" && (stat(file, &status) != 0 || status.st_mode & S_IFMT == S_IFREG)
        if isFile {
            (path, descriptor) = (file, -1)
            return
        }
        let copy = directory + "/stated.db.salvage.backup"
        let opened = open(copy, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard opened >= 0 else {
            throw StateError(.storage, "\(copy) cannot be created: \(lastSystemError())")
        }
        unlink(copy)
        (path, descriptor) = ("/dev/fd/\(opened)", opened)
        try BackupSource.spool(file, name, to: opened)
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    private static func spool(
        _ file: String,
        _ name: String,
        to target: Int32
    ) throws(StateError) {
        let source: Int32
        do throws(OpenFailure) {
            source = file == "-" ? STDIN_FILENO : try NamedFile.open(file, O_RDONLY, as: .stream)
        } catch {
            throw StateError(.storage, error.sentence(file))
        }
        defer { if source != STDIN_FILENO { close(source) } }
        var piece = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = Glibc.read(source, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                throw StateError(.storage, "\(name) cannot be read: \(lastSystemError())")
            }
            if count == 0 { return }
            var written = 0
            while written < count {
                let step = piece.withUnsafeBytes { bytes in
                    Glibc.write(target, bytes.baseAddress.map { $0 + written }, count - written)
                }
                if step < 0, errno == EINTR { continue }
                guard step > 0 else {
                    throw StateError(
                        errno == ENOSPC || errno == EDQUOT ? .noSpace : .storage,
                        "a copy of \(name) cannot be written: \(lastSystemError())"
                    )
                }
                written += step
            }
        }
    }

    /// Begins to read it.
    func reader() throws(StateError) -> BackupReader { try BackupReader(path: path, named: name) }

    /// Each backup begins where the one before ends, or earlier.
    static func requireSeries(_ readers: [BackupReader]) throws(StateError) {
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
}
