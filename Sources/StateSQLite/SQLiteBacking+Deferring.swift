package import StateEngine
import StateLog
import StatePlatform
import StateSystem

/// What storage may have later is appended to the log before anybody sees it, and synced later: the end of
/// the process loses nothing of it, and a failure of the machine the end of it.
extension SQLiteBacking: DeferralKeeping {
    package func prepareToDefer() { bootMark.write() }

    package func noteShownOnly() { bootMark.remove() }

    package func add(_ batch: CommitBatch, after revision: Int64) {
        let values = CommitValues(batch)
        guard let tail, !values.areLong else { return }
        let line = tail.carryLine
        var coder = CommitCoder(at: SystemClock.wallMilliseconds())
        let limit = room.carriedByteLimit
        let uncarried = coder.append(batch, carryingBelow: line, upTo: limit)
        // Floors are written in the order in which they are raised.
        guard uncarried.isEmpty else { return }
        let published = LogTail.Published(
            contents: coder.commits,
            time: coder.frameTime,
            carryLine: line,
            before: revision
        )
        waiting.withLock { $0.append(published) }
    }

    package func keep(through revision: Int64) -> Bool {
        guard let tail, let settler else { return false }
        // Without the lock: others add to it while a write waits for the disk.
        let all = waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        for published in all {
            let limit = options.settling.logByteCount
            // What does not fit here, and what comes behind that, is left to the thread that commits.
            guard let wakes = tail.appendBriefly(published, wakingAt: limit) else { break }
            if wakes { settler.wake() }
        }
        return tail.appendedRevision >= revision
    }

    package func append(_ batch: CommitBatch) -> Bool {
        (try? append(batch, isPublished: true)) != nil
    }

    package var unsyncedByteCount: Int { tail?.unsyncedByteCount ?? 0 }
}

/// A file beside a store that says in which start of the machine a process has appended commits to the log
/// that were not synced: as long as that goes on, a start finds all that was shown.
struct BootMark {
    let path: String

    /// Whether this start of the machine is the one that was written.
    var isOfThisBoot: Bool {
        let boot = BootIdentity.bytes()
        let file = (try? NamedFile.open(path, O_RDONLY | O_NOFOLLOW)) ?? -1
        guard file >= 0 else { return false }
        defer { close(file) }
        return !boot.isEmpty && readBytes(file, count: boot.count, at: 0) == boot
    }

    /// Writes this start of the machine; without it, a start takes what was not synced to be lost.
    func write() { try? WholeFile.replace(path, with: BootIdentity.bytes()) }

    func remove() { unlink(path) }
}
