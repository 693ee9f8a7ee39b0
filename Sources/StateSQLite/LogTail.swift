import CLinux
import StateLog
import StateModel
import StateSystem

/// The log of an open store, for the thread that commits and the one that settles.
///
/// All of it is under the lock, which is held while a commit is synced: the proof of `@unchecked
/// Sendable`.
final class LogTail: @unchecked Sendable {
    private let lock = StateLock(())
    private let log: StateLog
    /// The contents of the last frame, whose outcome may be unknown.
    private var last: (contents: [UInt8], time: Int64) = ([], 0)
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

    /// Takes a log of which everything up to a place is settled; the largest value that is not has so many
    /// bytes.
    init(_ log: StateLog, settledUpTo place: LogPlace, largestValue: Int = 0) {
        (self.log, settled, largestValues) = (log, place, (largestValue, 0))
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

    /// Called with the lock.
    private func noteNames() {
        names.withLock { known in
            guard known.version != log.namesVersion else { return }
            known = (log.namesVersion, log.names)
        }
    }

    /// Appends a frame of commits and makes it durable.
    ///
    /// - Parameters:
    ///   - time: Milliseconds since 1970.
    ///   - limit: So many bytes that are not settled are too many.
    ///   - largest: The bytes of the largest value, if that is long.
    ///   - encode: As for ``StateLog/append(at:encoding:)``; called with the lock.
    /// - Returns: Whether the settler has something to do that it had not before.
    /// - Throws: As ``StateLog/append(at:encoding:)`` and ``StateLog/sync()``.
    func append(
        at time: Int64,
        wakingAt limit: Int,
        largestValue largest: Int,
        encoding encode: (_ carryLine: Int64) -> CodedCommits
    ) throws(StateError) -> Bool {
        try lock.withLock { (_) throws(StateError) in
            let segment = log.endPlace.segment
            defer { noteNames() }
            var carried = 0
            var need = DiskRoom.Need()
            (need.unsettled, need.largestValue) = (unsettled, largestValue)
            log.settlingByteCount = need.settling
            try log.append(at: time) { line in
                let contents = encode(line)
                last = (contents.bytes, time)
                carried = contents.carriedByteCount
                return contents
            }
            largestValues.since = max(largestValues.since, largest)
            try log.sync()
            carriedByteCount += carried
            let before = unsettled
            unsettled += last.contents.count
            let now = clinux_monotonic_nanoseconds()
            let isFirst = unproven == nil
            (since, unproven) = (since ?? now, now)
            return isFirst || before < limit && unsettled >= limit
                || log.endPlace.segment != segment
        }
    }

    // MARK: Readers of the past

    /// The reads of the past that are under way, by the number of each.
    private var readers: Set<Int> = []
    private var nextReader = 0

    /// Calls `body` with the past as it is now; no file that it has is used again meanwhile.
    func withView<Result, Failure: Error>(
        _ body: (LogView) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let (view, reader) = lock.withLock { _ in
            defer { nextReader += 1 }
            readers.insert(nextReader)
            return (log.view(), nextReader)
        }
        defer { _ = lock.withLock { _ in readers.remove(reader) } }
        return try body(view)
    }

    /// A number above those of all reads that have begun.
    var readerLimit: Int { lock.withLock { _ in nextReader } }

    /// Whether a read with a lower number is under way.
    func hasReader(below limit: Int) -> Bool {
        lock.withLock { _ in readers.contains { $0 < limit } }
    }

    /// The last frame, which is durable.
    var lastFrame: (contents: [UInt8], time: Int64) { lock.withLock { _ in last } }

    /// Decides what became of the last frame.
    ///
    /// - Returns: The frame, if it is durable; nil if it will never be there.
    func decideUnknown() throws(StateError) -> (contents: [UInt8], time: Int64)? {
        try lock.withLock { (_) throws(StateError) in
            defer { noteNames() }
            return try log.dropUnknown() > 0 ? last : nil
        }
    }

    /// Appends a frame that says that the last commit is durable, once no other has come for a while:
    /// otherwise a last frame that is damaged later would pass for one that was never whole.
    ///
    /// - Returns: In how many nanoseconds to look again; nil if nothing is unproven.
    func proveLast() -> Int64? {
        lock.withLock { _ in
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
            (unsettled, settled) = (log.snapshot(from: place).byteCount, place)
            if place != before { largestValues = (largestValues.since, 0) }
            since = unsettled == 0 ? nil : max(since ?? time, time)
        }
    }
}
