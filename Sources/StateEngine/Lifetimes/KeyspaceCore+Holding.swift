/// Keys that live as long as a connection or a process.
extension KeyspaceCore {
    /// A holder is here: new, or back.
    ///
    /// - Returns: False if it has ended: then it stays so.
    package func admit(_ holder: Holder) -> Bool { entries.deadlines.holders.begin(holder) }

    /// A holder has ended: ``endHolders(at:wallTime:)`` deletes its keys.
    package func endHolder(_ holder: Holder) {
        entries.deadlines.holders.end(holder, at: entries.clock())
    }

    /// The holders of an earlier run that have not come back after so many milliseconds end.
    package func awaitHolders(milliseconds: Int64) {
        entries.deadlines.holders.serve(awaitingUntil: entries.clock() + milliseconds)
    }

    /// Deletes the keys of the holders that have ended, as one commit for each, whose cause is
    /// `disconnect`; at most about ten thousand keys.
    ///
    /// - Parameters:
    ///   - now: Milliseconds of CLOCK_BOOTTIME.
    ///   - time: Wall time in milliseconds since 1970.
    /// - Returns: The number of deleted keys. If storage refuses writes for now, those of a holder
    ///   are tried again in a second.
    @discardableResult
    package func endHolders(at now: Int64, wallTime time: Int64) -> Int {
        var count = 0
        while count < Holders.keyLimit, let records = entries.deadlines.holders.takeEnded(at: now) {
            guard let holder = records.first?.holder else { continue }
            let deleted = delete(records, at: time)
            count += deleted
            if deleted < records.count { entries.deadlines.holders.retry(holder, at: now + 1_000) }
        }
        return count
    }

    private func delete(_ records: [Record], at time: Int64) -> Int {
        let cause = retainCause(.disconnect)
        defer { release(cause) }
        var receipt = Receipt()
        begin(cause, at: time)
        let count = records.count { deleteEnded($0) }
        finish(&receipt)
        return count
    }

    /// The holder by the rule of the key, in the place of a time; nil for what no client sets, such
    /// as an edited file.
    @inline(never)
    func holder(
        ruledBy lifetime: Lifetime,
        of key: Bytes,
        _ current: Record?
    ) throws(StateError) -> Int64? {
        guard transaction.holders != nil else { return nil }
        return try holder(lifetime, of: key, current).stored
    }

    /// The holder of a value that a writer sets.
    ///
    /// - Throws: ``StateError/Code/err`` if the writer has none, or ``StateError/Code/limit`` if it
    ///   has too many keys.
    @inline(never)
    func holder(
        _ lifetime: Lifetime,
        of key: Bytes,
        _ current: Record?
    ) throws(StateError) -> Holder {
        guard let holders = transaction.holders else {
            throw StateError(
                .err,
                "key \(StateError.quoted(key)) cannot live as long as a \(lifetime.rawValue): no "
                    + "client of a daemon sets it"
            )
        }
        let holder = try holders.holder(lifetime)
        let isNew = current?.holder != holder
        guard !isNew || entries.deadlines.holders.keyCount(of: holder) < Holders.keyLimit else {
            throw StateError(
                .limit,
                "the \(lifetime.rawValue) has \(Holders.keyLimit) keys that live as long as it, the "
                    + "limit: \(StateError.quoted(key)) is not set"
            )
        }
        return holder
    }
}

extension Cause {
    /// The cause of deletes of keys whose holder has ended.
    static let disconnect = Cause(
        uid: thisProcess.uid,
        gid: thisProcess.gid,
        pid: 0,
        command: "disconnect"
    )
}
