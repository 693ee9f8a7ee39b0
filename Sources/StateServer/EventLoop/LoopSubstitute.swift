import CLinux
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
            if keyspace.publish(announces: false) { settle() }
            return
        }
        let isSeen = keyspace.withCore { $0.pending.filling.hasPublished }
        guard !keyspace.publish(commitsOnCaller: true, announces: false) else { return settle() }
        // Replies that are ready need not wait for this commit, unless they tell of it.
        if !isSeen, !flushes.isEmpty { flushes.drain(flush) }
        commit(under: substitute, isDeferral: false)
    }

    /// Defers what storage may have later, without the commit thread: waking that, and being woken by it,
    /// takes longer.
    func deferHere() {
        guard !turn.isSubstituted, let substitute = turn.substitute, substitute.isReady else {
            if keyspace.publish(announces: false) { settle() }
            return
        }
        guard !keyspace.publish(commitsOnCaller: true, announces: false) else { return settle() }
        commit(under: substitute, isDeferral: true)
    }

    /// Writes to the store that something is missing from it that replies tell of; not while a substitute
    /// has the loop, for then the disk is slow.
    func announceHere() {
        guard !turn.isSubstituted else { return }
        guard let substitute = turn.substitute, substitute.isReady else {
            return keyspace.announcePublished()
        }
        if substitute.takesOver(during: { keyspace.announcePublished() }) {
            substitute.takeBack { wakeup.wake(for: .storage) }
        }
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
    private let alarm = BlockingSemaphore()
    private let left = BlockingSemaphore()
    /// When the commit began, in nanoseconds of the monotonic clock; 0 between commits, ``taken`` while
    /// the substitute has the loop.
    private let since = Atomic<Int64>(0)
    /// Whether the substitute looks at ``since`` every ``period``, or sleeps.
    private let isLooking = Atomic(false)
    private let commitCount = Atomic(0)
    private let isBackNow = Atomic(false)
    private let isEnding = Atomic(false)
    /// Whether the thread was started; nil if that was not tried.
    private var isStarted: Bool?

    private static let taken: Int64 = -1
    /// In nanoseconds: others wait for a commit twice as long at most.
    private static let period = CommitsHere.longest

    /// - Parameter turns: Runs the loop until ``isBack``.
    init(turns: @escaping () -> Void) { self.turns = turns }

    /// Whether the thread runs; it is started by the first call.
    var isReady: Bool {
        if let isStarted { return isStarted }
        let isNow = thread.tryStart { self.look() }
        isStarted = isNow
        return isNow
    }

    /// Whether the loop's own thread waits for the loop.
    var isBack: Bool { isBackNow.load(ordering: .acquiring) }

    /// Runs `body` on the loop's own thread.
    ///
    /// - Returns: Whether the substitute has taken the loop over meanwhile, and has it still.
    /// - Complexity: No system call, unless nothing was committed for a second.
    func takesOver(during body: () -> Void) -> Bool {
        since.store(clinux_monotonic_nanoseconds(), ordering: .sequentiallyConsistent)
        commitCount.add(1, ordering: .relaxed)
        if !isLooking.exchange(true, ordering: .sequentiallyConsistent) { alarm.signal() }
        body()
        return since.exchange(0, ordering: .acquiringAndReleasing) == LoopSubstitute.taken
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
        alarm.signal()
        thread.join()
    }

    /// The thread's loop.
    private func look() {
        var lastCount = 0
        var idlePeriods = 0
        while !isEnding.load(ordering: .relaxed) {
            let looks = isLooking.load(ordering: .sequentiallyConsistent)
            alarm.wait(nanoseconds: looks ? LoopSubstitute.period : nil)
            takeOverIfLate()
            let count = commitCount.load(ordering: .relaxed)
            idlePeriods = count == lastCount ? idlePeriods + 1 : 0
            lastCount = count
            if idlePeriods >= 200 { stopLooking() }
        }
    }

    private func takeOverIfLate() {
        let start = since.load(ordering: .sequentiallyConsistent)
        guard start > 0, clinux_monotonic_nanoseconds() - start >= LoopSubstitute.period else {
            return
        }
        let (isTaken, _) = since.compareExchange(
            expected: start,
            desired: LoopSubstitute.taken,
            ordering: .acquiringAndReleasing
        )
        guard isTaken else { return }
        turns()
        left.signal()
    }

    /// Sleeps until the next commit.
    private func stopLooking() {
        isLooking.store(false, ordering: .sequentiallyConsistent)
        // A commit that began before it saw that is looked at.
        if since.load(ordering: .sequentiallyConsistent) > 0 {
            isLooking.store(true, ordering: .sequentiallyConsistent)
        }
    }
}
