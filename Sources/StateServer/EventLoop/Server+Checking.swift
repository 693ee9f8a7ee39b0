import StateEngine

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
