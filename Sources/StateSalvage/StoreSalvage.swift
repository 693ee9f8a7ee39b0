import Glibc
import StateEngine
import StateLog
import StateModel
import StateSQLite
import StateSystem

/// Copies what is whole of a damaged store into a new one, and reports what is missing; the
/// damaged store is only read.
///
/// The new store has another epoch and its revisions rise by 2^32, like those of a copy: lost changes
/// may have been acknowledged. Changes keep their revisions. Of each key the newest whole version
/// counts, whether a row has it or the log; if anything is lost, history before it is not available
/// (`COMPACTED`).
///
/// Rows are read by SQL (``StoreRemains``), frames of the log one by one (``LogRemains``), also behind
/// others that are damaged. What is lost is known from the number of rows, from what segments say of
/// each other and of their contents, and from changes that name those before them.
package struct StoreSalvage {
    /// The result.
    package struct Summary: Hashable, Sendable {
        /// Changes in the new store.
        package var rowCount: Int64
        /// Keys with a value.
        package var entryCount: Int
        /// Revisions of the new store continue above this one.
        package var revision: Int64
        /// Whether everything in the damaged store was intact, metadata, too.
        package var isWhole: Bool
        /// Whether every row and every change of the log was intact.
        package var hasAllRows: Bool
        /// Rows and changes that are lost.
        package var lostRowCount: Int64
        /// Whether it is known how many there were; otherwise more may be lost.
        package var isCounted: Bool
        /// Lost metadata entries: the positions of handlers.
        package var lostMetadataCount: Int
    }

    private let source: StoreLocation
    private let target: String
    private let report: (String) -> Void
    private let progress: (Int64) -> Void

    /// - Parameters:
    ///   - store: The data directory of the damaged store, or a store that is a single file.
    ///   - target: The directory of the new store, which is created if it is missing.
    ///   - report: Called for each loss, with a sentence.
    ///   - progress: Called periodically with the number of rows read so far.
    package init(
        store: String,
        target: String,
        report: @escaping (String) -> Void,
        progress: @escaping (Int64) -> Void = { _ in }
    ) {
        source = StoreLocation(existing: store)
        self.target = target
        self.report = report
        self.progress = progress
    }

    /// Makes the new store; if this throws, there is none.
    ///
    /// - Throws: ``StateError``: ``StateError/Code/locked`` if a process owns the damaged store,
    ///   ``StateError/Code/newerFormat``, ``StateError/Code/corrupt`` if it contains nothing to
    ///   salvage, ``StateError/Code/storage`` if `target` has a store already, or cannot be
    ///   written.
    /// - Complexity: O(*n*) in the bytes of the store, which is read twice; memory for a segment of the
    ///   log, and for the place and the key of each change in it.
    package func run() throws -> Summary {
        try source.requireFiles()
        if let owner = try OwnerLock.owner(path: source.lock, of: source.database) {
            throw StateError(.locked, "\(source.database) is owned by \(owner); stop it first")
        }
        let hasDatabase = FileIdentity(path: source.database) != nil
        guard hasDatabase || access(source.logDirectory, F_OK) == 0 else {
            throw StateError(
                .storage,
                "there is no store at \(source.database): \(lastSystemError())"
            )
        }
        let before = footprints
        let store = try NewStore(directory: target)
        let rows =
            hasDatabase
            ? try StoreRemains(
                source,
                scratch: store.scratch,
                recovering: SQLiteShell.recover,
                progress
            ) : nil
        let log = try openLog(rows)
        var losses = StoreLosses(rows, database: source.database)
        try losses.survey(log, directory: source.logDirectory)
        guard losses.hasAnything else {
            throw StateError(
                .corrupt,
                "\(source.database) contains nothing to salvage: neither a row nor a change in its "
                    + "log is intact"
            )
        }
        try copy(rows, log, losses, to: store)
        guard footprints == before,
            try OwnerLock.owner(path: source.lock, of: source.database) == nil
        else {
            throw StateError(
                .storage,
                "\(source.database) was changed by another process; try again"
            )
        }
        let loaded = try store.open { losses.noteServed($0) }
        let found = try store.check(progress)
        guard loaded.revision == losses.leastRevision else {
            throw StateError(.corrupt, "the new store continues after revision \(loaded.revision)")
        }
        try store.keep()
        for line in losses.lines() { report(line) }
        return Summary(
            rowCount: found.rowCount,
            entryCount: found.entryCount,
            revision: losses.leastRevision,
            isWhole: losses.isEmpty && losses.lostMetadata.isEmpty,
            hasAllRows: losses.isEmpty,
            lostRowCount: losses.lostRowCount,
            isCounted: losses.isCounted,
            lostMetadataCount: losses.lostMetadata.count
        )
    }

    private func openLog(_ rows: StoreRemains?) throws(StateError) -> LogRemains? {
        guard access(source.logDirectory, F_OK) == 0 else { return nil }
        // It is that of the store that this one was copied from.
        if rows?.known?.isNewCopy ?? false { return nil }
        let files: LogDirectory
        do throws(LogFileFailure) {
            files = try LogDirectory(reading: source.logDirectory)
        } catch {
            throw StateError(
                .storage,
                "\(source.logDirectory) cannot be opened: \(error.sentence)"
            )
        }
        let known = rows?.known
        return try LogRemains(files, of: known?.log, from: known?.place ?? .none)
    }

    private func copy(
        _ rows: StoreRemains?,
        _ log: LogRemains?,
        _ losses: StoreLosses,
        to store: NewStore
    ) throws {
        let base = losses.wholeFrom
        let draft = try store.makeDraft(base: base)
        try rows?.readRows { change in
            if change.revision <= base { try draft.put(change) }
        }
        try losses.forEachChange(log) { change, link throws(StateError) in
            if change.revision > base {
                try draft.append(change, link)
            } else if losses.isSettled(change.revision) {
                try draft.remember(change)
            } else {
                try draft.put(change)
            }
        }
        try draft.finish(
            StoreDraft.Ending(
                leastRevision: losses.leastRevision,
                floors: losses.floors,
                // A copy of a cluster that lacks rows must be compared.
                metadata: losses.metadata.filter { $0.key != MirrorPosition.metadataName }
            )
        )
    }

    /// What changes with the contents of the files.
    private var footprints: [ObservedStore.Footprint?] {
        let directory = source.logDirectory
        let names =
            (try? LogDirectory(reading: directory)).flatMap { try? $0.names() }?.sorted() ?? []
        return ObservedStore.footprints(of: source)
            + names.map { ObservedStore.Footprint(path: directory + "/" + $0) }
    }
}
