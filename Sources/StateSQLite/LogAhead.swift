import StateLog
import StateModel
import StateSystem
import Synchronization

/// Reads what the log has behind the rows of a database, on a thread of its own while those are read.
///
/// The newest change of each key is kept in memory of a limited size. Whenever that is full, the thread
/// waits until its changes were taken: the memory is the thread's until it signals `isFull`, and then the
/// owner's until that signals `isTaken`. This is the proof of `@unchecked Sendable`.
final class LogAhead: @unchecked Sendable {
    private let thread = WorkerThread(name: "reading")
    private let isFull = BlockingSemaphore()
    private let isTaken = BlockingSemaphore()
    /// Whether nobody wants the rest.
    private let isEnding = Atomic(false)

    private let changes = NewestChanges()
    private var sorted: [NewestChange] = []
    private var largestValue = 0
    private var result: Result<LogReading, StateError>?

    /// Begins to read.
    ///
    /// - Parameters:
    ///   - files: The log.
    ///   - start: It is read from there on.
    ///   - revision: Changes up to this one are left out: frames that were written again after a failed
    ///     sync may be settled already.
    ///   - limit: Its changes may take so many bytes of memory at once, and one more frame.
    init(_ files: any LogFiles, from start: LogStart, after revision: Int64, upTo limit: Int) {
        thread.start { [self] in
            do throws(StateError) {
                let reading = try LogReading(files, from: start) { frame, time in
                    guard !isEnding.load(ordering: .relaxed) else { return }
                    try changes.take(frame, at: time, after: revision, comparingRows: true)
                    if changes.byteCount >= limit { handOver() }
                }
                result = .success(reading)
            } catch {
                result = .failure(error)
            }
            sort()
            isFull.signal()
        }
    }

    private func handOver() {
        sort()
        isFull.signal()
        isTaken.wait()
        changes.forgetChanges()
    }

    private func sort() {
        sorted = changes.sorted()
        largestValue = sorted.reduce(largestValue) { max($0, $1.byteCount) }
    }

    /// What a log has behind the rows, besides the changes.
    struct Rest {
        var reading: LogReading
        /// The last text of each name; nil if it was removed.
        var metadata: [String: String?]
        /// The last revision; 0 if there are no commits.
        var revision: Int64
        /// The bytes of the largest value, with its key.
        var largestValue: Int
    }

    /// Passes on what was read, and waits for the rest of it.
    ///
    /// - Parameter receive: Called with the newest change of each key, perhaps after older ones of it; bytes
    ///   are borrowed.
    /// - Returns: What else there is.
    /// - Throws: As ``LogReading/init(_:from:receive:)``; changes were passed on, perhaps.
    func finish(_ receive: (borrowing StoredChange) -> Void) throws(StateError) -> Rest {
        while true {
            isFull.wait()
            for (index, change) in sorted.enumerated() {
                if index + 8 < sorted.count { sorted[index + 8].prefetch() }
                receive(change.row.change)
            }
            sorted = []
            guard let result else {
                isTaken.signal()
                continue
            }
            thread.join()
            return Rest(
                reading: try result.get(),
                metadata: changes.metadata,
                revision: changes.revision,
                largestValue: largestValue
            )
        }
    }

    /// Waits for the thread, which reads no further; does nothing after ``finish(_:)``.
    func end() {
        isEnding.store(true, ordering: .relaxed)
        isTaken.signal()
        thread.join()
    }
}
