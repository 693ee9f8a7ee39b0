import CLinux
import StateLog
import StateModel

/// The log of an open store, for the thread that commits and the one that settles.
///
/// All of it is under the lock, which is held while a commit is synced: the proof of `@unchecked
/// Sendable`.
final class LogTail: @unchecked Sendable {
    private let lock = StateLock(())
    private let log: StateLog
    /// The contents of the last frame, whose outcome may be unknown.
    private var last: (contents: [UInt8], time: Int64) = ([], 0)
    private var byteCount = 0
    private var since: Int64?

    init(_ log: StateLog) { self.log = log }

    /// How many bytes of the log are not settled, about.
    var unsettledByteCount: Int { lock.withLock { _ in byteCount } }

    /// Since when there are some, in nanoseconds; nil if there are none.
    var oldest: Int64? { lock.withLock { _ in since } }

    func withLog<Result: Sendable, Failure: Error>(
        _ body: (StateLog) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try lock.withLock { (_) throws(Failure) in try body(log) }
    }

    /// Appends a frame of commits and makes it durable; `limit` bytes that are not settled are too many.
    ///
    /// - Returns: Whether the settler has something to do that it had not before.
    /// - Throws: As ``StateLog/append(_:at:)`` and ``StateLog/sync()``.
    func append(
        _ contents: CodedCommits,
        at time: Int64,
        wakingAt limit: Int
    ) throws(StateError) -> Bool {
        try lock.withLock { (_) throws(StateError) in
            last = (contents.bytes, time)
            let segment = log.endPlace.segment
            try log.append(contents, at: time)
            try log.sync()
            let before = byteCount
            byteCount += contents.bytes.count
            let isFirst = since == nil
            if isFirst { since = clinux_monotonic_nanoseconds() }
            return isFirst || before < limit && byteCount >= limit
                || log.endPlace.segment != segment
        }
    }

    /// Decides what became of the last frame.
    ///
    /// - Returns: The frame, if it is durable; nil if it will never be there.
    func decideUnknown() throws(StateError) -> (contents: [UInt8], time: Int64)? {
        try lock.withLock { (_) throws(StateError) in try log.dropUnknown() > 0 ? last : nil }
    }

    /// Everything up to a place was settled by a settle that began at a time.
    func noteSettled(upTo place: LogPlace, at time: Int64) {
        lock.withLock { _ in
            byteCount = log.snapshot(from: place).byteCount
            since = byteCount == 0 ? nil : max(since ?? time, time)
        }
    }
}
