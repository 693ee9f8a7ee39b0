import StateModel
import StateSystem
import Synchronization

/// A pause of compaction, and how often something was removed: a backup reads the rows in pieces, and
/// a delete that left between two of them would bring back what it deleted.
final class CompactionPause: Sendable {
    /// On the clock of the history, in milliseconds.
    private let end = Atomic(Int64.min)
    private let removals = Atomic(0)
    /// Held while somebody in this process reads rows, for a slice, and while SQLite's own log is moved: a
    /// checkpoint moves only what no reader needs, and would take the reader for another process.
    private let rows = StateLock(())
    private let waitingCheckpoints = Atomic(0)

    /// The next piece of a backup begins another one.
    private static let milliseconds: Int64 = 60_000

    func begin(at time: Int64) {
        end.store(time + CompactionPause.milliseconds, ordering: .sequentiallyConsistent)
    }

    func finish() { end.store(.min, ordering: .sequentiallyConsistent) }

    /// The milliseconds until it ends by itself; 0 without a backup.
    func millisecondsLeft(_ clock: () -> Int64) -> Int64 {
        let end = end.load(ordering: .sequentiallyConsistent)
        return end > .min ? max(0, end - clock()) : 0
    }

    /// The answer to who asks for a compaction meanwhile.
    static func refusal(endingIn milliseconds: Int64) -> StateError {
        StateError(
            .conflict,
            "a backup is being made: nothing was compacted; try again when it has ended, or in "
                + "\((milliseconds + 999) / 1_000) s if its client has stopped reading"
        )
    }

    /// Calls `body`, which reads a slice of the rows, while no checkpoint runs or waits.
    func readingRows<Result>(_ body: () throws -> Result) throws -> Result {
        while waitingCheckpoints.load(ordering: .relaxed) > 0 {
            BlockingSemaphore().wait(nanoseconds: 1_000_000)
        }
        return try rows.withLock { _ in try body() }
    }

    /// Calls `body`, which makes a checkpoint, once nobody in this process reads rows.
    func checkpointing<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        waitingCheckpoints.add(1, ordering: .relaxed)
        defer { waitingCheckpoints.subtract(1, ordering: .relaxed) }
        return try rows.withLock { (_) throws(Failure) in try body() }
    }

    /// Odd while rows are being removed.
    var removalCount: Int { removals.load(ordering: .sequentiallyConsistent) }

    /// Called before and after rows are removed.
    func countRemoval() { removals.wrappingAdd(1, ordering: .sequentiallyConsistent) }
}
