import CLinux
import StateEngine

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

    /// Plans a check of the files for which commands wait.
    func scheduleFiles() {
        guard registry.hasPaused(where: { $0.inbound.pause == .filesAreEdited }) else { return }
        timers.advance(.files, to: SystemClock.monotonicMilliseconds() + 20)
    }
}

/// Expiry: the loop deletes due entries before it runs later commands.
extension Server {
    /// Deletes due entries.
    func expire() {
        keyspace.withCore { core in
            guard let left = core.entries.deadlines.millisecondsLeft(at: Deadlines.now()),
                left == 0,
                core.pending.byteCount < options.limits.queueByteCount
            else { return }
            core.expire(at: Deadlines.now(), wallTime: turn.time)
        }
    }

    /// The time until the next expiry; negative: none.
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

    /// Logs exceeded soft limits.
    func logNotices() {
        let notices = keyspace.withCore { core in
            guard !core.admission.notices.isEmpty else { return [String]() }
            defer { core.admission.notices = [] }
            return core.admission.notices
        }
        for notice in notices { options.log(.warning, notice) }
    }
}

/// Memory of the process: new values are refused before it runs out, so that the kernel does not
/// kill the daemon, and so that it can start again.
extension Server {
    /// Checks whether there is memory for more values.
    func lookAtMemoryIfDue() {
        let now = SystemClock.monotonicMilliseconds()
        let taken = keyspace.withCore { $0.entries.putByteCount }
        guard memorySchedule.isDue(at: now, taken: taken) else { return }
        var bound = options.memoryBound()
        // Freed heap memory is reused for new values and rarely returned to the kernel. Measuring
        // it walks the heap, so this happens only if memory is short.
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
            options.log(.notice, "there is memory again: writes are accepted")
        }
    }

    private func shortage(_ bound: MemoryBound) -> StateError {
        StateError(
            .noSpace,
            "memory is short: the daemon takes \(bound.description), of which it reserves "
                + "\(bound.reservedByteCount >> 20) MiB; values that need more are refused; delete "
                + "keys or raise the limit"
        )
    }
}

/// Damage of the store. Reads are answered from memory, so without this check it would only be
/// noticed at the next start.
extension Server {
    /// Plans the next check.
    func scheduleCheck() {
        guard options.checkMilliseconds > 0, keyspace.history != nil else {
            return timers.set(.check, at: nil)
        }
        timers.set(.check, at: SystemClock.monotonicMilliseconds() + options.checkMilliseconds)
    }

    /// Reads the complete store on the history thread.
    func checkStore() {
        history.submit(CheckJob(through: keyspace.withCore { $0.revisions.durable }))
    }

    /// Handles the end of a check.
    func noteCheck(_ failure: StateError?) {
        scheduleCheck()
        guard let failure else {
            if registry.store.damage != nil {
                options.log(.notice, "the store was read again completely and is not damaged")
            }
            registry.store.damage = nil
            return
        }
        noteDamage(failure)
    }

    /// Reports damage of the store, once in the log and from then on in the status.
    func noteDamage(_ failure: StateError) {
        guard registry.store.damage != failure.message else { return }
        registry.store.damage = failure.message
        options.log(
            .error,
            "\(failure.message); the values in memory are still served: save them with "
                + "'statectl export', or restore a copy"
        )
    }
}
