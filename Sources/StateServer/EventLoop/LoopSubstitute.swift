import CLinux
import Glibc
import StateEngine
import StateSystem
import Synchronization

/// Commits on the loop's own thread; see ``CommitsHere``.
extension Server {
    /// Makes one commit of what all clients wait for, and waits for it.
    ///
    /// Who has sent several commands may send more meanwhile: the commit thread has these, and what nobody
    /// waits for, such as keys that have ended.
    func commitHere() {
        let count = keyspace.withCore { $0.pending.filling.transactionCount }
        let holderCount = registry.holderCount
        turn.commitsHere.endWait(count: min(count, holderCount))
        if count > holderCount + holderCount / 2 + 1 { turn.commitsHere.beginAnew() }
        guard count > 0, count <= holderCount, !turn.isSubstituted,
            let substitute = turn.substitute, substitute.isReady
        else {
            if keyspace.publish(keeps: false) { settle() }
            return
        }
        guard !keyspace.publish(commitsOnCaller: true, keeps: false) else { return settle() }
        // Replies that are ready need not wait for this commit.
        if keyspace.addedRevision > turn.shownRevision { keepHere() }
        if !flushes.isEmpty { flushes.drain(flush) }
        commit(under: substitute, isDeferral: false)
    }

    /// Defers what storage may have later, without the commit thread: waking that, and being woken by it,
    /// takes longer.
    func deferHere() {
        guard !turn.isSubstituted, let substitute = turn.substitute, substitute.isReady else {
            if keyspace.publish(keeps: false) { settle() }
            return
        }
        guard !keyspace.publish(commitsOnCaller: true, keeps: false) else { return settle() }
        commit(under: substitute, isDeferral: true)
    }

    /// Keeps what held replies show and storage has later, and releases them.
    ///
    /// Not while a substitute has the loop, for then the disk is slow: the loop's own thread does it
    /// once it is back.
    func keepHere() {
        guard !turn.isSubstituted else { return }
        var revision: Int64 = 0
        // A substitute may have taken more.
        while keyspace.hasUnkept, keyspace.addedRevision > revision {
            if let substitute = turn.substitute, substitute.isReady {
                if substitute.takesOver(during: { revision = keyspace.keepPublished() }) {
                    substitute.takeBack { wakeup.wake(for: .storage) }
                }
            } else {
                revision = keyspace.keepPublished()
            }
        }
        releaseKept()
    }

    private func commit(under substitute: LoopSubstitute, isDeferral: Bool) {
        // Otherwise this thread would wake itself.
        wakeup.hold()
        let start = clinux_monotonic_nanoseconds()
        let isTaken = substitute.takesOver(during: { keyspace.commitOnCaller() })
        let nanoseconds = clinux_monotonic_nanoseconds() - start
        if isTaken {
            substitute.takeBack { wakeup.wake(for: .storage) }
            turn.commitsHere.noteCommit(nanoseconds: nanoseconds)
        } else {
            settleCommit(of: isDeferral ? nil : nanoseconds)
        }
    }

    /// Settles the commit, unless the commit thread has it; the next turn has what else the loop was
    /// woken for.
    ///
    /// A commit took so many nanoseconds; one that was deferred says nothing of others.
    private func settleCommit(of nanoseconds: Int64?) {
        turn.reasons.formUnion(wakeup.take())
        guard turn.reasons.contains(.storage) else { return }
        if let nanoseconds { turn.commitsHere.noteCommit(nanoseconds: nanoseconds) }
        settle()
        // What was read waits for room, which a turn with this reason looks for.
        if registry.reading.isEmpty { turn.reasons.remove(.storage) }
    }

    /// Takes turns on another thread, until the loop's own thread is back.
    ///
    /// If the daemon is to stop, that waits for the disk, and nobody is served until then.
    func takeTurnsInstead() {
        turn.isSubstituted = true
        turn.reasons.formUnion(wakeup.take())
        takeTurn()
        while signals.stop == 0, turn.substitute?.isBack == false { takeNextTurn() }
        turn.isSubstituted = false
    }
}

/// A thread that runs the loop while the loop's own thread waits for a slow disk.
///
/// Whoever exchanges ``since`` last has the loop: the substitute takes it over by ``taken``, and the
/// loop's own thread, if it finds that, waits until the substitute has left.
final class LoopSubstitute: @unchecked Sendable {
    // `turns` runs on the substitute's thread while the loop's own thread is in `takesOver` or
    // `takeBack`; everything else is atomic, constant, or used by the loop's own thread alone.
    private let turns: () -> Void
    private let thread = WorkerThread(name: "substitute")
    /// Goes off ``period`` after the first commit that the thread does not look at.
    private let timer = clinux_timer()
    private let left = BlockingSemaphore()
    /// When the commit began, in nanoseconds of the monotonic clock; 0 between commits, ``taken`` while
    /// the substitute has the loop.
    private let since = Atomic<Int64>(0)
    /// Whether the thread looks at ``since``, or ``timer`` is set: a commit need not set it.
    private let isLooking = Atomic(false)
    private let isBackNow = Atomic(false)
    private let isEnding = Atomic(false)
    /// When the commit before began; used by the loop's own thread alone.
    private var lastStart: Int64 = 0
    /// Whether the thread was started; nil if that was not tried.
    private var isStarted: Bool?

    private static let taken: Int64 = -1
    /// In nanoseconds: others wait for a commit twice as long at most.
    private static let period = CommitsHere.longest

    /// - Parameter turns: Runs the loop until ``isBack``.
    init(turns: @escaping () -> Void) { self.turns = turns }

    deinit { if timer >= 0 { close(timer) } }

    /// Whether the thread runs; it is started by the first call.
    var isReady: Bool {
        if let isStarted { return isStarted }
        let isNow = timer >= 0 && thread.tryStart { self.look() }
        isStarted = isNow
        return isNow
    }

    /// Whether the loop's own thread waits for the loop.
    var isBack: Bool { isBackNow.load(ordering: .acquiring) }

    /// Runs `body` on the loop's own thread.
    ///
    /// - Returns: Whether the substitute has taken the loop over meanwhile, and has it still.
    /// - Complexity: Two system calls, which wake nobody; none if the last was less than ``period`` ago.
    func takesOver(during body: () -> Void) -> Bool {
        let start = clinux_monotonic_nanoseconds()
        since.store(start, ordering: .sequentiallyConsistent)
        if !isLooking.exchange(true, ordering: .sequentiallyConsistent) {
            clinux_set_timer(timer, LoopSubstitute.period)
        }
        body()
        let isTaken = since.exchange(0, ordering: .acquiringAndReleasing) == LoopSubstitute.taken
        // Of many, it wakes the thread now and then instead.
        if !isTaken, start - lastStart > LoopSubstitute.period {
            isLooking.store(false, ordering: .sequentiallyConsistent)
            clinux_set_timer(timer, 0)
        }
        lastStart = start
        return isTaken
    }

    /// Waits until the substitute has left the loop.
    ///
    /// - Parameter wake: Wakes the loop.
    func takeBack(_ wake: () -> Void) {
        isBackNow.store(true, ordering: .releasing)
        wake()
        left.wait()
        isBackNow.store(false, ordering: .relaxed)
    }

    /// Ends the thread.
    func end() {
        guard isStarted == true else { return }
        isEnding.store(true, ordering: .relaxed)
        clinux_set_timer(timer, 1)
        thread.join()
    }

    /// The thread's loop.
    private func look() {
        while !isEnding.load(ordering: .relaxed) {
            clinux_wait_for_timer(timer)
            while lookAtCommit(), !isEnding.load(ordering: .relaxed) {}
        }
    }

    /// Takes the loop over, or waits until it may have to.
    ///
    /// - Returns: False if there is no commit; the next one sets the timer.
    private func lookAtCommit() -> Bool {
        // Order matters: a commit that begins later finds it.
        isLooking.store(false, ordering: .sequentiallyConsistent)
        let start = since.load(ordering: .sequentiallyConsistent)
        guard start > 0 else { return false }
        isLooking.store(true, ordering: .sequentiallyConsistent)
        let left = start + LoopSubstitute.period - clinux_monotonic_nanoseconds()
        guard left <= 0 else {
            var time = timespec(tv_sec: 0, tv_nsec: Int(left))
            nanosleep(&time, nil)
            return true
        }
        let (isTaken, _) = since.compareExchange(
            expected: start,
            desired: LoopSubstitute.taken,
            ordering: .acquiringAndReleasing
        )
        if isTaken {
            turns()
            self.left.signal()
        }
        return true
    }
}
