import CLinux
import StateEngine

extension PersistentCore {
    /// A submitted change.
    private struct Attempt<R> {
        let result: R
        let answer: Answer
        /// The revision of its commit if it succeeds, if commits are ordered in this process: the
        /// next change may be based on it.
        let revision: Revision?
        let isEarly: Bool
        /// What it was based on, and what it makes of that; both are released after the turn.
        let base: Base
        let value: Value
        /// Whether it deletes an absent entry: there is no commit.
        let isVoid: Bool
    }

    /// How many changes with durability `memory` may wait for storage.
    static var earlyLimit: Int { 1_024 }

    /// What the next change is based on.
    struct Base {
        let value: Value
        let revision: Revision
        let entryRevision: Int64
        let unreadable: StateError?
    }

    var base: Base {
        published.withLock { published in head.withLock { $0.base(below: published.revision) } }
    }

    /// Changes the value, and waits until storage has it at the requested durability.
    func commit<R>(
        _ change: Change,
        check: StateCore<Value>.Check?,
        _ body: (inout Value) throws -> R
    ) throws -> (result: R, revision: Revision) {
        hub.waitable?.checkMayWait()
        try prepare()
        var patience = StalePatience()
        while true {
            turn.take()
            let attempt = try begin(change, check, commitsOnCaller: true, body)
            if attempt.revision != nil { turn.give() }
            if !attempt.isEarly { attempt.answer.wait(committingIn: hub.waitable) }
            if attempt.revision == nil { turn.give() }
            drain()
            if let done = try outcome(of: attempt, change) { return done }
            try patience.check([attempt.base.revision], of: key)
        }
    }

    /// The same for a task.
    package nonisolated(nonsending) func commit<R>(
        _ change: Change,
        check: StateCore<Value>.Check?,
        _ body: (inout Value) throws -> R
    ) async throws -> (result: R, revision: Revision) {
        try prepare()
        var patience = StalePatience()
        while true {
            await turn.take()
            let attempt = try begin(change, check, commitsOnCaller: false, body)
            if attempt.revision != nil { turn.give() }
            if !attempt.isEarly { await attempt.answer.wait() }
            if attempt.revision == nil { turn.give() }
            drain()
            if let done = try outcome(of: attempt, change) { return done }
            try patience.check([attempt.base.revision], of: key)
        }
    }

    private func prepare() throws(StateError) {
        checkBody()
        try Feedback.check(key)
        for queue in published.withLock({ $0.queues }) { queue.waitForRoom() }
    }

    /// Computes the new value and submits it.
    ///
    /// The caller holds the turn; it is given up if this throws.
    private func begin<R>(
        _ change: Change,
        _ check: StateCore<Value>.Check?,
        commitsOnCaller: Bool,
        _ body: (inout Value) throws -> R
    ) throws -> Attempt<R> {
        // Released after the turn, also if this throws: the `deinit` of an object in a value may use
        // this container.
        let base = base
        var value = base.value
        do {
            if let error = base.unreadable, !change.replaces { throw error }
            try base.revision.check(isExpected: change.expected, of: key)
            let result = try RunningBody.with(self) { try body(&value) }
            try check?(value)
            let bytes = try encode(value)
            return submit(value, bytes, on: base, change, commitsOnCaller: commitsOnCaller, result)
        } catch {
            turn.give()
            withExtendedLifetime((base, value)) {}
            throw error
        }
    }

    /// The bytes of a value, or nil if the entry is to be removed.
    ///
    /// - Throws: ``StateError/Code/invalidRequest`` if without an entry the value would be another
    ///   one, the default.
    func encode(_ value: Value) throws(StateError) -> [UInt8]? {
        if let bytes = try codec.encode(value) { return bytes }
        guard try codec.encode(defaultValue) == nil else {
            throw StateError(
                .invalidRequest,
                "key '\(key)': the codec removes the entry for this value, and without an entry the "
                    + "value is the default, which is another"
            )
        }
        return nil
    }

    private func submit<R>(
        _ value: Value,
        _ bytes: [UInt8]?,
        on base: Base,
        _ change: Change,
        commitsOnCaller: Bool,
        _ result: R
    ) -> Attempt<R> {
        let answer = Answer()
        let condition = change.replaces ? nil : base.entryRevision
        let isEarly =
            change.durability < .synced
            && head.withLock { $0.pending.count < PersistentCore.earlyLimit }
        expect(answer, value, bytes, reason: change.reason, isEarly: isEarly)
        let mutation: Mutation =
            bytes.map { .set(key, $0, ifRevision: condition, expires: change.expiry) }
            ?? .delete(key, ifRevision: condition)
        let number = hub.submit(
            [mutation],
            commitsOnCaller: commitsOnCaller && !isEarly
        ) { [self] in settle(answer, $0) }
        let revision = number.map { promise(answer, $0) }
        return Attempt(
            result: result,
            answer: answer,
            revision: revision,
            isEarly: isEarly && revision != nil,
            base: base,
            value: value,
            isVoid: bytes == nil && condition == 0
        )
    }

    /// Registers a change whose answer is expected.
    func expect(
        _ answer: Answer,
        _ value: Value,
        _ bytes: [UInt8]?,
        reason: String = "",
        isEarly: Bool
    ) {
        let pending = Pending(
            answer: answer,
            value: value,
            bytes: bytes,
            reason: reason,
            depth: clinux_depth(),
            isEarly: isEarly
        )
        head.withLock { $0.pending.append(pending) }
    }

    /// Records the revision that the commit gets if it succeeds.
    ///
    /// Publishes a change whose writer does not wait.
    func promise(_ answer: Answer, _ number: Int64) -> Revision {
        replacing { published in
            head.withLock { head in
                let revision = Revision(epoch: head.stored.revision.epoch, number: number)
                guard let index = head.pending.firstIndex(where: { $0.answer === answer }) else {
                    return revision
                }
                head.pending[index].number = number
                let pending = head.pending[index]
                if pending.isEarly, number > published.number {
                    head.early = number
                    var cause = Cause.thisProcess
                    cause.reason = pending.reason
                    published.publish(
                        pending.bytes == nil ? defaultValue : pending.value,
                        revision,
                        cause: cause,
                        depth: pending.depth,
                        merges: true
                    )
                }
                return revision
            }
        }
    }

    /// Takes the keyspace's answer.
    ///
    /// If the change failed but was already published, reverts it.
    func settle(_ answer: Answer, _ result: Result<Int64, StateError>) {
        let (settled, isLost) = replacing { published in
            head.withLock { head -> (Pending?, Bool) in
                guard let index = head.pending.firstIndex(where: { $0.answer === answer }) else {
                    return (nil, false)
                }
                let pending = head.pending.remove(at: index)
                guard pending.isEarly, case .failure = result else { return (pending, false) }
                takeBack(&published, &head)
                return (pending, true)
            }
        }
        releaseLater(settled)
        answer.put(result)
        guard isLost, case .failure(let error) = result else { return }
        note(error)
        deliverLater()
    }

    /// Publishes the stored value if an unstored one is visible; once for all changes that failed
    /// together.
    private func takeBack(_ published: inout Published, _ head: inout Head) {
        guard head.early > head.stored.revision.number, head.early == published.number else {
            return
        }
        head.early = 0
        published.publish(
            head.stored.value,
            published.revision,
            cause: .thisProcess,
            depth: 0,
            merges: true
        )
    }

    /// The outcome of an attempt; nil if it must be repeated on a newer value.
    private func outcome<R>(
        of attempt: Attempt<R>,
        _ change: Change
    ) throws(StateError) -> (result: R, revision: Revision)? {
        if attempt.isEarly, let revision = attempt.revision { return (attempt.result, revision) }
        guard let result = attempt.answer.result else {
            preconditionFailure("an attempt on '\(key)' ended without an answer")
        }
        switch result {
        case .success where attempt.isVoid:
            return (attempt.result, attempt.base.revision)
        case .success(let number):
            let epoch = head.withLock { $0.stored.revision.epoch }
            return (attempt.result, Revision(epoch: epoch, number: number))
        case .failure(let error) where error.code == .conflict && change.expected == nil:
            return nil
        case .failure(let error):
            throw error
        }
    }

    /// Waits for all answers that are expected now.
    ///
    /// - Throws: The first error among them.
    nonisolated(nonsending) func flush() async throws(StateError) {
        for answer in head.withLock({ $0.pending.map(\.answer) }) {
            await answer.wait()
            if case .failure(let error)? = answer.result { throw error }
        }
    }
}

extension PersistentCore.Head {
    /// The newest submitted change, or else what is stored.
    ///
    /// - Parameter shown: The visible revision. It is newer than the stored one after a revert; it
    ///   is then the base revision.
    /// - Returns: What the next change is based on.
    func base(below shown: Revision) -> PersistentCore.Base {
        let newest = shown.isNewer(than: stored.revision) ? shown : stored.revision
        guard let last = pending.last(where: { $0.number != nil }),
            let number = last.number, number > stored.revision.number
        else {
            return PersistentCore.Base(
                value: stored.value,
                revision: newest,
                entryRevision: stored.entryRevision,
                unreadable: stored.unreadable
            )
        }
        return PersistentCore.Base(
            value: last.value,
            revision: Revision(epoch: stored.revision.epoch, number: number),
            entryRevision: last.bytes == nil ? 0 : number,
            unreadable: nil
        )
    }
}
