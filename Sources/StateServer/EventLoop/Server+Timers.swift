import CLinux
package import StateEngine

/// Timers.
extension Server {
    /// Handles the due timers.
    func handleTimers() {
        let now = SystemClock.monotonicMilliseconds()
        guard now >= timers.next else { return }
        for timer in timers.takeDue(at: now) { handle(timer, at: now) }
    }

    private func handle(_ timer: TimerQueue.Timer, at now: Int64) {
        switch timer {
        case .acceptance: acceptAgain()
        case .bookmarks: sendProgress()
        case .changes:
            services.waitingForChanges.expire(at: now)
            answerBlocked()
        case .check: checkStore()
        // The turn checks which connections may continue.
        case .clientPause: registry.pause = nil
        case .cluster: keyspace.withCore { services.gate.cluster?.expire($0) }
        // The turn checks which connections may continue.
        case .files: scheduleFiles()
        case .frames:
            endFrames()
            scheduleFrames()
        case .mirror: expireMirror()
        case .reload: endHangingReload(at: now)
        case .repeatedLines:
            services.gate.repeated.endWindows(at: now, options.writeLog)
            timers.set(.repeatedLines, at: services.gate.repeated.dueAt)
        case .stalls: endStalls()
        case .watchdog: giveSignOfLife()
        }
    }

    /// Plans a check of the files for which commands wait.
    func scheduleFiles() {
        guard registry.hasPaused(where: { $0.inbound.pause == .filesAreEdited }) else { return }
        timers.advance(.files, to: SystemClock.monotonicMilliseconds() + 20)
    }
}

/// The timers of the loop: one deadline of each kind, on the monotonic clock in milliseconds.
///
/// A turn only compares the earliest deadline with the clock. Used only by the loop thread.
final class TimerQueue {
    enum Timer: Int, CaseIterable {
        /// Listeners are polled again after descriptors had run out.
        case acceptance
        /// Bookmarks of watches.
        case bookmarks
        /// The BLOCK time of a STATE.CHANGES ends.
        case changes
        /// The store is checked.
        case check
        /// CLIENT PAUSE ends.
        case clientPause
        /// A command has waited too long for a cluster.
        case cluster
        /// Files for which commands wait are checked: nothing reports that a file stays unchanged.
        case files
        /// An incomplete command times out.
        case frames
        /// The copy of a cluster is no longer current, unless its link proves it.
        case mirror
        /// A reload may have waited too long for a file.
        case reload
        /// Suppressed log lines are counted in a line.
        case repeatedLines
        /// Clients that hold memory and do not read are checked, because others wait for memory.
        case stalls
        /// The service manager expects a sign of life.
        case watchdog
    }

    private var deadlines = [Int64](repeating: .max, count: Timer.allCases.count)
    /// The earliest deadline; `max` if there is none.
    private(set) var next = Int64.max

    func isSet(_ timer: Timer) -> Bool { deadlines[timer.rawValue] < .max }

    /// Sets a timer and replaces its deadline; nil stops it.
    func set(_ timer: Timer, at deadline: Int64?) {
        deadlines[timer.rawValue] = deadline ?? .max
        next = deadlines.min() ?? .max
    }

    /// Sets a timer unless it is due earlier.
    func advance(_ timer: Timer, to deadline: Int64) {
        guard deadline < deadlines[timer.rawValue] else { return }
        deadlines[timer.rawValue] = deadline
        next = min(next, deadline)
    }

    /// Stops the timers that are due and returns them.
    func takeDue(at now: Int64) -> [Timer] {
        guard now >= next else { return [] }
        let due = Timer.allCases.filter { deadlines[$0.rawValue] <= now }
        for timer in due { deadlines[timer.rawValue] = .max }
        next = deadlines.min() ?? .max
        return due
    }
}

/// Expiry: the loop deletes due entries before it runs later commands.
extension Server {
    /// Deletes the keys of connections and processes that have ended.
    func endHolders() {
        keyspace.withCore { core in
            guard core.entries.deadlines.holders.nextEnd < .max,
                core.pending.byteCount < options.limits.queueByteCount
            else { return }
            core.endHolders(at: core.entries.clock(), wallTime: turn.time)
        }
    }

    /// The time until there may be some; negative: none.
    private func nanosecondsToEnd(_ core: KeyspaceCore, isFull: Bool) -> Int64 {
        let next = core.entries.deadlines.holders.nextEnd
        guard next < .max else { return -1 }
        let left = max(isFull ? 10 : 0, next - core.entries.clock())
        return min(left, Int64(Int32.max)) * 1_000_000
    }

    /// Deletes due entries.
    func expire() {
        endHolders()
        keyspace.withCore { core in
            guard !core.entries.deadlines.heap.isEmpty,
                core.pending.byteCount < options.limits.queueByteCount
            else { return }
            core.expire(at: core.entries.clock(), wallTime: turn.time)
            services.gate.cluster?.take(core.takeEnded())
        }
    }

    /// The time until the next expiry; negative: none.
    var nanosecondsToExpiry: Int64 {
        keyspace.withCore { core in
            let isFull = core.pending.byteCount >= options.limits.queueByteCount
            let toEnd = nanosecondsToEnd(core, isFull: isFull)
            guard !core.entries.deadlines.heap.isEmpty,
                let left = core.entries.deadlines.millisecondsLeft(at: core.entries.clock())
            else { return toEnd }
            let toExpiry = min(isFull ? max(left, 10) : left, Int64(Int32.max)) * 1_000_000
            return toEnd < 0 ? toExpiry : min(toEnd, toExpiry)
        }
    }

    /// Logs exceeded soft limits.
    func logNotices() {
        let notices = keyspace.withCore { core in
            guard !core.admission.notices.isEmpty else { return [String]() }
            defer { core.admission.notices = [] }
            return core.admission.notices
        }
        for notice in notices { options.log(.warning, .softLimitExceeded, notice) }
    }
}

/// Memory of the process: new values are refused before it runs out, so that the kernel does not
/// kill the daemon, and so that it can start again.
extension Server {
    /// Checks whether there is memory for more values.
    func lookAtMemoryIfDue() {
        let now = SystemClock.monotonicMilliseconds()
        returnMemoryIfQuiet(at: now)
        let taken = keyspace.withCore { $0.entries.putByteCount }
        guard memorySchedule.isDue(at: now, taken: taken) else { return }
        let bound = options.memoryBound()
        memorySchedule.plan(after: bound, at: now, taken: taken)
        take(bound?.shortage())
    }

    /// After so many milliseconds without an event nobody waits for the loop.
    static let quietMilliseconds: Int64 = 500

    /// Returns the memory of clients that have left to the kernel.
    ///
    /// That walks the heap, and takes some 20 ms for 300 MiB, so it waits until nobody is served.
    private func returnMemoryIfQuiet(at now: Int64) {
        let memory = registry.memory
        guard memory.hasFreedMuch, unfinished.items.isEmpty,
            now - turn.servedAt >= Server.quietMilliseconds
        else { return }
        clinux_trim_heap()
        memory.noteReturned()
    }

    private func take(_ shortage: StateError?) {
        guard (core.admission.refusals.memoryShortage != nil) != (shortage != nil) else { return }
        keyspace.withCore { $0.admission.refusals.memoryShortage = shortage }
        if let shortage {
            options.log(.error, .memoryShort, shortage.message)
        } else {
            options.log(.notice, .memoryFree, "there is memory again: writes are accepted")
        }
    }
}

/// When the memory of the process is checked next: after some time, or after some values were set.
package struct MemorySchedule {
    /// Milliseconds between two checks, with enough and with little room.
    private static let (long, short): (Int64, Int64) = (250, 20)
    /// The same without a limit.
    private static let unbounded: Int64 = 1_000

    /// On the monotonic clock, in milliseconds.
    private var dueAt: Int64 = 0
    /// The total bytes of values at which it is due.
    private var dueByteCount: Int64 = 0

    package init() {}

    package func isDue(at now: Int64, taken byteCount: Int64) -> Bool {
        now >= dueAt || byteCount >= dueByteCount
    }

    /// Plans the next check, after one that found `bound`.
    package mutating func plan(after bound: MemoryBound?, at now: Int64, taken byteCount: Int64) {
        guard let bound, !bound.isShort else {
            // No value may be added any more, or there is no limit: only time matters.
            dueAt = now + (bound == nil ? MemorySchedule.unbounded : MemorySchedule.long)
            dueByteCount = .max
            return
        }
        let isNear = bound.freeByteCount < 4 * bound.reservedByteCount
        dueAt = now + (isNear ? MemorySchedule.short : MemorySchedule.long)
        // With a fast disk, a client can write more than the reserve in 20 ms.
        let room = bound.freeByteCount - bound.reservedByteCount
        dueByteCount = byteCount + Int64(max(room / 2, bound.reservedByteCount / 32))
    }
}
