import StateEngine

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
