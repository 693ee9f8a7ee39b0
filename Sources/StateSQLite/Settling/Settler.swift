import CLinux
import StateEngine
import StateLog
import StateModel
import StatePlatform
import StateSystem
import Synchronization

/// When and how a log is settled.
package struct SettlingOptions: Sendable {
    /// It is settled once it has so many bytes more than the database, or three quarters of the database's.
    package var logByteCount = 64 << 20
    /// It is settled once the oldest change that is not settled has this age, in nanoseconds.
    package var age: Int64 = 600_000_000_000
    /// How many bytes the changes of one transaction take in memory, about.
    package var sliceByteCount = 32 << 20
    /// How many more they may take now, up to the size of the database, as each transaction writes nearly all
    /// of its pages; given how many bytes of memory others will have taken before.
    package var spareMemory: @Sendable (Int) -> Int = { _ in 0 }
    /// Whether a thread does it; otherwise it is settled on demand only.
    package var hasThread = true

    /// How many bytes changes may take at once, of a database of so many.
    ///
    /// - Parameters:
    ///   - databaseByteCount: The bytes of the database.
    ///   - isStart: Whether its rows are read into memory before these changes can go.
    /// - Returns: At least ``sliceByteCount``.
    func sliceByteCount(_ databaseByteCount: Int64, isStart: Bool = false) -> Int {
        let wanted = Int(clamping: databaseByteCount)
        guard wanted > sliceByteCount else { return sliceByteCount }
        // With what the keyspace adds to each row.
        return min(wanted, sliceByteCount + spareMemory(isStart ? wanted + wanted / 2 : 0))
    }
}

/// What a settled store takes on its disks, and what its settler has done since the start.
package struct SettlingStatus: Hashable, Sendable {
    /// When a settle ended, and how long it took.
    package struct Settle: Hashable, Sendable {
        /// Milliseconds since 1970.
        package var time: Int64
        package var nanoseconds: Int64
    }

    /// What became of the segments of the log.
    package struct Segments: Hashable, Sendable {
        /// How many there are.
        package var count = 0
        /// Those that left the log, and how many of their files it uses again.
        package var droppedCount = 0
        package var reusedCount = 0
        /// Those that were written again without what rules do not keep.
        package var rewrittenCount = 0
        /// How often another one had to take over what was not synced.
        package var replacedCount = 0
    }

    /// Why the last attempt failed, or what holds it up; nil if nothing does.
    package var failure: String?
    /// Up to this revision everything is in the database.
    package var settledRevision: Int64 = 0
    package var settleCount = 0
    /// The last one that succeeded.
    package var last: Settle?
    package var segments = Segments()
    /// The database, and what of it are free pages.
    package var databaseByteCount: Int64 = 0
    package var freeByteCount: Int64 = 0
    /// The files of the log.
    package var logByteCount: Int64 = 0
    /// What of the log is not settled.
    package var unsettledByteCount: Int64 = 0
    /// How many bytes of earlier versions commits have carried.
    package var carriedByteCount: Int64 = 0
    /// From this revision on the past can be read.
    package var floor: Int64 = 0
    /// The bytes that the disks have beyond the reserve; less than 0 if that is used.
    package var room: Int64 = 0
}

/// Who is told what happens to a store, on any thread.
package struct SettlingReports: Sendable {
    /// Called with each problem that stops nothing, as a sentence.
    package var finding: @Sendable (_ finding: String) -> Void = { _ in }
    /// Called when settling fails after it succeeded, and with nil when it succeeds again.
    package var failure: @Sendable (_ failure: String?) -> Void = { _ in }

    package init() {}
}

/// The status of a store, which any thread may read.
final class SettlingGauges: Sendable {
    let status = StateLock(SettlingStatus())
    /// No row of the database has a change after this revision, also if the last attempt failed on its way.
    let lastRow = Atomic<Int64>(0)
}

/// Puts what the log has into the database, on a thread of its own, and drops what the log then needs
/// no more.
///
/// Its database is used by one thread at a time: the one that loads, then the settler's, and once that
/// was joined, the one that closes. This is the proof of `@unchecked Sendable`.
final class Settler: @unchecked Sendable {
    private let lock: OwnerLock
    private let location: StoreLocation
    private let files: any LogFiles
    private let tail: LogTail
    private let pause: CompactionPause
    private let options: SettlingOptions
    private let room: DiskRoom
    private let gauges: SettlingGauges
    /// Called with what happens to the history because the disk is full.
    private let reports: SettlingReports

    /// Nil after an error of SQLite: it is opened again then.
    private(set) var database: SettledDatabase?
    private(set) var facts: SettledFacts
    /// Up to there the database is durable: the log is needed from there on.
    private var durable: LogPlace
    private var trust = Trust()
    /// How many bytes of pages SQLite's own log may have that are not in the database.
    private var unmovedByteCount = SettledDatabase.logByteCount

    /// What is known of the database since it was opened.
    private struct Trust {
        /// Whether its files are on the disk as they are seen, and whether an error made that doubtful.
        var (isConfirmed, hasFailed) = (false, false)
        /// Whether all of its pages were found where they belong.
        var isChecked = false
        /// Where one was not; it is not looked for again.
        var fault: String?
    }

    private let untold = Untold()
    private let requests = Requests()

    /// What rules keep of the history, for its thread; nil if they leave that to the retention.
    let rules = StateLock<HistoryRules?>(nil)
    /// Makes durable that nobody may ask for what rules do not keep.
    ///
    /// Set before it is started.
    var raise: (HistoryFloors) throws(StateError) -> Void = { _ in }
    /// Which file of the database is missing or replaced, as a sentence; nil if none is.
    ///
    /// Set before it is started.
    var databaseFinding: () -> String? = { nil }
    /// The segment that was being written when it last looked for some to drop.
    private var lastSegment: UInt64 = 0
    /// How many bytes were settled since segments were last written again.
    private var untrimmedByteCount = 0
    /// The segment where that goes on, as memory has a limit; 0 for the oldest.
    private var untrimmedSegment: UInt64 = 0

    /// What is known of changes that may go takes at least so many bytes of memory meanwhile.
    private static let trimByteCount = 16 << 20

    /// When what failed is tried again, and how long that waited.
    private var retry = (at: Int64(0), wait: Int64(0))
    /// Whether what failed ends when somebody else does something, and costs little to try again.
    private var dependsOnOthers = false
    /// Whether the database on the disk still says that it has everything, as the last process left it.
    var mustMoveLife = false

    private let thread = WorkerThread(name: "settling")
    private let spares: SparePreparer

    init(
        _ database: SettledDatabase,
        _ facts: SettledFacts,
        _ lock: OwnerLock,
        _ files: any LogFiles,
        _ tail: LogTail,
        _ pause: CompactionPause,
        _ options: SettlingOptions,
        _ room: DiskRoom,
        _ gauges: SettlingGauges,
        _ reports: SettlingReports
    ) {
        (self.database, self.facts, self.lock) = (database, facts, lock)
        (self.files, self.tail, self.pause, self.options) = (files, tail, pause, options)
        (self.room, self.gauges, self.reports) = (room, gauges, reports)
        (location, durable) = (database.location, facts.place)
        spares = SparePreparer(tail)
        gauges.status.withLock { $0.settledRevision = facts.revision }
    }

    /// Begins to settle by itself.
    func start() {
        guard options.hasThread else { return }
        thread.start { [self] in
            clinux_schedule_as_batch()
            run()
        }
        spares.start()
    }

    /// Has it look whether there is something to do.
    func wake() {
        requests.wakeup.signal()
        spares.wake()
    }

    private func run() {
        var wait: Int64?
        while true {
            requests.wakeup.wait(nanoseconds: wait)
            guard !requests.isEnding.load(ordering: .acquiring) else { return finishShrinking() }
            requests.answer { () throws(StateError) in try settleAndDropAll() }
            if requests.needsRoom.exchange(false, ordering: .acquiring) { makeRoom() }
            finishShrinking()
            requests.endHurry()
            let proof = tail.proveLast()
            wait = [proof, settleIfDue()].compactMap(\.self).min()
        }
    }

    /// - Returns: In how many nanoseconds to look again; nil if nothing is to be settled.
    private func settleIfDue() -> Int64? {
        let (databaseByteCount, limit) = (databaseByteCount, limit)
        // Where the disk has less left than the database takes, what deletes free is wanted soon.
        let age =
            room.margin < databaseByteCount ? min(options.age, Settler.scarceAge) : options.age
        func rest() -> Int64? {
            tail.oldest.map { max(0, $0 + age - clinux_monotonic_nanoseconds()) }
        }
        // What failed is tried again, so that nobody is told of a failure that has ended.
        let hasFailed = gauges.status.withLock { $0.failure != nil }
        let pause = retry.at - clinux_monotonic_nanoseconds()
        if hasFailed, pause > 0 { return pause }
        guard tail.unsettledByteCount >= limit || rest() == 0 || hasFailed else {
            if hasNewSegment { _ = removing(pausing: true) { dropIfDue() } }
            return rest()
        }
        // A backup that is slow must not let the log grow without end.
        let pauses = tail.unsettledByteCount < Settler.pausedShare * limit
        // If it fails, or waits for a backup, the log keeps everything meanwhile.
        let isIdle = tail.unsettledByteCount < limit
        guard (try? settle(pausing: pauses)) == true else { return delayRetry() }
        if isIdle {
            for spare in tail.withLog({ $0.takeExtraSpares() }) { spare.remove(from: files) }
        }
        return rest()
    }

    /// - Returns: In how many nanoseconds to try again. A disk that fails is not read and written without
    ///   end; a reader, or a full disk, is noticed within a second of its end.
    private func delayRetry() -> Int64 {
        let isLong = gauges.status.withLock { $0.failure != nil } && !dependsOnOthers
        let wait = isLong ? min(2 * retry.wait, Settler.longestRetry) : Settler.shortestRetry
        retry.wait = max(wait, Settler.shortestRetry)
        retry.at = clinux_monotonic_nanoseconds() + retry.wait
        return retry.wait
    }

    private static let shortestRetry: Int64 = 1_000_000_000
    private static let longestRetry: Int64 = 60_000_000_000

    private var databaseByteCount: Int64 { fileByteCount(location.database) ?? 0 }

    /// The log is settled once so many of its bytes are not: each settle writes nearly all pages of the
    /// database twice, where keys are at random.
    private var limit: Int { max(options.logByteCount, Int(databaseByteCount) / 4 * 3) }

    /// Drops what has become old meanwhile, and gives way to those who commit and serve, unless much of the
    /// log waits, the disk is nearly full, or somebody waits for it.
    ///
    /// A thread of low priority could not be given another one without privileges.
    private func choosePace() {
        dropIfDue()
        let isUrgent = tail.unsettledByteCount > 2 * limit || room.level < .ample
        clinux_give_way(thread.isCurrent && !isUrgent ? requests.hurry : nil)
    }

    private static let scarceAge: Int64 = 5_000_000_000

    /// A backup ends once the log has so many times what is settled otherwise.
    private static let pausedShare = 8

    // MARK: Settling

    /// Settles everything that is durable in the log now, and drops what nobody needs.
    ///
    /// Called by its thread, or without one.
    ///
    /// - Parameter pauses: Whether it does nothing while a backup reads the rows.
    /// - Returns: False if it did nothing.
    /// - Throws: ``StateError``; the log has everything that the database may lack.
    @discardableResult
    func settle(pausing pauses: Bool = false) throws(StateError) -> Bool {
        try removing(pausing: pauses) { () throws(StateError) in try settleNow() }
    }

    /// Calls `body`, which removes rows or changes, unless a backup reads them.
    ///
    /// - Returns: Whether it was called.
    private func removing<Failure: Error>(
        pausing pauses: Bool,
        _ body: () throws(Failure) -> Void
    ) throws(Failure) -> Bool {
        func isPaused() -> Bool {
            pauses && pause.millisecondsLeft(clinux_boottime_milliseconds) > 0
        }
        // To count it would end the backup.
        guard !isPaused() else { return false }
        // Order matters: a backup that begins now waits for the end, or is seen.
        pause.countRemoval()
        defer { pause.countRemoval() }
        guard !isPaused() else { return false }
        try body()
        return true
    }

    private func settleNow() throws(StateError) {
        let began = clinux_monotonic_nanoseconds()
        defer {
            tail.noteSettled(upTo: facts.place, at: began)
            gauges.status.withLock { [facts] in $0.settledRevision = facts.revision }
            noteStatus()
        }
        try reporting { () throws(StateError) in
            try settleDurable()
            let time = clinux_monotonic_nanoseconds() - began
            let freeByteCount = (try? database?.freeByteCount()) ?? 0
            retry.wait = 0
            note(failure: nil)
            gauges.status.withLock {
                $0.freeByteCount = freeByteCount
                $0.settleCount += 1
                $0.last = .init(time: SystemClock.wallMilliseconds(), nanoseconds: time)
            }
        }
    }

    /// Takes into the status why something failed.
    private func reporting(_ body: () throws(StateError) -> Void) throws(StateError) {
        dependsOnOthers = false
        do throws(StateError) { try body() } catch {
            note(failure: error.message)
            dependsOnOthers = dependsOnOthers || error.code == .noSpace
            if error.code == .noSpace { room.noteFull(tail.need, files) }
            throw error
        }
    }

    /// Takes why something failed into the status, and says so if that begins or ends.
    private func note(failure: String?) {
        let known = gauges.status.withLock { status in
            defer { status.failure = failure }
            return status.failure
        }
        if (failure == nil) != (known == nil) { reports.failure(failure) }
    }

    /// Settles, drops and writes again whatever may go.
    private func settleAndDropAll() throws(StateError) {
        let hasRules = rules.withLock { $0 } != nil
        let isAmple = look() == .ample
        try tail.withLogAlone { (log) throws(StateError) in
            if log.retention.isNone { log.leastFloor = max(log.leastFloor, log.lastRevision) }
            // Another segment takes room that compaction is to make first.
            guard isAmple, hasRules || log.hasUnwantedChanges else { return }
            try log.endSegment(at: SystemClock.wallMilliseconds())
        }
        let isDone = try removing(pausing: true) { () throws(StateError) in
            try settleNow()
            if hasRules { try trim(leastShare: 0) }
        }
        guard isDone else {
            let milliseconds = pause.millisecondsLeft(clinux_boottime_milliseconds)
            throw CompactionPause.refusal(endingIn: milliseconds)
        }
    }

    private func settleDurable() throws(StateError) {
        look()
        var database = try openDatabase()
        if mustCheckpoint { try checkpoint(database) }
        let end = tail.withLog { $0.syncedPlace }
        untrimmedByteCount += tail.withLog { [facts] in $0.snapshot(from: facts.place).byteCount }
        let changes = NewestChanges()
        defer { clinux_give_way(nil) }
        while facts.place < end {
            // A segment that goes is a file for commits, and room for this slice.
            try drop()
            look()
            choosePace()
            database = try openDatabase()
            let stretch = tail.withLog { [facts] in $0.snapshot(from: facts.place) }
            var next = facts
            let limit = options.sliceByteCount(databaseByteCount)
            next.place = try changes.read(stretch, after: facts.revision, upTo: limit)
            next.revision = max(next.revision, changes.revision)
            // Order matters: nobody may ask for the past of a delete that is forgotten.
            next.floor = tail.withLog { [facts] in
                if $0.retention.isNone { $0.leastFloor = max($0.leastFloor, facts.revision) }
                return max(facts.floor, $0.floor)
            }
            // A kill between the transactions of an earlier settle may have left later ones.
            let lastRow = max(next.revision, gauges.lastRow.load(ordering: .relaxed))
            gauges.lastRow.store(lastRow, ordering: .releasing)
            try write(changes.sorted(), changes.metadata, next, database)
        }
        try drop()
        // After many deletes the file system gets its room back, and a store that changes keeps it.
        let freeByteCount = (try? database.freeByteCount()) ?? 0
        let isHalfFree = freeByteCount > (fileByteCount(location.database) ?? 0) / 2
        if isHalfFree, freeByteCount > 1 << 20 { try giveBack() }
        // If it fails, everything is settled nevertheless.
        try? cutLog(database)
        guard rules.withLock({ $0 }) != nil, look() == .ample else { return }
        if untrimmedByteCount > max(options.logByteCount, tail.byteCount / 4) {
            try trim(leastShare: 0.75)
        }
    }

    /// Writes rows in as many transactions as there is room for; the last one has the new facts.
    ///
    /// A start after the others finds some of the rows that the log has, too.
    private func write(
        _ rows: [NewestChange],
        _ metadata: [String: String?],
        _ next: SettledFacts,
        _ database: SettledDatabase
    ) throws(StateError) {
        var rest = SettledPieces(rows, room)
        repeat {
            look()
            let piece = try rest.next(free: { (try? database.freeByteCount()) ?? 0 })
            var written = rest.isEmpty ? next : facts
            written.rowCount = facts.rowCount
            let texts = rest.isEmpty ? metadata : [:]
            let deletes = try trying { () throws(SQLiteFailure) in
                try database.settle(piece, metadata: texts, &written, choosePace: choosePace)
            }
            facts = written
            untold.add(deletes)
            // The facts, and deletes that are forgotten, are on pages of their own.
            unmovedByteCount += piece.reduce(2 * (1 + deletes.count) * StoreHeader.pageByteCount) {
                $0 + SettledDatabase.pageByteCount(of: $1)
            }
            if !rest.isEmpty || mustCheckpoint { try checkpoint(database) }
        } while !rest.isEmpty
    }

    /// Whether SQLite's own log has much, or there is little room, or a segment waits to be dropped.
    ///
    /// The pages of a few changes may stay there: each change would be written once more.
    private var mustCheckpoint: Bool {
        if mustMoveLife { return true }
        guard facts.place != durable else { return false }
        return unmovedByteCount >= SettledDatabase.logByteCount || room.level < .ample
            || tail.withLog { [facts, durable] in
                $0.planDrop(before: facts.place).count > $0.planDrop(before: durable).count
            }
    }

    /// - Throws: ``StateError/Code/storage``, naming the process that reads and so keeps SQLite's own log
    ///   from being moved: it would grow with everything that is settled.
    private func checkpoint(_ database: SettledDatabase) throws(StateError) {
        if let finding = databaseFinding() { throw StateError(.storage, finding) }
        let isWhole = try pause.checkpointing { () throws(StateError) in
            try trying { () throws(SQLiteFailure) in try database.checkpoint() }
        }
        guard isWhole else {
            let holder = LockHolder.description(
                of: location.logIndex,
                bytes: LockHolder.readerBytes
            )
            dependsOnOthers = true
            throw StateError(
                .storage,
                "\(holder) reads \(location.database): the log grows until that has ended"
            )
        }
        (durable, unmovedByteCount, mustMoveLife) = (facts.place, 0, false)
    }

    /// After an error of SQLite nobody can say what the database is: it is opened again.
    private func trying<Result>(
        _ body: () throws(SQLiteFailure) -> Result
    ) throws(StateError) -> Result {
        do throws(SQLiteFailure) { return try body() } catch {
            if error.isOfAnotherProcess {
                let holder = LockHolder.description(
                    of: location.logIndex,
                    bytes: LockHolder.writerBytes
                )
                dependsOnOthers = true
                throw StateError(.storage, "\(holder) holds the write lock of \(location.database)")
            }
            // A write that was refused has changed nothing, but nobody can say what a sync has done.
            if !error.isOfRoom || error.isOfSync { database = nil }
            throw StateError(
                error.isOfRoom ? .noSpace : .storage,
                "\(location.database) cannot be settled: \(error)"
            )
        }
    }

    /// The database, whose files are as a reader sees them; after an error it is opened again.
    private func openDatabase() throws(StateError) -> SettledDatabase {
        // What goes to files without names, no start finds: the log keeps everything.
        if let finding = databaseFinding() { throw StateError(.storage, finding) }
        let opened: SettledDatabase
        if let database { opened = database } else { opened = try reopenedDatabase() }
        database = opened
        opened.transactionByteCount = room.transactionByteCount
        if !trust.isConfirmed {
            try trying { () throws(SQLiteFailure) in try opened.confirm(wholly: trust.hasFailed) }
            trust.isConfirmed = true
        }
        return opened
    }

    private func reopenedDatabase() throws(StateError) -> SettledDatabase {
        do {
            let opened = try SettledDatabase(location, under: lock)
            let (found, _) = try opened.facts()
            guard found.epoch == facts.epoch, found.place >= durable else {
                throw StateError.damaged(location.database, "it has less than was durable before")
            }
            facts = found
            trust = Trust()
            trust.hasFailed = true
            return opened
        } catch let failure as SQLiteFailure {
            throw StateError.cannotOpen(location.database, failure)
        } catch {
            throw error as? StateError ?? StateError(.storage, "\(error)")
        }
    }

    // MARK: Dropping

    private var hasNewSegment: Bool { tail.withLog { $0.endPlace.segment } != lastSegment }

    /// Drops segments that nobody needs any more because another one has begun: one at a time, so that each
    /// is the next file for commits, and few wait for that.
    private func dropIfDue() {
        // The pages of the database are looked at between transactions.
        guard hasNewSegment, trust.isChecked else { return }
        let segment = tail.withLog { $0.endPlace.segment }
        // If it fails, it is tried again, and the next settle says so.
        if (try? drop()) != nil { lastSegment = segment }
    }

    /// Drops the segments before the place up to which the database is durable.
    ///
    /// Order matters: the database is synced; then a segment is void, durably; then it may be used
    /// again.
    private func drop() throws(StateError) {
        let count = tail.withLog { [durable] in $0.planDrop(before: durable).count }
        guard count > 0 else { return }
        // Once it is confirmed, what it has is durable.
        let database = try openDatabase()
        if !trust.isChecked {
            // A count of rows does not see a damaged list of free pages, which would be written over.
            if trust.fault == nil {
                trust.fault = try trying { () throws(SQLiteFailure) in
                    try database.findFault(under: lock)
                }
            }
            if let fault = trust.fault { throw StateError.damaged(location.database, fault) }
            trust.isChecked = true
        }
        let segments = tail.withLog { $0.drop(count) }
        untold.add([])
        let hasReaders = !waitForReaders()
        for dropped in segments {
            gauges.status.withLock { $0.segments.droppedCount += 1 }
            // A reader keeps a file that it has open, as long as nobody writes to it.
            guard !hasReaders, let byteCount = try? dropped.byteCount(),
                tail.withLog({ $0.wants(spareOf: byteCount) }),
                let spare = try? LogSpare(dropping: dropped)
            else {
                dropped.remove(from: files)
                continue
            }
            tail.withLog { $0.offer(spare) }
            gauges.status.withLock { $0.segments.reusedCount += 1 }
        }
    }

    /// Waits until the reads that have begun so far have ended, for a while.
    ///
    /// - Returns: Whether they have.
    private func waitForReaders() -> Bool {
        let limit = tail.readerLimit
        for _ in 0..<200 {
            guard tail.hasReader(below: limit) else { return true }
            usleep(1_000)
        }
        return !tail.hasReader(below: limit)
    }

    /// Writes segments again without the changes that rules do not keep.
    ///
    /// Order matters: the segment is settled, durably; then nobody may ask for what goes; then it goes.
    ///
    /// - Parameter share: How many of the changes of a segment have to go, so that it is worth it.
    /// - Throws: ``StateError``; what was to go may be read no more, or as before.
    private func trim(leastShare share: Double) throws(StateError) {
        guard let rules = rules.withLock({ $0 }) else { return }
        // What was settled last may be in SQLite's own log only.
        if durable.segment < facts.place.segment { try checkpoint(openDatabase()) }
        let (view, trim) = try tail.withView { view throws(StateError) in
            let isGoingOn = { !self.requests.isEnding.load(ordering: .relaxed) }
            return (
                view,
                try HistoryTrim(
                    view,
                    by: rules,
                    from: untrimmedSegment,
                    upTo: max(Settler.trimByteCount, options.sliceByteCount(databaseByteCount)),
                    while: isGoingOn
                )
            )
        }
        var floors = HistoryFloors()
        var chosen: [(number: UInt64, places: [HistoryPlace])] = []
        for segment in view.segments where segment.number < durable.segment {
            guard let dropped = trim.dropped[segment.number],
                Double(dropped.count) >= share * Double(segment.changeCount)
            else { continue }
            for change in dropped {
                for pattern in rules.patterns(of: change.rule) {
                    floors.raise(pattern, to: change.successor)
                }
            }
            chosen.append((segment.number, dropped.map(\.place)))
        }
        defer { (untrimmedByteCount, untrimmedSegment) = (0, trim.rest) }
        guard !chosen.isEmpty else { return }
        try raise(floors)
        for (number, places) in chosen {
            // The rest can be done later: nobody asks for what goes any more.
            guard !requests.isEnding.load(ordering: .relaxed),
                !requests.needsRoom.load(ordering: .relaxed)
            else { return }
            guard let rewrite = tail.withLog({ $0.planRewrite(of: number) }) else { continue }
            let written = try rewrite.write(without: places)
            // A reader keeps the file that it has open.
            tail.withLog { $0.take(written) }?.remove(from: files)
            gauges.status.withLock { $0.segments.rewrittenCount += 1 }
        }
        untold.add([])
    }

    // MARK: What others ask for

    /// Whether there is something for ``takeForgotten()``, or the floor may be higher.
    var hasNews: Bool { untold.exists.load(ordering: .acquiring) }

    /// Removes and returns the deletes that the database has forgotten.
    func takeForgotten() -> [CompactionStep.CompactedDelete] { untold.take() }

    /// Has it drop what nobody may ask for any more.
    func dropSoon() {
        guard options.hasThread else { return }
        requests.ask()
        requests.beginHurry()
        wake()
    }

    /// Whether it has done what it was asked for, or does it within some nanoseconds.
    ///
    /// - Throws: Why it could not.
    func hasDropped(within nanoseconds: Int64) throws(StateError) -> Bool {
        try requests.isAnswered(within: nanoseconds)
    }

    /// Settles, drops segments and gives free pages of the database back to the file system.
    ///
    /// - Returns: By how many bytes the files are smaller.
    /// - Throws: ``StateError``; perhaps some of it was done.
    func shrink() throws(StateError) -> Int64 {
        guard options.hasThread else { return try shrinkNow() }
        let isDone = BlockingSemaphore()
        requests.shrinking.withLock { $0 = Requests.Shrinking(isDone: isDone) }
        requests.beginHurry()
        wake()
        isDone.wait()
        let result = requests.shrinking.withLock { request in
            defer { request = nil }
            return request?.result
        }
        return try result?.get() ?? 0
    }

    private func finishShrinking() {
        guard let isDone = requests.shrinking.withLock({ $0?.isDone }) else { return }
        let result: Result<Int64, StateError>
        do throws(StateError) { result = .success(try shrinkNow()) } catch {
            result = .failure(error)
        }
        requests.shrinking.withLock { $0?.result = result }
        isDone.signal()
    }

    private func shrinkNow() throws(StateError) -> Int64 {
        let before = byteCount
        try settle()
        try giveBack()
        return before - byteCount
    }

    // MARK: Room

    /// Looks how much room there is, and has the log do what follows; for any thread.
    ///
    /// - Parameter tries: As for ``DiskRoom/look(_:_:trying:)``.
    /// - Returns: How much there is.
    @discardableResult
    func look(trying tries: Bool = false) -> DiskRoom.Level {
        let level = room.look(tail.need, files, trying: tries)
        let (retention, limit) = (room.retention, room.spareByteLimit)
        let keepsLess = tail.withLog { log in
            defer { (log.retention, log.spareByteLimit) = (retention, limit) }
            return log.retention.shared(with: retention) != log.retention
        }
        if keepsLess, level == .ample, options.hasThread { dropSoon() }
        return level
    }

    /// The same after a commit, from time to time.
    func look(after byteCount: Int) {
        guard room.isDue(after: byteCount), look() < .ample, options.hasThread else { return }
        // What cannot be mended is tried again from time to time.
        let rest = clinux_monotonic_nanoseconds() - requests.madeRoomAt.load(ordering: .relaxed)
        if rest >= 1_000_000_000 { askForRoom() }
    }

    /// - Throws: As ``DiskRoom/admit(_:_:_:)``.
    func admit(_ values: CommitValues) throws(StateError) {
        if values.areLong { try room.admit(values, tail.need, files) }
    }

    /// Calls `body` again when room was made, if it is refused for lack of it.
    ///
    /// - Parameters:
    ///   - deadline: Until then, on the clock of `log`.
    ///   - log: How that waits.
    ///   - body: Has changed nothing if it throws ``StateError/Code/noSpace``.
    /// - Returns: What `body` does.
    /// - Throws: What `body` throws, once everything was tried to make room.
    func makingRoom<Result>(
        until deadline: Int64,
        _ log: StateLog.Options,
        _ body: () throws(StateError) -> Result
    ) throws(StateError) -> Result {
        let first = requests.roundCount.load(ordering: .acquiring)
        while true {
            do throws(StateError) { return try body() } catch {
                // What was under way may have begun too soon.
                let isTried = requests.roundCount.load(ordering: .acquiring) &- first >= 2
                guard error.code == .noSpace else { throw error }
                room.noteFull(tail.need, files)
                askForRoom()
                guard !isTried, log.now() < deadline else { throw error }
                log.pause()
            }
        }
    }

    /// Has room made: by the thread, or now if there is none.
    func askForRoom() {
        guard options.hasThread else { return makeRoom() }
        requests.needsRoom.store(true, ordering: .releasing)
        requests.beginHurry()
        wake()
    }

    /// Makes room: by what nobody misses, and if that is not enough, by the oldest of the history.
    func makeRoom() {
        defer {
            let time = room.level < .ample ? clinux_monotonic_nanoseconds() : 0
            requests.madeRoomAt.store(time, ordering: .relaxed)
            requests.roundCount.wrappingAdd(1, ordering: .releasing)
        }
        removeSpares()
        guard look() < .ample else { return }
        // A backup goes on as long as nobody is refused.
        let isPaused = pause.millisecondsLeft(clinux_boottime_milliseconds) > 0
        guard room.level == .short || !isPaused else { return }
        // If it fails, it is tried again.
        try? settleForRoom()
        guard look() < .ample else { return }
        let floor = tail.withLog { $0.floor }
        room.shortenHistory()
        try? settleForRoom()
        if look(trying: true) == .short, tail.withLog({ $0.giveUpHeldHistory() }) {
            try? settleForRoom()
            look(trying: true)
        }
        let raised = tail.withLog { $0.floor }
        guard raised > floor, room.tellsOfHistory() else { return }
        reports.finding(
            "the disk of \(location.directory) is nearly full: the history before revision \(raised) "
                + "was dropped"
        )
    }

    private func settleForRoom() throws(StateError) {
        let time = SystemClock.wallMilliseconds()
        tail.withLogAlone { try? $0.endLargeSegment(at: time) }
        // A little of the log is not worth a checkpoint each second.
        if look() == .short || tail.unsettledByteCount >= 1 << 20 {
            try settle()
        }
        _ = try removing(pausing: false) { () throws(StateError) in
            try reporting { () throws(StateError) in
                try drop()
                try giveBack()
            }
        }
    }

    private func removeSpares() {
        // Without any room for a transaction, what that frees is more than a file for deletes.
        let hasLog = fileByteCount(location.log) ?? 0 >= SettledDatabase.logByteCount / 4
        let keepsOne = hasLog || !room.isExhausted
        for spare in tail.withLog({ $0.takeSpares(keepingOne: keepsOne) }) {
            spare.remove(from: files)
        }
    }

    /// Forgets deletes that nobody may ask for, and gives free pages and the rest of SQLite's own log
    /// back.
    private func giveBack() throws(StateError) {
        let database = try openDatabase()
        while try forgetDeletes(database) { try checkpoint(database) }
        func giveSome() throws(StateError) -> Bool {
            try trying { () throws(SQLiteFailure) in try database.giveBack() }
        }
        while try giveSome() { try checkpoint(database) }
        try cutLog(database)
    }

    /// Gives the rest of SQLite's own log back, once all of it is in the database: the start after a crash
    /// would read it.
    private func cutLog(_ database: SettledDatabase) throws(StateError) {
        guard durable == facts.place,
            fileByteCount(location.log) ?? 0 > 2 * SettledDatabase.logByteCount
        else { return }
        // Any transaction begins it anew, and cuts it.
        try trying { [facts] () throws(SQLiteFailure) in try database.write(facts) }
        try checkpoint(database)
    }

    /// Brings the status up to date.
    func noteStatus() {
        var status = SettlingStatus()
        tail.describe(in: &status)
        let databaseByteCount = fileByteCount(location.database) ?? 0
        let room = room.margin
        gauges.status.withLock { known in
            (known.logByteCount, known.segments.count) = (
                status.logByteCount, status.segments.count
            )
            known.unsettledByteCount = status.unsettledByteCount
            known.carriedByteCount = status.carriedByteCount
            (known.segments.replacedCount, known.floor) = (
                status.segments.replacedCount, status.floor
            )
            (known.databaseByteCount, known.room) = (databaseByteCount, room)
        }
    }

    /// - Returns: Whether there may be more.
    private func forgetDeletes(_ database: SettledDatabase) throws(StateError) -> Bool {
        var next = facts
        next.floor = max(facts.floor, tail.withLog { $0.floor })
        let deletes = try trying { () throws(SQLiteFailure) in try database.forgetDeletes(&next) }
        facts = next
        untold.add(deletes)
        return !deletes.isEmpty
    }

    /// The bytes of all files.
    private var byteCount: Int64 {
        let log = tail.withLog { $0.fileByteCount }
        return [location.database, location.log].reduce(Int64(log)) {
            $0 + (fileByteCount($1) ?? 0)
        }
    }

    // MARK: The end

    /// Ends the threads; settles nothing.
    func end() {
        requests.isEnding.store(true, ordering: .releasing)
        requests.beginHurry()
        requests.wakeup.signal()
        thread.join()
        spares.end()
    }

    /// Settles everything and begins another life, which no copy made before has; the thread has ended.
    func close(at time: Int64) throws(StateError) {
        // Nobody writes much for now: what was prepared for that takes no more room.
        for spare in tail.withLog({ $0.takeSpares(keepingOne: true) }) { spare.remove(from: files) }
        tail.withLogAlone { try? $0.endLargeSegment(at: time) }
        database?.syncSeldom()
        // What is appended later than that would not be settled.
        try tail.withLogAlone { (log) throws(StateError) in try log.sync() }
        try settle()
        let life = LogLife(number: facts.life.number + 1, before: facts.life.number)
        try tail.withLogAlone { (log) throws(StateError) in
            try log.begin(life, at: time)
            facts.place = log.syncedPlace
        }
        guard let database else { return }
        facts.life = life
        facts.isClosed = true
        do throws(SQLiteFailure) {
            try database.write(facts)
            _ = try database.checkpoint()
        } catch {
            throw StateError.cannotOpen(location.database, error)
        }
        database.checkpointsOnClose()
        self.database = nil
    }
}

/// What the database has done that the keyspace has not been told yet.
private final class Untold: Sendable {
    let exists = Atomic(false)
    private let deletes = StateLock<[CompactionStep.CompactedDelete]>([])

    /// Adds deletes that the database has forgotten; the floor may be higher, too.
    func add(_ forgotten: [CompactionStep.CompactedDelete]) {
        if !forgotten.isEmpty { deletes.withLock { $0 += forgotten } }
        exists.store(true, ordering: .releasing)
    }

    func take() -> [CompactionStep.CompactedDelete] {
        exists.store(false, ordering: .releasing)
        return deletes.withLock { deletes in
            defer { deletes = [] }
            return deletes
        }
    }
}

/// What other threads ask of the one that settles.
///
/// The flag is set and read in C, atomically: the proof of `@unchecked Sendable`.
private final class Requests: @unchecked Sendable {
    struct Shrinking {
        let isDone: BlockingSemaphore
        var result: Result<Int64, StateError>?
    }

    /// How often somebody asked for segments to be dropped, how often that was done, and why it could not
    /// be.
    private let dropping = StateLock((asked: 0, answered: 0, failure: nil as StateError?))
    private let hasAnswered = BlockingSemaphore()
    /// Whether the disk is nearly full, and when room was made last that was not enough; 0 if it was.
    let needsRoom = Atomic(false)
    let madeRoomAt = Atomic<Int64>(0)
    /// How often room was made.
    let roundCount = Atomic<Int>(0)
    let wakeup = BlockingSemaphore()
    let isEnding = Atomic(false)
    /// Who waits for room in the file system.
    let shrinking = StateLock<Shrinking?>(nil)

    /// Whether somebody waits for the thread, which then gives way to nobody.
    let hurry: UnsafeMutablePointer<Int32>

    init() {
        hurry = .allocate(capacity: 1)
        hurry.initialize(to: 0)
    }

    deinit { hurry.deallocate() }

    func beginHurry() { clinux_set_hurry(hurry, 1) }

    /// Nobody waits any more, unless it ends.
    func endHurry() {
        clinux_set_hurry(hurry, 0)
        // Order matters: whoever ends it has set the flag after that.
        if isEnding.load(ordering: .sequentiallyConsistent) { beginHurry() }
    }

    func ask() { dropping.withLock { $0.asked += 1 } }

    /// Calls `body` if somebody has asked since it was called last.
    func answer(_ body: () throws(StateError) -> Void) {
        let asked = dropping.withLock { $0.asked > $0.answered ? $0.asked : nil }
        guard let asked else { return }
        var failure: StateError?
        do throws(StateError) { try body() } catch { failure = error }
        dropping.withLock { ($0.answered, $0.failure) = (asked, failure) }
        hasAnswered.signal()
    }

    func isAnswered(within nanoseconds: Int64) throws(StateError) -> Bool {
        if dropping.withLock({ $0.answered < $0.asked }) {
            hasAnswered.wait(nanoseconds: nanoseconds)
        }
        let (isAnswered, failure) = dropping.withLock { dropping in
            let isAnswered = dropping.answered == dropping.asked
            defer { if isAnswered { dropping.failure = nil } }
            return (isAnswered, isAnswered ? dropping.failure : nil)
        }
        if let failure { throw failure }
        return isAnswered
    }
}

/// Prepares files for later segments of a log, on a thread of its own: a commit that finds none has to
/// make one, and settling takes longer than a segment lasts.
private final class SparePreparer: Sendable {
    private let tail: LogTail
    private let thread = WorkerThread(name: "log files")
    private let wakeup = BlockingSemaphore()
    private let isEnding = Atomic(false)

    init(_ tail: LogTail) { self.tail = tail }

    func start() {
        thread.start { [self] in
            clinux_schedule_as_batch()
            while !isEnding.load(ordering: .acquiring) {
                // If it fails, the next segment tries again.
                if !prepare() { wakeup.wait() }
            }
        }
    }

    /// - Returns: Whether one was prepared, and another may be wanted.
    private func prepare() -> Bool {
        guard let plan = tail.withLog({ $0.planSpare() }), let spare = try? plan.prepare() else {
            return false
        }
        tail.withLog { $0.offer(spare) }
        return true
    }

    func wake() { wakeup.signal() }

    func end() {
        isEnding.store(true, ordering: .releasing)
        wakeup.signal()
        thread.join()
    }
}
