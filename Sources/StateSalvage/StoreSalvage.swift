import StateEngine
import StateSQLite

/// Copies what is whole of a damaged store into a new one, and says what is not; the damaged store is only read.
///
/// The new store has another epoch and its revisions rise by 2^32, as those of a copy do: what was lost may have been told.
/// Rows keep their revisions. Of a key whose newest row is lost, the newest row that is whole is what there is; where
/// anything is lost, history before it is not offered (`COMPACTED`).
///
/// What the log has behind a damaged frame is read too (``LogPages``), and where the stamp of the store says that more was acknowledged
/// than there is, that is a loss.
///
/// The pages are read one by one, not by SQLite: it needs a whole header, and whole pages on the way to each row. What
/// makes that simple is the checksum in each row. See ``FoundHistory``.
package struct StoreSalvage {
    /// What came of it.
    package struct Summary: Hashable, Sendable {
        /// Rows in the new store.
        package var rowCount: Int64
        /// Keys with a value.
        package var entryCount: Int
        /// The revision that the new store goes on above.
        package var revision: Int64
        /// Whether every row of the damaged store was whole, and every note.
        package var isWhole: Bool
        /// Whether every row was.
        package var hasAllRows: Bool
        /// Rows that are lost.
        package var lostRowCount: Int64
        /// Whether the damaged store says how many rows it had; else more may be lost.
        package var isCounted: Bool
        /// Notes that are lost: how far handlers had come; beside those on pages that cannot be read.
        package var lostMetadataCount: Int
    }

    private let source: StoreLocation
    private let target: String
    private let report: (String) -> Void
    private let progress: (Int64) -> Void

    /// - Parameters:
    ///   - store: The data directory of the damaged store, or the file of a store of its own.
    ///   - target: The directory of the new store, which is made where it is absent.
    ///   - report: Called for each thing that is lost, with a sentence.
    ///   - progress: Called now and then with the number of rows copied so far.
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

    /// Makes the new store; where this throws, there is none.
    ///
    /// - Throws: ``StateError``: ``StateError/Code/locked`` where a process owns the damaged store,
    ///   ``StateError/Code/newerFormat``, ``StateError/Code/corrupt`` where there is nothing of a store in it,
    ///   ``StateError/Code/storage`` where `target` has a store already, or cannot be written.
    /// - Complexity: O(*n*) in the bytes of the store; memory for each row's place and each key.
    package func run() throws -> Summary {
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
        let store = try SalvagedStore(directory: target)
        try copy(found, to: store, &losses)
        try store.finish(
            compacted: losses.wholeFrom,
            leastRevision: losses.leastRevision,
            metadata: found.map.meta.metadata
        ) {
            guard ObservedStore.footprints(of: source) == footprints,
                try OwnerLock.owner(path: source.lock, of: source.database) == nil
            else { throw changed }
        }
        for line in losses.lines() { report(line) }
        return Summary(found, losses)
    }

    /// Copies the whole rows.
    private func copy(
        _ found: FoundHistory,
        to store: SalvagedStore,
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

    /// Where `meta` is whole it is believed, for a flipped bit in the header looks like another format.
    private func requireStore(_ found: FoundHistory) throws(StateError) {
        if let format = found.map.number(.format), format > HistorySchema.formatVersion {
            throw StateError(.newerFormat, "\(source.database) has format \(format)")
        }
        guard !found.rows.isEmpty || !found.map.meta.values.isEmpty else {
            throw StateError(
                .corrupt,
                "\(source.database) holds nothing that could be salvaged: no row of a history is whole"
            )
        }
    }

    private var changed: StateError {
        StateError(.storage, "\(source.database) was changed by another process; try again")
    }
}

extension StoreSalvage.Summary {
    fileprivate init(_ found: FoundHistory, _ losses: LossReport) {
        rowCount = Int64(found.rows.count)
        entryCount = losses.entryCount
        revision = losses.leastRevision
        isWhole = losses.isEmpty && found.map.meta.hasAllMetadata
        hasAllRows = losses.isEmpty
        lostRowCount = losses.lostRowCount
        isCounted = losses.isCounted
        lostMetadataCount = found.map.meta.lostMetadata.count
    }
}
