import CLinux
package import StateEngine
package import StateLog
import StateModel
import StatePlatform
import StateSystem

/// A store whose newest changes are in a log, and whose values up to a place of it in a database.
///
/// A commit is one append to the log and one sync. A thread settles the log into the database, so a
/// start reads the rows and what the log has behind them.
///
/// Calls follow ``Backing``; what other threads use is in ``LogTail`` under its lock, and in
/// ``Settler``. This is the proof of `@unchecked Sendable`.
package final class SettledBacking: Backing, @unchecked Sendable {
    package struct Options: Sendable {
        package var log = StateLog.Options()
        package var settling = SettlingOptions()
        /// How much of the past it keeps.
        package var history = HistoryLimits.none

        package init() {}
    }

    package let isPersistent = true

    package var capabilities: BackingCapabilities {
        var capabilities = BackingCapabilities()
        capabilities.files = self
        capabilities.history = self
        capabilities.compaction = self
        capabilities.keepsMetadata = true
        return capabilities
    }

    private let location: StoreLocation
    private let logDirectory: String
    private let options: Options
    /// Opens the directory of the log.
    private let openFiles: @Sendable (String) throws(LogFileFailure) -> any LogFiles

    private var lock: OwnerLock?
    private(set) var tail: LogTail?
    private(set) var settler: Settler?
    private var fileCheck: FileCheck?
    /// Why nothing may be appended: the last commit is in files that no start finds.
    private var loss: StateError?
    /// What is missing of the past, besides what the log's floor says.
    let floors = StateLock(HistoryFloors())
    private var pendingFiles: String?
    private var fileContainersText: String?
    private var lastRevision: Int64 = 0
    /// Called by ``load(_:)`` with each problem that did not stop it.
    package var onFinding: @Sendable (_ finding: String) -> Void = { _ in }

    /// Names of metadata that is the store's own; others begin with a word and a colon.
    enum Name {
        static let pendingFiles = "files pending"
        static let fileContainers = "files containers"
        static let floor = "history floor"
        static let floors = "history floors"
    }

    /// Makes a store in a data directory: `stated.db` and `log/`.
    package convenience init(directory: String, _ options: Options = Options()) {
        let location = StoreLocation(directory: directory)
        self.init(location, log: location.logDirectory, options)
    }

    /// Makes a store in a database file, and the directory `<path>-log` beside it.
    package convenience init(path: String, _ options: Options = Options()) {
        let location = StoreLocation(path: path)
        self.init(location, log: location.logDirectory, options)
    }

    package init(
        _ location: StoreLocation,
        log: String,
        _ options: Options,
        openFiles: @escaping @Sendable (String) throws(LogFileFailure) -> any LogFiles = {
            (path) throws(LogFileFailure) in try LogDirectory(path)
        }
    ) {
        (self.location, logDirectory, self.options) = (location, log, options)
        self.openFiles = openFiles
    }

    // MARK: The start

    /// Opens the store, makes it if it is missing, checks it, and passes on the newest change of each
    /// key, in the order of keys, and then what the log has behind them, in order.
    package func load(_ receive: (borrowing StoredChange) -> Void) throws -> LoadedStore {
        precondition(lock == nil, "\(location.database) is loaded already")
        try location.prepare()
        let lock = try OwnerLock(path: location.lock, for: location.database)
        do {
            return try load(lock, receive)
        } catch let failure as SQLiteFailure {
            throw StateError.cannotOpen(location.database, failure)
        } catch let failure as LogFileFailure {
            throw StateError(.storage, "\(logDirectory) cannot be opened: \(failure.sentence)")
        }
    }

    private func load(
        _ lock: OwnerLock,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> LoadedStore {
        // Order matters: where there is a directory for the log, there was a database.
        if FileIdentity(path: location.database) == nil {
            try requireNothing()
            try SettledDatabase.create(at: location)
        }
        let files = try openFiles(logDirectory)
        try lock.hold(location.database)
        let database = try SettledDatabase(location, under: lock)
        var (facts, texts) = try database.facts()
        var loaded = LoadedStore(epoch: facts.epoch, revision: facts.revision)
        try readRows(database, facts, &loaded, receive)
        if let former = facts.former, facts.life.number == 0 {
            try StateLog.remove(former, from: files)
        }
        let log: StateLog
        if try requireLog(files, facts) {
            log = try readLog(files, facts, &loaded, &texts, receive)
        } else {
            log = try beginCopy(database, &facts, above: loaded.revision, files)
        }
        var tail = LogTail(log)
        if let identity = FileIdentity(path: location.database), identity != facts.identity {
            // Everything has to be in the database before it gets another log.
            let settler = Settler(database, facts, lock, files, tail, options.settling)
            try settler.settle()
            facts = settler.facts
            tail = LogTail(try beginCopy(database, &facts, above: loaded.revision, files))
        }
        loaded.epoch = facts.epoch
        loaded.revision = max(loaded.revision, facts.leastRevision)
        loaded.compacted = try takeFloors(&texts, facts, tail)
        beginLife(tail, database, &facts)
        pendingFiles = texts.removeValue(forKey: Name.pendingFiles)
        fileContainersText = texts.removeValue(forKey: Name.fileContainers)
        loaded.metadata = texts
        lastRevision = loaded.revision
        let settler = Settler(database, facts, lock, files, tail, options.settling)
        settler.start()
        (self.lock, self.tail, self.settler) = (lock, tail, settler)
        fileCheck = FileCheck(
            StoreFiles(
                [location.log, location.database],
                in: [location.directory, logDirectory],
                others: { [tail] in tail.withLog { $0.finding } }
            )
        )
        return loaded
    }

    /// - Returns: From which revision on the past can be read.
    private func takeFloors(
        _ texts: inout [String: String],
        _ facts: SettledFacts,
        _ tail: LogTail
    ) throws(StateError) -> Int64 {
        let least = texts.removeValue(forKey: Name.floor) ?? "0"
        let text = texts.removeValue(forKey: Name.floors) ?? ""
        guard let revision = Int64(least), let found = HistoryFloors(text) else {
            throw .damaged(location.database, "'\(Name.floors)' in meta is not valid")
        }
        floors.withLock { $0 = found }
        return tail.withLog { [history = options.history] log in
            log.retention = LogRetention(history)
            log.leastFloor = max(facts.floor, revision)
            return log.floor
        }
    }

    private func requireNothing() throws(StateError) {
        if let left = location.unfinishedFiles.first(where: { FileIdentity(path: $0) != nil }) {
            throw StateError(
                .storage,
                "\(left) is left of a restore or a salvage that was broken off: repeat "
                    + "that into a new directory, or remove the file to begin an empty store"
            )
        }
        guard access(logDirectory, F_OK) == 0 else { return }
        throw StateError(
            .corrupt,
            "\(location.database) is missing, but its log is there: put it back, or use "
                + "stated --salvage"
        )
    }

    private func readRows(
        _ database: SettledDatabase,
        _ facts: SettledFacts,
        _ loaded: inout LoadedStore,
        _ receive: (borrowing StoredChange) -> Void
    ) throws {
        let rowCount = try database.readAll { change in
            loaded.revision = max(loaded.revision, change.revision)
            receive(change)
        }
        guard rowCount == facts.rowCount else {
            throw StateError.damaged(
                location.database,
                "it has \(rowCount) rows; \(facts.rowCount) were written"
            )
        }
    }

    /// - Returns: False if the database was copied without its log, and has everything.
    /// - Throws: ``StateError/Code/corrupt`` if the log is missing and has something that the database
    ///   has not.
    private func requireLog(_ files: any LogFiles, _ facts: SettledFacts) throws(StateError) -> Bool
    {
        guard facts.life.number > 0, try !StateLog.exists(in: files) else { return true }
        guard facts.isClosed else {
            throw StateError(
                .corrupt,
                "the log of \(location.database) is missing, and has its newest changes: put "
                    + "\(logDirectory) back, or use stated --salvage"
            )
        }
        return false
    }

    private func readLog(
        _ files: any LogFiles,
        _ facts: SettledFacts,
        _ loaded: inout LoadedStore,
        _ texts: inout [String: String],
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> StateLog {
        let start = LogStart(epoch: facts.epoch, place: facts.place)
        let log = try StateLog(files, options.log, from: start) { contents, time in
            try CommitCoder.read(contents, at: time) { part in
                switch part {
                case .commit(let revision, _, _): loaded.revision = max(loaded.revision, revision)
                case .change(let change, _):
                    // Frames that were written again after a failed sync are settled already.
                    if change.revision > facts.revision { receive(change) }
                case .metadata(let name, let text): texts[name] = text
                }
            }
        }
        guard [log.life.number, log.life.before].contains(facts.life.number) else {
            throw StateError(
                .corrupt,
                "\(location.database) and \(logDirectory) are of different times: put back the one "
                    + "that belongs to the other, or restore a backup"
            )
        }
        return log
    }

    /// Begins another store that has the values of this one, with an empty log.
    ///
    /// Order matters: the database has everything, and says so, before the files of the log go.
    private func beginCopy(
        _ database: SettledDatabase,
        _ facts: inout SettledFacts,
        above revision: Int64,
        _ files: any LogFiles
    ) throws -> StateLog {
        guard revision <= RevisionReservation.largestRevision - 1 << 32 else {
            throw StateError(
                .storage,
                "\(location.database): revision \(revision) is too close to the limit of 2^53"
            )
        }
        let former = facts.epoch
        var copy = SettledFacts(epoch: .random())
        copy.former = former
        copy.leastRevision = revision + (1 << 32)
        (copy.revision, copy.rowCount) = (facts.revision, facts.rowCount)
        copy.floor = copy.leastRevision
        copy.identity = FileIdentity(path: location.database)
        try database.write(copy)
        try database.confirm(wholly: false)
        _ = try database.checkpoint()
        facts = copy
        onFinding(
            "\(location.database) was copied or restored; continuing under a new epoch after "
                + "revision \(copy.leastRevision)"
        )
        try StateLog.remove(former, from: files)
        return try StateLog(
            files,
            options.log,
            from: LogStart(epoch: copy.epoch, place: .none),
            after: copy.leastRevision
        ) { _, _ in }
    }

    /// From here on, a copy of the database or of the log that was made before does not fit.
    private func beginLife(
        _ tail: LogTail,
        _ database: SettledDatabase,
        _ facts: inout SettledFacts
    ) {
        do {
            let before = facts.life.number
            try tail.withLog { (log) throws(StateError) in
                let life = LogLife(number: max(log.life.number, before) + 1, before: before)
                try log.begin(life, at: SystemClock.wallMilliseconds())
            }
            facts.life = LogLife(number: tail.withLog { $0.life.number })
            (facts.isClosed, facts.former) = (false, nil)
            try database.write(facts)
        } catch {
            // A full disk, or another process that holds the write lock of the database: the log knows both
            // lives.
            onFinding("\(location.database) is as the last process left it: \(error)")
        }
    }

    // MARK: Commits

    package func commit(_ batch: borrowing CommitBatch) throws {
        guard batch.changeCount > 0 || !batch.metadata.isEmpty else { return }
        let time = SystemClock.wallMilliseconds()
        var raised: HistoryFloors?
        try append(at: time) { line in
            var coder = CommitCoder(at: time)
            let uncarried = coder.append(batch, carryingBelow: line)
            switch batch.pendingFileList {
            case .keep: break
            case .set(let text): coder.append(metadata: Name.pendingFiles, text)
            case .remove: coder.append(metadata: Name.pendingFiles, nil)
            }
            raised = uncarried.isEmpty ? nil : floors(without: uncarried)
            if let raised { coder.append(metadata: Name.floors, raised.text) }
            return coder.commits
        }
        if let raised { floors.withLock { $0 = raised } }
        lastRevision = max(lastRevision, batch.lastRevision)
    }

    private func floors(without uncarried: [UncarriedChange]) -> HistoryFloors {
        var raised = floors.withLock { $0 }
        let highest = uncarried.reduce(0) { max($0, $1.revision) }
        raised.raise(keys: uncarried.map(\.key), to: highest)
        return raised
    }

    private func append(
        at time: Int64,
        encoding encode: (_ carryLine: Int64) -> CodedCommits
    ) throws {
        guard let tail else {
            throw StateError(
                .readOnly,
                "\(location.database) is not open: nothing was committed"
            )
        }
        if let loss { throw loss }
        let limit = options.settling.logByteCount
        if try tail.append(at: time, wakingAt: limit, encoding: encode) { settler?.wake() }
        // A commit to files that were removed or replaced meanwhile is not acknowledged.
        guard let finding = fileCheck?.findingAfterCommit() else { return }
        let lost = StateError(.readOnly, "\(StateError.unknownOutcome): \(finding)")
        loss = lost
        throw lost
    }

    /// Decides what became of a commit of unknown outcome.
    @discardableResult
    package func reopen(
        after revision: Int64,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> [String: String] {
        guard let tail else {
            throw StateError(.storage, "\(location.database) is not open")
        }
        var texts: [String: String] = [:]
        let decided: (contents: [UInt8], time: Int64)?
        if loss == nil {
            decided = try tail.decideUnknown()
        } else {
            // The files have their names again, and the commit is in them.
            if let finding = fileCheck?.files.finding { throw StateError(.storage, finding) }
            (loss, decided) = (nil, tail.lastFrame)
        }
        guard let last = decided else { return texts }
        try last.contents.withUnsafeBytes { contents in
            try CommitCoder.read(contents, at: last.time) { part in
                switch part {
                case .commit: break
                case .change(let change, _): if change.revision > revision { receive(change) }
                case .metadata(let name, let text): texts[name] = text
                }
            }
        }
        return texts
    }

    package func maintain() {}
    package var needsMaintenance: Bool { false }

    /// Settles everything that is durable in the log now; only without a thread for that.
    package func settle() throws(StateError) {
        precondition(!options.settling.hasThread, "a thread settles this store")
        try settler?.settle()
    }

    /// What settling has done, and what holds it up.
    package var settlingStatus: SettlingStatus { settler?.currentStatus ?? SettlingStatus() }

    /// Settles everything, so that the database alone has the store, and releases the lock.
    ///
    /// If that fails, it is left as after a crash: the next start reads the log.
    package func close() {
        guard let settler else { return }
        settler.end()
        defer { (self.settler, tail, lock, fileCheck) = (nil, nil, nil, nil) }
        if let finding = fileCheck?.files.finding {
            return onFinding(
                "\(finding); what only this process has is lost unless statectl backup saved it"
            )
        }
        do { try settler.close(at: SystemClock.wallMilliseconds()) } catch {
            onFinding("\(location.database) was left unsettled: \(error.message)")
        }
    }

    /// A store that is released without ``close()`` is as after a crash.
    deinit { settler?.end() }
}

extension SettledBacking: PendingFileListBacking {
    package func takePendingFileList() -> String? {
        defer { pendingFiles = nil }
        return pendingFiles
    }

    package func fileContainers() throws -> String? { fileContainersText }

    package func setFileContainers(_ text: String?) throws {
        try write(Name.fileContainers, text)
        fileContainersText = text
    }

    package func setPendingFileList(_ text: String?) throws { try write(Name.pendingFiles, text) }

    /// Writes metadata of the store in a frame of its own.
    fileprivate func write(_ name: String, _ text: String?) throws {
        let time = SystemClock.wallMilliseconds()
        var coder = CommitCoder(at: time)
        coder.begin(lastRevision, at: time, cause: Bytes(start: nil, count: 0))
        coder.append(metadata: name, text)
        try append(at: time) { [commits = coder.commits] _ in commits }
    }

    /// Writes from which revision on the past may be asked for, durably.
    func writeFloor(_ floor: Int64) throws { try write(Name.floor, "\(floor)") }
}
