import CLinux
import StateEngine

/// What is due without an event.
extension Server {
    /// Does what is due.
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
        // The turn looks who may go on.
        case .files: scheduleFiles()
        case .frames:
            endFrames()
            scheduleFrames()
        case .repeatedLines:
            services.gate.repeated.endWindows(at: now, options.log)
            timers.set(.repeatedLines, at: services.gate.repeated.dueAt)
        case .stalls: endStalls()
        }
    }

    /// Plans a look at files that commands wait for.
    func scheduleFiles() {
        guard registry.hasPaused(where: { $0.inbound.pause == .filesAreEdited }) else { return }
        timers.advance(.files, to: SystemClock.monotonicMilliseconds() + 20)
    }
}

/// Entries that expire: deleted by the loop before anything that came later is carried out.
extension Server {
    /// Deletes what is due.
    func expire() {
        keyspace.withCore { core in
            guard let left = core.entries.deadlines.millisecondsLeft(at: Deadlines.now()),
                left == 0,
                core.pending.byteCount < options.limits.queueByteCount
            else { return }
            core.expire(at: Deadlines.now(), wallTime: turn.time)
        }
    }

    /// How long nothing expires; negative: forever.
    var nanosecondsToExpiry: Int64 {
        let (left, isFull) = keyspace.withCore { core in
            (
                core.entries.deadlines.millisecondsLeft(at: Deadlines.now()),
                core.pending.byteCount >= options.limits.queueByteCount
            )
        }
        guard let left else { return -1 }
        return min(isFull ? max(left, 10) : left, Int64(Int32.max)) * 1_000_000
    }

    /// Logs what limits that are only said have to say.
    func logNotices() {
        let notices = keyspace.withCore { core in
            guard !core.admission.notices.isEmpty else { return [String]() }
            defer { core.admission.notices = [] }
            return core.admission.notices
        }
        for notice in notices { options.log(.warning, notice) }
    }
}

/// Memory of the whole process: new values are refused before it runs out, so that the kernel does not end the daemon and it
/// can start again.
extension Server {
    /// Finds out whether there is memory for more values.
    func lookAtMemoryIfDue() {
        let now = SystemClock.monotonicMilliseconds()
        let taken = keyspace.withCore { $0.entries.putByteCount }
        guard memorySchedule.isDue(at: now, taken: taken) else { return }
        var bound = options.memoryBound()
        // What was freed goes to the next values, and mostly not back to the kernel. Finding out takes a walk through it.
        if bound?.isShort ?? false { bound?.usedByteCount -= clinux_free_heap_byte_count() }
        memorySchedule.plan(after: bound, at: now, taken: taken)
        take(bound.flatMap { $0.isShort ? shortage($0) : nil })
    }

    private func take(_ shortage: StateError?) {
        guard (core.admission.refusals.memoryShortage != nil) != (shortage != nil) else { return }
        keyspace.withCore { $0.admission.refusals.memoryShortage = shortage }
        if let shortage {
            options.log(.error, shortage.message)
        } else {
            options.log(.notice, "there is memory again: keys can be set")
        }
    }

    private func shortage(_ bound: MemoryBound) -> StateError {
        StateError(
            .noSpace,
            "the daemon takes \(bound.description), and keeps \(bound.reservedByteCount >> 20) MiB for its next start: "
                + "no value is set that takes more; delete keys, or raise the limit"
        )
    }
}

/// Damage of what is stored, which nobody meets otherwise until the next start: reads are answered from memory.
extension Server {
    /// Plans the next check.
    func scheduleCheck() {
        guard options.checkMilliseconds > 0, keyspace.history != nil else {
            return timers.set(.check, at: nil)
        }
        timers.set(.check, at: SystemClock.monotonicMilliseconds() + options.checkMilliseconds)
    }

    /// Has everything that is stored read on the history thread.
    func checkStore() {
        history.submit(CheckJob(through: keyspace.withCore { $0.revisions.durable }))
    }

    /// A check has come to its end.
    func noteCheck(_ failure: StateError?) {
        scheduleCheck()
        guard let failure else {
            if registry.store.damage != nil {
                options.log(.notice, "what is stored was read again and is not damaged")
            }
            registry.store.damage = nil
            return
        }
        noteDamage(failure)
    }

    /// Says once, in the log and from then on in the status, that something stored cannot be read.
    func noteDamage(_ failure: StateError) {
        guard registry.store.damage != failure.message else { return }
        registry.store.damage = failure.message
        options.log(
            .error,
            "\(failure.message); what is in memory is served on: export it (statectl export), or restore a copy"
        )
    }
}
