/// When values expire.
extension KeyspaceCore {
    /// Refuses a value that lives longer than the limit of its rule.
    ///
    /// A kept deadline makes no value live longer, and a value with a holder ends with it.
    ///
    /// - Throws: ``StateError/Code/limit``, naming the key, the time and the rule.
    @inline(never)
    func checkLifetime(
        _ limit: KeyRule.Setting<Int64>,
        _ key: Bytes,
        _ expiry: Expiry,
        _ expires: Int64?
    ) throws(StateError) {
        if expiry == .kept && expires != nil || expires ?? 0 < 0 { return }
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
                + "(\(limit.rule), limits.ttl)"
        )
    }

    /// How many milliseconds a version has left, by the clock on which deadlines run; nil if it
    /// does not expire.
    package func millisecondsLeft(of record: Record) -> Int64? {
        record.knownDeadline.map { max(0, $0 - entries.clock()) }
    }
}
