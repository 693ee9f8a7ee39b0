import CSQLite
import StateEngine

/// Checks a store without owning it and without changing a byte, also while another process owns
/// it.
///
/// It checks: the header, format and tables; SQLite's quick_check; `meta`; each row's checksum; the
/// order of the rows; the chain of each key's changes; the number of rows at a clean stop; and the
/// acknowledged commits in the stamp. The rows are read in short transactions. quick_check is one
/// transaction, 0.2 s for a million rows, during which the owner's log cannot be restarted.
package final class StoreCheck {
    /// The result of a check.
    package struct Summary: Hashable, Sendable {
        /// How many rows of the history could be read.
        package var rowCount: Int64 = 0
        /// How many keys have a value.
        package var entryCount = 0
        /// The newest revision.
        package var revision: Int64 = 0
        /// How many faults were found; only the first 100 are reported individually.
        package var findingCount = 0
    }

    /// How many findings are reported individually.
    package static let findingLimit = 100

    private let location: StoreLocation
    private let lock: OwnerLock?
    private let report: (String) -> Void
    private let progress: (Int64) -> Void
    private var summary = Summary()

    /// - Parameters:
    ///   - store: The data directory, or a store's own file.
    ///   - lock: The lock of a caller who owns the store and does not write meanwhile.
    ///   - report: Called with a sentence for each fault, for at most 100.
    ///   - progress: Called regularly with the number of rows so far.
    package init(
        store: String,
        under lock: OwnerLock? = nil,
        report: @escaping (String) -> Void,
        progress: @escaping (Int64) -> Void = { _ in }
    ) {
        location = StoreLocation(existing: store)
        self.lock = lock
        self.report = report
        self.progress = progress
    }

    /// Runs the check.
    ///
    /// - Throws: ``StateError``, if nothing can be checked: no store, one of a newer format, no
    ///   permission, or one that changed during the check.
    /// - Complexity: O(*n*) in the bytes of the history, and memory for each key.
    package func run() throws -> Summary {
        try location.requireFiles()
        do {
            // Before the rows are read: a running owner has at least all of this then.
            let acknowledged = AcknowledgedCheck(location)
            let stamp = StoreStamp(reading: location.stamp)
            let store = try ObservedStore(location, under: lock)
            try HistorySchema.checkHeader(of: store.connection)
            try note {
                try HistorySchema.check(store.connection)
                try HistorySchema.checkAdditions(store.connection, of: "*")
            }
            try note { try quickCheck(store.connection) }
            try note { try checkMeta(StoreMetadata(store.connection)) }
            try note { try checkRows(store.connection, isBesideOwner: store.owner != nil) }
            // Damage of `meta` was reported above.
            let finding = try? acknowledged.finding(
                StoreMetadata(store.connection),
                stamp,
                revision: summary.revision,
                readsLog: store.owner == nil
            )
            if let finding = finding ?? lostCommits(store, stamp) { add(finding) }
            try store.requireUnchanged()
        } catch let failure as SQLiteFailure {
            throw StateError.cannotOpen(location.database, failure)
        }
        return summary
    }

    /// Whether commits are missing that the stamp records, for example because the log was not
    /// copied; nil beside an owner, who has moved on meanwhile.
    ///
    /// A start serves such a store under a new epoch, as an older copy.
    private func lostCommits(_ store: ObservedStore, _ stamp: StoreStamp) -> String? {
        let acknowledged = stamp.acknowledged.revision
        guard store.owner == nil, summary.revision < acknowledged,
            let generation = try? StoreMetadata(store.connection).generation(),
            stamp.mayBeOf(generation: generation)
        else { return nil }
        return "it ends at revision \(summary.revision), but \(stamp.path) records revision "
            + "\(acknowledged) as acknowledged; is \(location.log) missing?"
    }

    private func add(_ finding: String) {
        summary.findingCount += 1
        if summary.findingCount <= StoreCheck.findingLimit { report(finding) }
    }

    /// Records damage as a finding; other errors end the check.
    private func note(_ body: () throws -> Void) throws {
        do {
            try body()
        } catch let error as StateError where error.code == .corrupt {
            add(error.finding(in: location.database))
        } catch let failure as SQLiteFailure {
            guard StateError.cannotOpen(location.database, failure).code == .corrupt else {
                throw failure
            }
            add(failure.description)
        }
    }

    private func quickCheck(_ connection: SQLiteConnection) throws {
        let answers = try connection.prepare("PRAGMA quick_check(\(StoreCheck.findingLimit))")
        while try answers.step() {
            let answer = answers.text(at: 0)
            if answer != "ok" { add(answer.split(separator: "\n").joined(separator: " ")) }
        }
    }

    private func checkMeta(_ metadata: StoreMetadata) throws {
        for name in StoreMetadata.Name.allCases { try note { try check(name, metadata) } }
        try note { try metadata.check() }
        try note { _ = try metadata.metadata() }
    }

    private func check(_ name: StoreMetadata.Name, _ metadata: StoreMetadata) throws {
        switch name {
        case .epoch: _ = try metadata.epoch()
        case .generation: _ = try metadata.generation()
        case .compacted, .leastRevision, .inode, .birthTime:
            let number = try metadata.required(name)
            if number < 0 { add("'\(name.rawValue)' in meta is \(number)") }
        case .swept, .rowCount: _ = try metadata.number(of: name)
        case .historyFloors: _ = try metadata.floors()
        case .format, .pendingFiles, .fileContainers: _ = try metadata.value(of: name)
        }
    }

    private func checkRows(_ connection: SQLiteConnection, isBesideOwner: Bool) throws {
        let metadata = StoreMetadata(connection)
        var history = HistoryCheck()
        history.isBesideOwner = isBesideOwner
        var found: [String] = []
        let walk = HistoryWalk(connection) { number, change, checksum in
            history.take(number, change, checksum: checksum) { found.append($0) }
        }
        var isAtEnd = false
        while !isAtEnd {
            do {
                isAtEnd = try walk.readSlice {
                    history.compacted = (try? metadata.number(of: .compacted)) ?? 0
                    history.floors = (try? metadata.floors()) ?? HistoryFloors()
                } _: {
                    let expected = try? metadata.number(of: .rowCount)
                    if let expected, expected != history.rowCount {
                        found.append(
                            "history has \(history.rowCount) rows; at the last clean stop it had "
                                + "\(expected)"
                        )
                    }
                    let least = (try? metadata.number(of: .leastRevision)) ?? 0
                    summary.revision = max(history.last.revision, history.compacted, least)
                }
            } catch let failure as SQLiteFailure {
                throw StateError.damaged(
                    location.database,
                    "the rows after number \(walk.number) cannot be read: \(failure)"
                )
            }
            for finding in found { add(finding) }
            found.removeAll()
            summary.rowCount = history.rowCount
            summary.entryCount = history.entryCount
            progress(history.rowCount)
        }
    }
}
