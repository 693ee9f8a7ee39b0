import StateEngine
import StateSQLite
import StateSystem

/// Copies the intact rows of a damaged store into a new one, and reports the others; the damaged
/// store is only read.
///
/// The new store has another epoch and its revisions rise by 2^32, like those of a copy: lost
/// changes may have been acknowledged. Rows keep their revisions. If the newest row of a key is
/// lost, the newest intact row is used; if anything is lost, history before it is not available
/// (`COMPACTED`).
///
/// Frames of the log behind a damaged frame are read too (``LogPages``). If the stamp of the store
/// says that more was acknowledged than is found, that is a loss.
///
/// The pages are read one by one, not by SQLite, which needs an intact header and intact pages on
/// the way to each row. The checksum in each row makes that simple. See ``FoundHistory``.
package struct StoreSalvage {
    /// The result.
    package struct Summary: Hashable, Sendable {
        /// Rows in the new store.
        package var rowCount: Int64
        /// Keys with a value.
        package var entryCount: Int
        /// Revisions of the new store continue above this one.
        package var revision: Int64
        /// Whether every row and all metadata of the damaged store were intact.
        package var isWhole: Bool
        /// Whether every row was intact.
        package var hasAllRows: Bool
        /// Rows that are lost.
        package var lostRowCount: Int64
        /// Whether the number of rows in the damaged store is known; otherwise more may be lost.
        package var isCounted: Bool
        /// Lost metadata entries: the positions of handlers.
        ///
        /// Those on unreadable pages are not counted.
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
    ///   - progress: Called periodically with the number of rows copied so far.
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
    /// - Complexity: O(*n*) in the bytes of the store; memory for each row's place and each key.
    package func run() throws -> Summary {
        try source.requireFiles()
        if let owner = try OwnerLock.owner(path: source.lock, of: source.database) {
            throw StateError(.locked, "\(source.database) is owned by \(owner); stop it first")
        }
        let footprints = ObservedStore.footprints(of: source)
        let stamp = StoreStamp(reading: source.stamp)
        let acknowledged = stamp.acknowledged
        let found = FoundHistory(
            try StorePages(source, acknowledged: acknowledged.log?.position)
        )
        try requireStore(found)
        let generation = found.map.meta.values[.generation].flatMap(UInt64.init)
        var losses = LossReport(
            found,
            acknowledged: stamp.mayBeOf(generation: generation)
                ? acknowledged : AcknowledgedCommit()
        )
        let store = try NewStore(directory: target)
        try copy(found, to: store, &losses)
        try copyDeferred(by: generation, behind: found, to: store, &losses)
        try store.finish(
            compacted: losses.wholeFrom,
            leastRevision: losses.leastRevision,
            floors: found.map.floors,
            // A copy of a cluster that lacks rows must be compared.
            metadata: found.map.meta.metadata.filter { $0.key != MirrorPosition.metadataName }
        ) {
            guard ObservedStore.footprints(of: source) == footprints,
                try OwnerLock.owner(path: source.lock, of: source.database) == nil
            else { throw changed }
        }
        try store.keep()
        for line in losses.lines() { report(line) }
        return Summary(found, losses)
    }

    /// Copies the intact rows.
    private func copy(
        _ found: FoundHistory,
        to store: NewStore,
        _ losses: inout LossReport
    ) throws {
        for (index, row) in found.rows.enumerated() {
            guard let record = found.record(of: row) else { throw changed }
            let isWhole = record.withUnsafeBytes { bytes -> Bool in
                guard let change = StoredRecord.wholeRow(bytes) else { return false }
                losses.note(change)
                return true
            }
            guard isWhole else { throw changed }
            try store.append(record)
            if index % 4_096 == 0 { progress(Int64(index)) }
        }
    }

    /// Copies what the last process had deferred when it ended, and is not among the rows.
    private func copyDeferred(
        by generation: UInt64?,
        behind found: FoundHistory,
        to store: NewStore,
        _ losses: inout LossReport
    ) throws {
        let last = found.rows.last?.place.revision ?? 0
        let log = DeferralLog(path: source.deferrals, boot: BootIdentity.bytes())
        for batch in log.left(by: generation).batches where batch.lastRevision > last {
            batch.read { losses.note(deferred: $0) }
            try store.append(rowCount: batch.changeCount) { append throws(SQLiteFailure) in
                _ = try batch.read(append)
            }
        }
    }

    /// If `meta` is intact it is believed, because a flipped bit in the header looks like another
    /// format.
    private func requireStore(_ found: FoundHistory) throws(StateError) {
        if let format = found.map.number(.format), format > HistorySchema.formatVersion {
            throw StateError(
                .newerFormat,
                "\(source.database) has format \(format); this program reads formats up to "
                    + "\(HistorySchema.formatVersion)"
            )
        }
        guard !found.rows.isEmpty || !found.map.meta.values.isEmpty else {
            throw StateError(
                .corrupt,
                "\(source.database) contains nothing to salvage: no row of a history is intact"
            )
        }
    }

    private var changed: StateError {
        StateError(.storage, "\(source.database) was changed by another process; try again")
    }
}

extension StoreSalvage.Summary {
    fileprivate init(_ found: FoundHistory, _ losses: LossReport) {
        rowCount = Int64(found.rows.count) + losses.deferredCount
        entryCount = losses.entryCount
        revision = losses.leastRevision
        isWhole = losses.isEmpty && found.map.meta.hasAllMetadata
        hasAllRows = losses.isEmpty
        lostRowCount = losses.lostRowCount
        isCounted = losses.isCounted
        lostMetadataCount = found.map.meta.lostMetadata.count
    }
}
