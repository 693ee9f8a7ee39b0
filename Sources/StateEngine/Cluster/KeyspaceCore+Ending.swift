/// Keys of a cluster that end by themselves: the cluster decides about their time as about their value.
extension KeyspaceCore {
    /// The moment of a turn that has begun at a wall time in milliseconds since 1970.
    package func moment(at time: Int64) -> ClusterUse.Moment {
        ClusterUse.Moment(time: time, clock: entries.clock())
    }

    /// Carries out a command again as it was at a moment: no key has ended since, and times from now
    /// on begin then.
    package func asOf(_ moment: ClusterUse.Moment, _ body: () -> Void) {
        let clock = entries.clock
        let then = moment.clock
        entries.clock = { then }
        transaction.cluster?.asOf = moment.time
        body()
        transaction.cluster?.asOf = nil
        entries.clock = clock
    }

    /// Gives a version of the open transaction another deadline.
    func setDeadline(of version: Record, to expires: Int64?) {
        var fields = fields(of: version, version: version.version)
        (fields.expires, fields.isRenewal) = (expires, version.isRenewal)
        fields.operation = version.operation
        let record = Record.make(
            fields,
            key: version.key,
            value: version.value,
            in: &entries.pool
        )
        put(record, onto: entries.live.slot(for: version.key), due: expires.map { due(at: $0) })
    }

    /// A wall time on the clock of ``Deadlines``.
    func due(at expires: Int64) -> Int64 {
        entries.deadline(at: expires)
            ?? Deadlines.deadline(of: expires, at: entries.clock(), wallTime: transaction.time)
    }

    /// Keys whose time has passed since the last call.
    package func takeEnded() -> [ClusterUse.Ended] { transaction.cluster?.takeEnded() ?? [] }

    /// The cluster has deleted keys whose time had passed.
    package func noteExpired(_ count: Int) { entries.deadlines.noteExpired(count) }

    /// The delete of a key whose time has passed; nil if it is not there, or has more time.
    package func attemptToEnd(_ key: [UInt8]) -> ClusterAttempt? {
        let head = key.withUnsafeBytes { entries.head($0) }
        guard let head, !head.isDeleted, isDue(head) else { return nil }
        return ClusterAttempt(
            changes: [ClusterAttempt.Change(key: key, value: nil, expires: nil)],
            reads: [key: true],
            ranges: [],
            deleted: [],
            cause: Array("\(Cause.expiry)".utf8),
            isAlone: false
        )
    }
}
