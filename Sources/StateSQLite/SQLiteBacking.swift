import CLinux
public import StateEngine
package import StateLog
import StateModel
import StatePlatform
import StateSystem
import Synchronization

/// A store whose newest changes are in a log, and whose values up to a place of it in a database.
///
/// A commit is one append to the log and one sync. A thread settles the log into the database, so a
/// start reads the rows and what the log has behind them.
///
/// Calls follow ``Backing``; what other threads use is in ``LogTail`` under its lock, and in
/// ``Settler``. This is the proof of `@unchecked Sendable`.
public final class SQLiteBacking: Backing, @unchecked Sendable {
    package struct Options: Sendable {
        package var log = StateLog.Options()
        package var settling = SettlingOptions()
        /// How much of the past it keeps.
        package var history = HistoryLimits.none
        /// How much of it a full disk leaves; nil: half.
        package var leastHistory: HistoryLimits?
        /// What is kept of the disk for deletes and settling, besides the least that they take.
        package var reserveByteCount: Int64 = 0

        package init() {}
    }

    /// True: commits outlive the process.
    public let isPersistent = true

    /// History with compaction, metadata, and keys in files beside it.
    public var capabilities: BackingCapabilities {
        var capabilities = BackingCapabilities()
        capabilities.files = self
        capabilities.history = self
        capabilities.compaction = self
        capabilities.deferrals = self
        capabilities.keepsMetadata = true
        return capabilities
    }

    private let location: StoreLocation
    private let logDirectory: String
    let options: Options
    /// Opens the directory of the log.
    private let openFiles: @Sendable (String) throws(LogFileFailure) -> any LogFiles

    /// What readers have and the log is to have later.
    let bootMark: BootMark
    /// What is to be appended before it is shown.
    let waiting = StateLock<[LogTail.Published]>([])
    package private(set) var hasAllDeferred = false

    /// Keeps settling from changing rows that a backup reads.
    let pause = CompactionPause()
    /// Why the last request for a compaction is refused.
    var refusal: StateError?

    private(set) var lock: OwnerLock?
    private(set) var tail: LogTail?
    private(set) var settler: Settler?
    let room: DiskRoom
    package let loading = LoadProgress()
    private let gauges = SettlingGauges()
    private var fileCheck: FileCheck?
    /// Which file of the store was missing or replaced when it was closed, as a sentence.
    package private(set) var lossAtClose: String?
    /// Why nothing may be appended: the last commit is in files that no start finds.
    private var loss: StateError?
    /// What is missing of the past, besides what the log's floor says.
    let floors = StateLock(HistoryFloors())
    private var pendingFiles: String?
    private var fileContainersText: String?
    /// Who is told what happens to it; must be set before the load.
    package var reports = SettlingReports()

    /// Names of metadata that is the store's own; others begin with a word and a colon.
    enum Name {
        static let pendingFiles = "files pending"
        static let fileContainers = "files containers"
        static let floor = "history floor"
        static let floors = "history floors"
    }

    /// Makes a store in a data directory, which is created if it is missing: `stated.db`, `log/` and
    /// `lock`, for this user alone.
    ///
    /// `history` is how much of the past it keeps. Nothing is opened until ``load(_:)``.
    public convenience init(directory: String, history: HistoryLimits = HistoryLimits()) {
        var options = Options()
        options.history = history
        self.init(directory: directory, options)
    }

    /// Makes a store in a database file of its own, in an existing directory, with its log in
    /// `<path>-log/` and its owner's lock in `<path>.lock`.
    ///
    /// The database has a change about a second later, so that `sqlite3` shows it. `history` is how much
    /// of the past it keeps. Nothing is opened until ``load(_:)``.
    public convenience init(path: String, history: HistoryLimits = HistoryLimits()) {
        var options = Options()
        options.history = history
        options.settling.age = 1_000_000_000
        self.init(path: path, options)
    }

    package convenience init(directory: String, _ options: Options) {
        let location = StoreLocation(directory: directory)
        self.init(location, log: location.logDirectory, options)
    }

    package convenience init(path: String, _ options: Options) {
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
        room = DiskRoom(
            location.directory,
            log: log,
            DiskRoom.Settings(
                history: options.history,
                leastHistory: options.leastHistory,
                reserveByteCount: options.reserveByteCount
            )
        )
        self.openFiles = openFiles
        bootMark = BootMark(path: location.bootMark)
    }

    // MARK: Settings, for any thread

    /// How much of the past it keeps; applies within seconds.
    package var history: HistoryLimits {
        get { room.settings.history }
        set { room.settings.history = newValue }
    }

    /// How much of it a full disk leaves; nil: half.
    package var leastHistory: HistoryLimits? {
        get { room.settings.leastHistory }
        set { room.settings.leastHistory = newValue }
    }

    /// What is kept of the disk for deletes and settling, besides the least that they take; applies
    /// within seconds.
    package var reserveByteCount: Int64 {
        get { room.settings.reserveByteCount }
        set { room.settings.reserveByteCount = newValue }
    }

    /// What the store takes, what settling has done, and what holds it up.
    package var status: SettlingStatus { gauges.status.withLock { $0 } }

    /// No row of the database has a change after this revision.
    var lastRowRevision: Int64 { gauges.lastRow.load(ordering: .acquiring) }

    // MARK: The start

    /// Opens the store, makes it if it is missing, checks it, and passes on the rows in the order of keys,
    /// and then the newest changes that the log has behind them, which a thread reads meanwhile.
    public func load(_ receive: (borrowing StoredChange) -> Void) throws -> LoadedStore {
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

    /// Calls `body`, whose errors do not name the store.
    private func namingLog<Result>(_ body: () throws -> Result) throws -> Result {
        do { return try body() } catch let error as StateError {
            throw StateError(error.code, "\(logDirectory): \(error.message)")
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
        try giveUpSparesIfFull(files)
        let database = try SettledDatabase(location, under: lock)
        var (facts, texts) = try database.facts()
        var loaded = LoadedStore(
            epoch: facts.epoch,
            revision: max(facts.revision, facts.leastRevision)
        )
        if let former = facts.former, facts.life.number == 0 {
            try namingLog { try StateLog.remove(former, from: files) }
        }
        let ahead = try requireLog(files, facts) ? readAhead(files, facts) : nil
        defer { ahead?.end() }
        try readRows(database, facts, &loaded, receive)
        let tail =
            if let ahead {
                try openLog(ahead, facts, &loaded, &texts, receive)
            } else {
                try beginLog(database, &facts, above: loaded.revision, files)
            }
        let isCopy = FileIdentity(path: location.database) != facts.identity
        if isCopy { try beginCopy(database, &facts, above: loaded.revision) }
        loaded.epoch = facts.epoch
        loaded.revision = max(loaded.revision, facts.leastRevision)
        loaded.compacted = try takeFloors(&texts, facts, tail)
        hasAllDeferred = bootMark.isOfThisBoot
        beginLife(tail, database, &facts, ofCopy: isCopy)
        let isMoved = try moveLife(database)
        pendingFiles = texts.removeValue(forKey: Name.pendingFiles)
        fileContainersText = texts.removeValue(forKey: Name.fileContainers)
        loaded.metadata = texts
        let settler = makeSettler(database, facts, lock, files, tail)
        settler.mustMoveLife = !isMoved
        settler.raise = { [unowned self] floors throws(StateError) in try raise(floors) }
        let level = settler.look(trying: true)
        settler.noteStatus()
        let storeFiles = StoreFiles(
            [location.log, location.database],
            in: [location.directory, logDirectory],
            others: { [tail] in tail.finding }
        )
        settler.databaseFinding = { storeFiles.databaseFinding }
        fileCheck = FileCheck(storeFiles)
        (self.lock, self.tail, self.settler) = (lock, tail, settler)
        settler.start()
        if level < .ample, options.settling.hasThread { settler.askForRoom() }
        return loaded
    }

    private func makeSettler(
        _ database: SettledDatabase,
        _ facts: SettledFacts,
        _ lock: OwnerLock,
        _ files: any LogFiles,
        _ tail: LogTail
    ) -> Settler {
        Settler(
            database,
            facts,
            lock,
            files,
            tail,
            pause,
            options.settling,
            room,
            gauges,
            reports
        )
    }

    /// A start on a disk without any room takes what was prepared for later.
    private func giveUpSparesIfFull(_ files: any LogFiles) throws {
        let available = LogDirectory.availableByteCount(of: location.directory) ?? .max
        guard available < DiskRoom.leastByteCount else { return }
        try namingLog { try StateLog.removeSpares(from: files) }
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
        return tail.withLog { [retention = room.retention] log in
            log.retention = retention
            log.leastFloor = max(facts.floor, revision)
            return log.floor
        }
    }

    private func requireNothing() throws(StateError) {
        // The values are elsewhere: an empty store in their place would hide that.
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
        loading.begin(expecting: facts.rowCount)
        var lastRow: Int64 = 0
        let rowCount = try database.readAll { change in
            loading.noteRow()
            lastRow = max(lastRow, change.revision)
            receive(change)
        }
        gauges.lastRow.store(lastRow, ordering: .releasing)
        loaded.revision = max(loaded.revision, lastRow)
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
    private func requireLog(_ files: any LogFiles, _ facts: SettledFacts) throws -> Bool {
        let exists = try namingLog { try StateLog.exists(in: files) }
        guard facts.life.number > 0, !exists else { return true }
        guard facts.isClosed else {
            throw StateError(
                .corrupt,
                "the log of \(location.database) is missing, and has its newest changes: put "
                    + "\(logDirectory) back, or use stated --salvage"
            )
        }
        return false
    }

    private func readAhead(_ files: any LogFiles, _ facts: SettledFacts) -> LogAhead {
        LogAhead(
            files,
            from: LogStart(epoch: facts.log, place: facts.place),
            after: facts.revision,
            upTo: options.settling.sliceByteCount(
                fileByteCount(location.database) ?? 0,
                isStart: true
            )
        )
    }

    private func openLog(
        _ ahead: LogAhead,
        _ facts: SettledFacts,
        _ loaded: inout LoadedStore,
        _ texts: inout [String: String],
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> LogTail {
        let (log, rest) = try namingLog {
            let rest = try ahead.finish { change in
                loading.noteRow()
                receive(change)
            }
            return (try StateLog(rest.reading, options.log), rest)
        }
        loaded.revision = max(loaded.revision, rest.revision)
        for (name, text) in rest.metadata { texts[name] = text }
        // Rows are settled from what the log has durably.
        let lastRow = gauges.lastRow.load(ordering: .relaxed)
        guard [log.life.number, log.life.before].contains(facts.life.number),
            lastRow <= max(facts.revision, rest.revision)
        else {
            throw StateError(
                .corrupt,
                "\(location.database) and \(logDirectory) are of different times: put back the one "
                    + "that belongs to the other, or restore a backup"
            )
        }
        return LogTail(
            log,
            upTo: loaded.revision,
            settledUpTo: facts.place,
            largestValue: rest.largestValue
        )
    }

    /// Begins another store that has the values and the log of this one, durably.
    private func beginCopy(
        _ database: SettledDatabase,
        _ facts: inout SettledFacts,
        above revision: Int64
    ) throws {
        guard revision <= RevisionReservation.largestRevision - 1 << 32 else {
            throw StateError(
                .storage,
                "\(location.database): revision \(revision) is too close to the limit of 2^53"
            )
        }
        facts.epoch = .random()
        facts.leastRevision = revision + (1 << 32)
        facts.identity = FileIdentity(path: location.database)
        try database.write(facts)
        try database.confirm(wholly: false)
        _ = try database.checkpoint()
        reports.finding(
            "\(location.database) was copied or restored; continuing under a new epoch after "
                + "revision \(facts.leastRevision)"
        )
    }

    /// Begins another store that has the values of this one, whose log is not here, and an empty log.
    private func beginLog(
        _ database: SettledDatabase,
        _ facts: inout SettledFacts,
        above revision: Int64,
        _ files: any LogFiles
    ) throws -> LogTail {
        let (rowCount, former) = (facts.rowCount, facts.log)
        facts = SettledFacts(epoch: .random())
        (facts.revision, facts.rowCount, facts.former) = (revision, rowCount, former)
        facts.floor = revision + (1 << 32)
        try beginCopy(database, &facts, above: revision)
        let log = try namingLog {
            try StateLog.remove(former, from: files)
            return try StateLog(
                files,
                options.log,
                from: LogStart(epoch: facts.log, place: .none),
                after: facts.leastRevision
            ) { _, _ in }
        }
        return LogTail(log, upTo: facts.leastRevision, settledUpTo: .none)
    }

    /// From here on, a copy of the database or of the log that was made before does not fit.
    private func beginLife(
        _ tail: LogTail,
        _ database: SettledDatabase,
        _ facts: inout SettledFacts,
        ofCopy isCopy: Bool
    ) {
        // Also where the log cannot begin it: whatever is settled does not make the database whole.
        (facts.isClosed, facts.former) = (false, nil)
        do {
            let before = facts.life.number
            // The original goes on, too: neither's log fits the other's database.
            let step = isCopy ? UInt64.random(in: 1...1 << 32) : 1
            try tail.withLog { (log) throws(StateError) in
                let life = LogLife(number: max(log.life.number, before) + step, before: before)
                try log.begin(life, at: SystemClock.wallMilliseconds())
            }
            facts.life = LogLife(number: tail.withLog { $0.life.number })
            try database.write(facts)
        } catch {
            // A full disk, or another process that holds the write lock of the database: the log knows both
            // lives.
            reports.finding("\(location.database) is as the last process left it: \(error)")
        }
    }

    /// Without SQLite's own log the database must not pass for one that has everything.
    ///
    /// - Returns: Whether it does not any more.
    /// - Throws: SQLite's error: nobody can say what the disk has.
    private func moveLife(_ database: SettledDatabase) throws -> Bool {
        let failure: String
        do throws(SQLiteFailure) {
            try database.confirm(wholly: false)
            if try database.checkpoint() { return true }
            failure = "another process reads it"
        } catch {
            guard error.isOfAnotherProcess || error.isOfRoom && !error.isOfSync else { throw error }
            failure = "\(error)"
        }
        reports.finding("\(location.database) is as the last process left it: \(failure)")
        return false
    }

    // MARK: Commits

    /// Appends all changes of the batch to the log in one frame, and makes it durable with one sync.
    ///
    /// - Throws: ``StateError`` with ``StateError/Code/noSpace`` if the disk is full; nothing was committed.
    ///   ``StateError/Code/readOnly``, with a message that begins with `outcome unknown`, if no other file
    ///   can be written either: ``reopen(after:_:)`` decides what became of it.
    /// - Complexity: O(*n*) in the bytes of the changes, a write of whole blocks of 4 KiB and one fdatasync.
    public func commit(_ batch: borrowing CommitBatch) throws {
        try append(batch, isPublished: false)
    }

    /// The same without the sync if somebody has seen all of it, and nobody waits until it is durable.
    ///
    /// - Parameters:
    ///   - batch: What is to be appended.
    ///   - isPublished: Whether that is so.
    /// - Throws: As ``commit(_:)``.
    func append(_ batch: borrowing CommitBatch, isPublished: Bool) throws {
        guard batch.changeCount > 0 || !batch.metadata.isEmpty else { return }
        let time = SystemClock.wallMilliseconds()
        let carriedLimit = room.carriedByteLimit
        var appending = LogTail.Appending(time: time)
        appending.isOfCommit = true
        (appending.isPublished, appending.lastPublished) = (
            isPublished, batch.lastPublishedRevision
        )
        try append(appending, CommitValues(batch)) { line, appended in
            var coder = CommitCoder(at: time)
            let uncarried = coder.append(
                batch,
                after: appended,
                carryingBelow: line,
                upTo: carriedLimit
            )
            switch batch.pendingFileList {
            case .keep: break
            case .set(let text): coder.append(metadata: Name.pendingFiles, text)
            case .remove: coder.append(metadata: Name.pendingFiles, nil)
            }
            raiseFloors(without: uncarried, &coder)
            return coder.commits
        }
    }

    /// Called with the lock of the log, as ``raise(_:)`` is: so the last text has all of them.
    private func raiseFloors(without uncarried: [UncarriedChange], _ coder: inout CommitCoder) {
        guard !uncarried.isEmpty else { return }
        let highest = uncarried.reduce(0) { max($0, $1.revision) }
        let text = floors.withLock {
            $0.raise(keys: uncarried.map(\.key), to: highest)
            return $0.text
        }
        coder.append(metadata: Name.floors, text)
    }

    /// Nobody may ask for what rules do not keep from now on, durably.
    private func raise(_ raised: HistoryFloors) throws(StateError) {
        guard let tail else { return }
        let time = SystemClock.wallMilliseconds()
        let compacted = tail.withLog { $0.floor }
        _ = try tail.append(LogTail.Appending(time: time)) { _, _ in
            var coder = CommitCoder(at: time)
            // What the floors of patterns no longer say, a start has to know from here.
            coder.append(metadata: Name.floor, "\(compacted)")
            let text = floors.withLock {
                $0.raise(to: raised)
                $0.drop(through: compacted)
                return $0.text
            }
            coder.append(metadata: Name.floors, text)
            return coder.commits
        }
    }

    private func append(
        _ appending: LogTail.Appending,
        _ values: CommitValues = CommitValues(),
        encoding encode: (_ carryLine: Int64, _ appended: Int64) -> CodedCommits
    ) throws {
        guard let tail, let settler else {
            throw StateError(
                .readOnly,
                "\(location.database) is not open: nothing was committed"
            )
        }
        if let loss { throw loss }
        var appending = appending
        appending.limit = options.settling.logByteCount
        appending.largestValue = values.largestByteCount
        var byteCount = 0
        let isNew = try makingRoom { [appending] () throws(StateError) in
            try settler.admit(values)
            return try tail.append(appending) {
                let contents = encode($0, $1)
                byteCount = contents.bytes.count
                return contents
            }
        }
        if isNew { settler.wake() }
        settler.look(after: byteCount)
        // A commit to files that were removed or replaced meanwhile is not acknowledged.
        guard let finding = fileCheck?.findingAfterCommit() else { return }
        let lost = StateError(.readOnly, "\(StateError.unknownOutcome): \(finding)")
        loss = lost
        throw lost
    }

    /// Decides what became of a commit of unknown outcome.
    @discardableResult
    public func reopen(
        after revision: Int64,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> [String: String?] {
        guard let tail else {
            throw StateError(.storage, "\(location.database) is not open")
        }
        let decided: (contents: [UInt8], time: Int64)?
        if loss == nil {
            decided = try makingRoom { () throws(StateError) in try tail.decideUnknown() }
        } else {
            // The files have their names again, and the commit is in them.
            if let finding = fileCheck?.files.finding { throw StateError(.storage, finding) }
            (loss, decided) = (nil, tail.lastFrame)
        }
        guard let last = decided else { return [:] }
        var texts: [String: String?] = [:]
        try last.contents.withUnsafeBytes { contents in
            try CommitCoder.read(contents, at: last.time) { change, _ in
                if change.revision > revision { receive(change) }
            } metadata: { name, text in
                texts[name] = .some(text)
            }
        }
        if let pending = texts.removeValue(forKey: Name.pendingFiles) { pendingFiles = pending }
        for name in [Name.fileContainers, Name.floor, Name.floors] {
            texts.removeValue(forKey: name)
        }
        return texts
    }

    /// Calls `body` as ``Settler/makingRoom(until:_:_:)`` does, for as long as a failure is worth waiting
    /// for.
    private func makingRoom<Result>(
        _ body: () throws(StateError) -> Result
    ) throws(StateError) -> Result {
        guard let settler else { return try body() }
        let deadline = options.log.now() + options.log.patience
        return try settler.makingRoom(until: deadline, options.log, body)
    }

    /// Settles everything that is durable in the log now; only without a thread for that.
    package func settle() throws(StateError) {
        precondition(!options.settling.hasThread, "a thread settles this store")
        try settler?.settle()
    }

    /// The rows, for a reader on any thread.
    func openRows() throws -> SettledRows {
        guard let lock else { throw StateError(.storage, "\(location.database) is not open") }
        // SQLite opens files by their names.
        if let finding = fileCheck?.files.databaseFinding { throw StateError(.storage, finding) }
        return try SettledRows(location, under: lock, pause)
    }

    /// Which file of the store is missing or replaced, as a sentence; nil if none is.
    ///
    /// May be read on any thread between load and close.
    package var fileFinding: String? { fileCheck?.files.finding }

    /// Settles everything, so that the database alone has the store, and releases the lock.
    ///
    /// If that fails, it is left as after a crash: the next start reads the log.
    public func close() {
        guard let settler, !leavesToOwner() else { return }
        settler.end()
        defer { (self.settler, tail, lock, fileCheck) = (nil, nil, nil, nil) }
        lossAtClose = fileFinding.map {
            "\($0); what only this process has is lost unless statectl export saved it"
        }
        guard lossAtClose == nil else { return }
        do { try settler.close(at: SystemClock.wallMilliseconds()) } catch {
            reports.finding("\(location.database) was left unsettled: \(error.message)")
        }
    }

    /// A store that is released without ``close()`` is as after a crash.
    deinit { if !leavesToOwner() { settler?.end() } }

    /// A child that was forked closes nothing: SQLite would remove what its parent uses.
    ///
    /// - Returns: Whether this is one.
    private func leavesToOwner() -> Bool {
        guard let settler, let lock, !lock.isOfThisProcess else { return false }
        _ = Unmanaged.passRetained(settler)
        lock.leaveToOwner()
        return true
    }
}

extension SQLiteBacking: PendingFileListBacking {
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

    /// Writes metadata of the store in a frame of its own, which is of no commit: a segment that begins
    /// with it has no change of the last revision.
    fileprivate func write(_ name: String, _ text: String?) throws {
        let time = SystemClock.wallMilliseconds()
        var coder = CommitCoder(at: time)
        coder.append(metadata: name, text)
        try append(LogTail.Appending(time: time)) { [commits = coder.commits] _, _ in commits }
    }

    /// Writes from which revision on the past may be asked for, durably.
    func writeFloor(_ floor: Int64) throws { try write(Name.floor, "\(floor)") }
}
