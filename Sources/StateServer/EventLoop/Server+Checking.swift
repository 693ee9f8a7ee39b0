import StateEngine

/// Damage of what is stored, which nobody meets otherwise until the next start: reads are answered from memory.
extension Server {
    /// Milliseconds until the next check; -1 if there will be none.
    var millisecondsToCheck: Int32 {
        guard options.checkMilliseconds > 0, !isChecking else { return -1 }
        let due = checkedAt + options.checkMilliseconds
        return Int32(clamping: max(0, due - SystemClock.monotonicMilliseconds()))
    }

    /// Has everything that is stored read on the history thread, if it is time to.
    func checkStoreIfDue() {
        guard millisecondsToCheck == 0 else { return }
        checkedAt = SystemClock.monotonicMilliseconds()
        guard keyspace.history != nil else { return }
        isChecking = true
        history.submit(CheckJob(through: keyspace.withCore { $0.revisions.durable }))
    }

    /// A check has come to its end.
    func noteCheck(_ failure: StateError?) {
        isChecking = false
        checkedAt = SystemClock.monotonicMilliseconds()
        guard let failure else {
            if registry.damage != nil {
                options.log(.notice, "what is stored was read again and is not damaged")
            }
            registry.damage = nil
            return
        }
        noteDamage(failure)
    }

    /// Says once, in the log and from then on in the status, that something stored cannot be read.
    func noteDamage(_ failure: StateError) {
        guard registry.damage != failure.message else { return }
        registry.damage = failure.message
        options.log(
            .error,
            "\(failure.message); what is in memory is served on: export it (statectl export), or restore a copy"
        )
    }
}
