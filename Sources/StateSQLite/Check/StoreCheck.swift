import CSQLite
import StateEngine
import StateLog
import StateModel
import StatePlatform

/// Checks a store without owning it and without changing a byte, also while another process
/// owns it.
///
/// It checks: the header, format and tables; SQLite's quick_check; `meta`; each row's checksum and the
/// number of rows; each frame of the log, and what its segments say of each other; and that the two fit
/// together: their store, life and place, and the newest change of each key.
///
/// The database is read in one transaction, which lasts until the log was read: meanwhile an owner
/// drops nothing of the log that the rows of that transaction need.
package final class StoreCheck {
    /// The result of a check.
    package struct Summary: Hashable, Sendable {
        /// How many rows of the database and changes of the log could be read.
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
    private let logDirectory: String
    private let lock: OwnerLock?
    private let report: (String) -> Void
    private let progress: (Int64) -> Void
    private var summary = Summary()

    /// The newest change of each key, of the rows and of the log.
    private var rows: [[UInt8]: Version] = [:]
    private var damaged: Set<[UInt8]> = []
    private var logged: [[UInt8]: Logged] = [:]
    private var firstLogged = Int64.max

    private struct Version {
        var place: HistoryPlace
        var isLive: Bool

        init(_ change: borrowing StoredChange) {
            (place, isLive) = (change.place, change.value != nil)
        }
    }

    private struct Logged {
        /// The last change that the rows have.
        var settled: Version?
        var newest: Version
        /// Whether the row has one of the changes.
        var hasRow = false
    }

    /// - Parameters:
    ///   - store: The data directory, or a store's own file.
    ///   - report: Called with a sentence for each fault, for at most ``StoreCheck/findingLimit``.
    ///   - progress: Called regularly with the number of rows and changes so far.
    package convenience init(
        store: String,
        report: @escaping (String) -> Void,
        progress: @escaping (Int64) -> Void = { _ in }
    ) {
        let location = StoreLocation(existing: store)
        self.init(location, log: location.logDirectory, under: nil, report, progress)
    }

    /// The same for a store wherever its files are, under the lock of a caller who owns it and does not
    /// write meanwhile.
    package init(
        _ location: StoreLocation,
        log: String,
        under lock: OwnerLock?,
        _ report: @escaping (String) -> Void,
        _ progress: @escaping (Int64) -> Void
    ) {
        (self.location, logDirectory, self.lock) = (location, log, lock)
        (self.report, self.progress) = (report, progress)
    }

    /// Runs the check.
    ///
    /// - Throws: ``StateError``, if nothing can be checked: no store, one of a newer format, no
    ///   permission, or one that changed during the check.
    /// - Complexity: O(*n*) in the bytes of the store, and memory for each key.
    package func run() throws -> Summary {
        try location.requireFiles()
        guard FileIdentity(path: location.database) != nil else { throw absence }
        do {
            let store = try ObservedStore(location, under: lock)
            let connection = store.connection
            try StoreHeader.checkHeader(of: connection)
            try connection.execute("BEGIN")
            try note {
                try SettledDatabase.checkSchema(connection)
                try StoreHeader.checkAdditions(connection, of: "*")
            }
            try note { try quickCheck(connection) }
            var facts: SettledFacts?
            try note { facts = try SettledDatabase.facts(connection).0 }
            try note { try checkRows(connection, facts) }
            if let facts { try checkLog(facts) }
            try? connection.execute("COMMIT")
            try store.requireUnchanged()
        } catch let failure as SQLiteFailure {
            throw StateError.cannotOpen(location.database, failure)
        }
        return summary
    }

    private var absence: StateError {
        guard access(logDirectory, F_OK) == 0 else {
            return StateError(
                .storage,
                "there is no store at \(location.database): \(lastSystemError())"
            )
        }
        return .damaged(location.database, "it is missing, but its log exists")
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

    // MARK: The database

    private func checkRows(_ connection: SQLiteConnection, _ facts: SettledFacts?) throws {
        var (count, last): (Int64, [UInt8]) = (0, [])
        do throws(SQLiteFailure) {
            try connection.receive(
                "SELECT receive(\(SettledDatabase.columns)) FROM newest",
                columnCount: SettledDatabase.columnCount
            ) { [self] columns in
                let change = SettledDatabase.change(in: columns)
                let key = Array(change.key)
                count += 1
                take(change, key, after: last, sqlite3_value_int64(columns[10]), facts)
                last = key
                if count % 4_096 == 0 { progress(count) }
                return true
            }
        } catch {
            guard error.isDamage else { throw error }
            add("the rows after key \(StateError.quoted(key: last)) cannot be read: \(error)")
            return
        }
        progress(count)
        if let facts, facts.rowCount != count {
            add("the database has \(count) rows; \(facts.rowCount) were written")
        }
    }

    private func take(
        _ change: borrowing StoredChange,
        _ key: [UInt8],
        after last: [UInt8],
        _ checksum: Int64,
        _ facts: SettledFacts?
    ) {
        func find(_ finding: String) {
            add("the row of key \(StateError.quoted(key: key)) \(finding)")
        }
        guard checksum == Int64(CommitCoder.checksum(of: change)), change.isPossible else {
            damaged.insert(key)
            return find("does not match its checksum")
        }
        if !last.isEmpty, !last.lexicographicallyPrecedes(key) {
            find("is not in the order of keys")
        }
        // Otherwise what is later is compared with the log.
        if let facts, facts.isClosed, change.revision > facts.revision {
            find("has revision \(change.revision); the rows end with \(facts.revision)")
        }
        rows[key] = Version(change)
    }

    // MARK: The log

    private func checkLog(_ facts: SettledFacts) throws {
        summary.revision = max(facts.revision, facts.leastRevision)
        defer { count() }
        guard access(logDirectory, F_OK) == 0 else { return noteMissingLog(facts) }
        let files: any LogFiles
        do throws(LogFileFailure) { files = try LogDirectory(reading: logDirectory) } catch {
            throw StateError(.storage, "\(logDirectory) cannot be opened: \(error.sentence)")
        }
        guard try StateLog.exists(in: files) else { return noteMissingLog(facts) }
        // It is that of the store that this one was copied from, until a start has removed it.
        guard facts.former == nil || facts.life.number > 0 else { return }
        let rowCount = Int64(rows.count)
        var changeCount: Int64 = 0
        let check = try LogCheck(
            files,
            from: LogStart(epoch: facts.log, place: facts.place),
            beginning: { (logged, changeCount, firstLogged) = ([:], 0, .max) },
            { change, _ in
                changeCount += 1
                firstLogged = min(firstLogged, change.revision)
                var known = logged[Array(change.key)] ?? Logged(newest: Version(change))
                known.newest = Version(change)
                if change.revision <= facts.revision { known.settled = known.newest }
                if rows[Array(change.key)]?.place == change.place { known.hasRow = true }
                logged[Array(change.key)] = known
                if changeCount % 4_096 == 0 { progress(rowCount + changeCount) }
            }
        )
        guard check.segmentCount > 0 || !check.findings.isEmpty else {
            return noteMissingLog(facts)
        }
        summary.revision = max(summary.revision, check.revision)
        summary.rowCount = changeCount
        for finding in check.findings { add(finding) }
        guard check.findings.isEmpty else { return }
        if let life = check.life, ![life.number, life.before].contains(facts.life.number) {
            add("the database and the log are of different times")
        }
        compare(facts)
    }

    private func noteMissingLog(_ facts: SettledFacts) {
        guard facts.life.number > 0, !facts.isClosed else { return }
        add("the log, \(logDirectory), is missing, and has the newest changes")
    }

    /// Compares the rows with what the log has of them.
    private func compare(_ facts: SettledFacts) {
        for (key, changes) in logged {
            guard let settled = changes.settled, !damaged.contains(key) else { continue }
            let isForgotten = !settled.isLive && settled.place.revision <= facts.floor
            // A kill between the transactions of a settle leaves rows that are newer than the place.
            let isMissing = rows[key].map { $0.place < settled.place } ?? !isForgotten
            guard isMissing else { continue }
            let found = rows[key].map { "has revision \($0.place.revision)" } ?? "is missing"
            add(
                "the row of key \(StateError.quoted(key: key)) \(found); the log has revision "
                    + "\(settled.place.revision)"
            )
        }
        for (key, row) in rows where !damaged.contains(key) {
            let revision = row.place.revision
            // Of earlier rows a segment may have been written again without the change.
            let isLogged =
                revision > facts.revision
                ? logged[key]?.hasRow == true : revision < firstLogged || logged[key] != nil
            if isLogged { continue }
            add(
                "the row of key \(StateError.quoted(key: key)) has revision \(revision), "
                    + "which the log has not"
            )
        }
    }

    /// Counts what was found: a version that the rows and the log have counts once.
    private func count() {
        for (key, row) in rows {
            if row.place.revision < firstLogged { summary.rowCount += 1 }
            if logged[key] == nil, row.isLive { summary.entryCount += 1 }
        }
        summary.entryCount += logged.values.count { $0.newest.isLive }
    }
}

extension StateError {
    /// A key, complete: the reader of a report has to find it.
    package static func quoted(key: [UInt8]) -> String {
        key.withUnsafeBytes { quoted($0, upTo: Key.maximumByteCount) }
    }
}
