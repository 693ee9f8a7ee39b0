import CLinux
import StateLog
import StateModel
import StateSystem
import Synchronization

/// The log of an open store, for the thread that commits, the one that settles, and those that append what
/// storage may have later.
///
/// All of it is under the lock: the proof of `@unchecked Sendable`. A sync runs without the lock, but in
/// the turn of the thread that makes it.
final class LogTail: @unchecked Sendable {
    /// Who syncs, or ends a segment, one at a time; it is taken before the lock.
    private let turn = StateLock(())
    private let lock = StateLock(())
    private let log: StateLog
    /// The last frame of a commit that somebody waits for; its outcome may be unknown.
    private struct Last {
        var contents = CodedCommits([])
        var time: Int64 = 0
        /// Up to which revision everything was appended before it.
        var appendedBefore: Int64 = 0
        /// Whether nothing may be appended behind it while its outcome is open: if it becomes void, what it has
        /// of published changes is appended again.
        var isExclusive = false
        /// Whether nobody knows yet that it is durable, or that it will never be there.
        var isOpen = false
    }

    private var last = Last()

    /// What is written with the lock, and read without it.
    private struct Gauges: ~Copyable {
        /// Everything that storage is to have up to this revision is appended.
        let appended: Atomic<Int64>
        /// The bytes of frames that are not durable.
        let unsynced = Atomic(0)
        let carryLine: Atomic<Int64>

        init(_ revision: Int64, _ line: Int64) {
            appended = Atomic(revision)
            carryLine = Atomic(line)
        }
    }

    private let gauges: Gauges
    private var unsettled: Int
    private var since: Int64?
    /// Everything up to there is settled.
    private var settled: LogPlace
    /// The bytes of the largest value before the last settle ended, and since then: what came while it ran
    /// is not settled.
    private var largestValues: (before: Int, since: Int)
    /// How many bytes of earlier versions commits have carried.
    private var carriedByteCount = 0
    /// When the last commit was appended that no later frame proves to be durable.
    private var unproven: Int64?

    /// The files of the log, which readers see without waiting for a commit.
    private let names: StateLock<(version: Int, names: LogNames)>

    /// How long after the last commit a frame says that it is durable, in nanoseconds.
    private static let markDelay: Int64 = 200_000_000

    /// Takes a log.
    ///
    /// - Parameters:
    ///   - log: The log.
    ///   - revision: It has everything up to this one.
    ///   - place: Everything up to there is settled.
    ///   - largestValue: The bytes of the largest value that is not.
    init(_ log: StateLog, upTo revision: Int64, settledUpTo place: LogPlace, largestValue: Int = 0)
    {
        (self.log, settled, largestValues) = (log, place, (largestValue, 0))
        gauges = Gauges(revision, log.carryLine)
        unsettled = log.snapshot(from: place).byteCount
        names = StateLock((log.namesVersion, log.names))
        since = unsettled == 0 ? nil : clinux_monotonic_nanoseconds()
    }

    /// How many bytes of the log are not settled, about.
    var unsettledByteCount: Int { lock.withLock { _ in unsettled } }

    /// The bytes of its files.
    var byteCount: Int { lock.withLock { _ in log.fileByteCount } }

    /// Since when there are some, in nanoseconds; nil if there are none.
    var oldest: Int64? { lock.withLock { _ in since } }

    /// The bytes of the largest value that is not settled; with the lock.
    private var largestValue: Int { max(largestValues.before, largestValues.since) }

    /// What the store needs room for.
    var need: DiskRoom.Need {
        lock.withLock { _ in
            var need = DiskRoom.Need()
            need.unsettled = log.snapshot(from: settled).byteCount
            need.largestValue = largestValue
            need.segment = log.neededByteCount
            return need
        }
    }

    /// Takes into a status what is known of the log.
    func describe(in status: inout SettlingStatus) {
        let (files, segmentCount, carried, replaced, floor) = lock.withLock { _ in
            (
                log.fileByteCount, log.segmentCount, carriedByteCount, log.replacedCount, log.floor
            )
        }
        (status.logByteCount, status.segments.count) = (Int64(files), segmentCount)
        (status.carriedByteCount, status.segments.replacedCount) = (Int64(carried), replaced)
        (status.unsettledByteCount, status.floor) = (Int64(need.unsettled), floor)
    }

    func withLog<Result: Sendable, Failure: Error>(
        _ body: (StateLog) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try lock.withLock { (_) throws(Failure) in
            defer { noteNames() }
            return try body(log)
        }
    }

    /// Which file of the log was removed or replaced, as a sentence; nil if none was.
    ///
    /// It does not wait for a commit.
    var finding: String? { names.withLock { $0.names.finding } }

    /// The same if `body` may sync or end a segment: it waits for the end of a sync.
    func withLogAlone<Result: Sendable, Failure: Error>(
        _ body: (StateLog) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try turn.withLock { (_) throws(Failure) in try withLog(body) }
    }

    /// Called with the lock.
    private func noteNames() {
        names.withLock { known in
            guard known.version != log.namesVersion else { return }
            known = (log.namesVersion, log.names)
            gauges.carryLine.store(log.carryLine, ordering: .relaxed)
        }
    }

    /// How a frame of commits is appended.
    struct Appending {
        /// Milliseconds since 1970.
        var time: Int64
        /// So many bytes that are not settled are too many.
        var limit = Int.max
        /// The bytes of the largest value, if that is long.
        var largestValue = 0
        /// Whether ``LogTail/decideUnknown()`` decides it: otherwise it belongs to no commit.
        var isOfCommit = false
        /// Whether somebody has seen all of it already, and nobody waits until it is durable.
        var isPublished = false
        /// The last revision of what somebody has seen already; 0 if it has nothing of that.
        var lastPublished: Int64 = 0
    }

    /// Appends a frame of commits, and makes everything durable unless nobody waits for that.
    ///
    /// - Parameters:
    ///   - appending: How.
    ///   - encode: As for ``StateLog/append(at:isPublished:encoding:)``, called with the lock, and with the
    ///     last revision that is appended already; a frame without contents is not written.
    /// - Returns: Whether the settler has something to do that it had not before.
    /// - Throws: As ``StateLog/append(at:isPublished:encoding:)`` and ``StateLog/sync()``.
    func append(
        _ appending: Appending,
        encoding encode: (_ carryLine: Int64, _ appended: Int64) -> CodedCommits
    ) throws(StateError) -> Bool {
        try turn.withLock { (_) throws(StateError) in
            let wakes = try lock.withLock { (_) throws(StateError) in
                defer { noteNames() }
                return try appendInTurn(appending, encode)
            }
            if !appending.isPublished { try syncInTurn() }
            return wakes
        }
    }

    private func appendInTurn(
        _ appending: Appending,
        _ encode: (_ carryLine: Int64, _ appended: Int64) -> CodedCommits
    ) throws(StateError) -> Bool {
        // Order matters: what the last commit was is known until it is decided.
        try log.requireDecided()
        let appended = gauges.appended.load(ordering: .relaxed)
        let contents = encode(log.carryLine, appended)
        guard !contents.bytes.isEmpty else { return false }
        var need = DiskRoom.Need()
        (need.unsettled, need.largestValue) = (unsettled, largestValue)
        log.settlingByteCount = need.settling
        let (segment, line) = (log.endPlace.segment, log.carryLine)
        var written = contents
        let isDecided = appending.isOfCommit && !appending.isPublished
        let before = last
        if isDecided {
            last = Last(
                contents: contents,
                time: appending.time,
                appendedBefore: appended,
                isExclusive: appending.lastPublished > appended,
                isOpen: true
            )
        }
        do throws(StateError) {
            try log.append(at: appending.time, isPublished: appending.isPublished) {
                if $0 != line { written = encode($0, appended) }
                if isDecided { last.contents = written }
                return written
            }
        } catch {
            // It was not appended, if nothing is to be decided.
            if (try? log.requireDecided()) != nil { last = before }
            throw error
        }
        largestValues.since = max(largestValues.since, appending.largestValue)
        return note(written, wakingAt: appending.limit) || log.endPlace.segment != segment
    }

    /// Takes account of a frame that was appended, with the lock.
    ///
    /// - Returns: Whether the settler has something to do that it had not before.
    private func note(_ contents: CodedCommits, wakingAt limit: Int) -> Bool {
        noteAppended(contents.last)
        carriedByteCount += contents.carriedByteCount
        gauges.unsynced.wrappingAdd(contents.bytes.count, ordering: .relaxed)
        let before = unsettled
        unsettled += contents.bytes.count
        let now = clinux_monotonic_nanoseconds()
        let isFirst = unproven == nil
        (since, unproven) = (since ?? now, now)
        return isFirst || before < limit && unsettled >= limit
    }

    /// Everything up to a revision is appended; with the lock.
    private func noteAppended(_ revision: Int64) {
        guard revision > gauges.appended.load(ordering: .relaxed) else { return }
        gauges.appended.store(revision, ordering: .releasing)
    }

    /// Makes everything durable that is appended now.
    ///
    /// - Throws: As ``StateLog/sync()``.
    private func syncInTurn() throws(StateError) {
        let (sync, byteCount) = try lock.withLock { (_) throws(StateError) in
            defer { noteNames() }
            return (try log.beginSync(), gauges.unsynced.load(ordering: .relaxed))
        }
        let result = sync?.run()
        try lock.withLock { (_) throws(StateError) in
            defer { noteNames() }
            if let sync, let result { try log.end(sync, result) }
            (last.isExclusive, last.isOpen) = (false, false)
            gauges.unsynced.wrappingSubtract(byteCount, ordering: .relaxed)
        }
    }

    // MARK: What storage may have later

    /// Commits that somebody is about to see, for ``appendBriefly(_:wakingAt:)``.
    struct Published {
        var contents: CodedCommits
        /// Milliseconds since 1970.
        var time: Int64
        /// The line that they were made for.
        var carryLine: Int64
        /// The last revision before them that storage has or is to have.
        var before: Int64
    }

    /// The line for which contents are to be made now.
    var carryLine: Int64 { gauges.carryLine.load(ordering: .relaxed) }

    /// How many bytes are appended that are not durable, about.
    var unsyncedByteCount: Int { gauges.unsynced.load(ordering: .relaxed) }

    /// Up to this revision everything is appended that storage is to have.
    var appendedRevision: Int64 { gauges.appended.load(ordering: .acquiring) }

    /// Appends commits that need no sync, if everything before them is appended, and neither another segment
    /// nor a failure is in the way; it waits for nobody.
    ///
    /// - Returns: Whether the settler has something to do that it had not before; nil if they are not
    ///   appended.
    func appendBriefly(_ published: Published, wakingAt limit: Int) -> Bool? {
        let wakes: Bool?? = lock.withLockIfAvailable { _ in
            let appended = gauges.appended.load(ordering: .relaxed)
            // The thread that commits may have been sooner.
            if appended >= published.contents.last { return false }
            guard !last.isExclusive, appended >= published.before,
                appended < published.contents.first,
                log.appendBriefly(
                    published.contents,
                    carryingBelow: published.carryLine,
                    at: published.time
                )
            else { return nil }
            return note(published.contents, wakingAt: limit)
        }
        return wakes ?? nil
    }

    // MARK: Readers of the past

    /// The reads of the past that are under way, by the number of each.
    private var readers: Set<Int> = []
    private var nextReader = 0

    /// Calls `body` with the past as it is now; no file that it has is used again meanwhile.
    ///
    /// - Parameters:
    ///   - more: Called first, with the lock: what it returns belongs to that past.
    ///   - body: Called with the past, and with that.
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws.
    func withView<More: Sendable, Result, Failure: Error>(
        _ more: () -> More,
        _ body: (LogView, More) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let (view, reader, found) = lock.withLock { _ in
            defer { nextReader += 1 }
            readers.insert(nextReader)
            return (log.view(), nextReader, more())
        }
        defer { _ = lock.withLock { _ in readers.remove(reader) } }
        return try body(view, found)
    }

    func withView<Result, Failure: Error>(
        _ body: (LogView) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withView(
            {},
            { (view, _) throws(Failure) in try body(view) }
        )
    }

    /// A number above those of all reads that have begun.
    var readerLimit: Int { lock.withLock { _ in nextReader } }

    /// Whether a read with a lower number is under way.
    func hasReader(below limit: Int) -> Bool {
        lock.withLock { _ in readers.contains { $0 < limit } }
    }

    /// The last frame, which is durable.
    var lastFrame: (contents: [UInt8], time: Int64) {
        lock.withLock { _ in (last.contents.bytes, last.time) }
    }

    /// Decides what became of the last frame.
    ///
    /// - Returns: The frame, if it is durable; nil if it will never be there.
    func decideUnknown() throws(StateError) -> (contents: [UInt8], time: Int64)? {
        try withLogAlone { (log) throws(StateError) in
            let isDurable = try log.dropUnknown() > 0
            gauges.unsynced.store(0, ordering: .relaxed)
            // What failed may have been no commit, but the sync of what somebody has seen.
            guard last.isOpen else { return nil }
            (last.isExclusive, last.isOpen) = (false, false)
            if isDurable {
                noteAppended(last.contents.last)
            } else if gauges.appended.load(ordering: .relaxed) == last.contents.last {
                // What came behind it is there: the log leaves what is published.
                gauges.appended.store(last.appendedBefore, ordering: .releasing)
            }
            return isDurable ? (last.contents.bytes, last.time) : nil
        }
    }

    /// Appends a frame that says that the last commit is durable, once no other has come for a while:
    /// otherwise a last frame that is damaged later would pass for one that was never whole.
    ///
    /// - Returns: In how many nanoseconds to look again; nil if nothing is unproven.
    func proveLast() -> Int64? {
        withLogAlone { log in
            guard let unproven else { return nil }
            let rest = unproven + LogTail.markDelay - clinux_monotonic_nanoseconds()
            guard rest <= 0 else { return rest }
            // It needs no sync: the next commit has one, and nobody waits for it. If it fails, that commit
            // fails in the same way.
            try? log.mark(at: SystemClock.wallMilliseconds())
            self.unproven = nil
            return nil
        }
    }

    /// Everything up to a place was settled by a settle that began at a time.
    func noteSettled(upTo place: LogPlace, at time: Int64) {
        lock.withLock { _ in
            let before = settled
            // What is not synced yet is to be settled, too, and nothing says when it is synced.
            let unsynced = gauges.unsynced.load(ordering: .relaxed)
            (unsettled, settled) = (log.snapshot(from: place).byteCount + unsynced, place)
            if place != before { largestValues = (largestValues.since, 0) }
            since = unsettled == 0 ? nil : max(since ?? time, time)
        }
    }
}
