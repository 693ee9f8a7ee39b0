/// When values expire.
extension KeyspaceCore {
    /// The wall time at which a new value expires, in milliseconds since 1970; nil for never.
    @inline(__always)
    func expires(_ expiry: Expiry, after current: Record?, _ rule: KeyRule?) -> Int64? {
        switch expiry {
        case .kept where current != nil: current?.expires
        case .ruled, .kept: rule?.lifetimeMilliseconds.map { transaction.time + $0 }
        case .never: nil
        case .after, .at: expiry.time(from: transaction.time)
        }
    }

    /// Refuses a value that lives longer than its rule allows.
    ///
    /// A kept deadline makes no value live longer.
    ///
    /// - Throws: ``StateError/Code/limit``, naming the key, the time and the rule.
    @inline(__always)
    func checkLifetime(
        _ rule: KeyRule,
        _ key: Bytes,
        _ expiry: Expiry,
        _ expires: Int64?
    ) throws(StateError) {
        guard let limit = rule.lifetimeLimit else { return }
        if expiry == .kept, expires != nil { return }
        let left = expires.map { $0.subtractingReportingOverflow(transaction.time) }
        if let left, left.overflow || left.partialValue <= limit.value { return }
        throw livesTooLong(key, left?.partialValue, limit)
    }

    @inline(never)
    private func livesTooLong(
        _ key: Bytes,
        _ left: Int64?,
        _ limit: KeyRule.Setting<Int64>
    ) -> StateError {
        let time = left.map { "in " + Quantity.text(.milliseconds($0)) } ?? "never"
        return StateError(
            .limit,
            "the value of key \(StateError.quoted(key)) would expire \(time); the limit is "
                + "\(Quantity.text(.milliseconds(limit.value))) "
                + "(rule \(limit.rule + 1), limits.ttl)"
        )
    }

    /// How many milliseconds a version has left, by the clock on which deadlines run; nil if it
    /// does not expire.
    package func millisecondsLeft(of record: Record) -> Int64? {
        record.knownDeadline.map { max(0, $0 - entries.clock()) }
    }
}
