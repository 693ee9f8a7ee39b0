import CLinux
import StateEngine

/// A change that was submitted.
struct Attempt<R> {
    let result: R
    let answer: Answer
    /// Its commit if it succeeds, where commits are ordered in this process: the next change may be computed on it.
    let revision: Revision?
    let isEarly: Bool
    /// What it was computed on.
    let base: Revision
    /// Whether it removes what is absent: there is no commit.
    let isVoid: Bool
}

extension PersistentCore {
    /// How many changes may wait for storage whose writers do not.
    static var earlyLimit: Int { 1_024 }

    /// What the next change is computed on.
    struct Base {
        let value: Value
        let revision: Revision
        let entryRevision: Int64
        let unreadable: StateError?
    }

    var base: Base {
        published.withLock { published in head.withLock { $0.base(below: published.revision) } }
    }

    /// Changes the value, and waits until storage has it at the durability asked for.
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
            try patience.check([attempt.base], of: key)
        }
    }

    /// The same for a task.
    nonisolated(nonsending) func commit<R>(
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
            try patience.check([attempt.base], of: key)
        }
    }

    private func prepare() throws(StateError) {
        checkBody()
        try Feedback.check(key)
        for queue in published.withLock({ $0.queues }) { queue.waitForRoom() }
    }

    /// Computes the new value and submits it; the turn is the caller's, and is given up where this throws.
    private func begin<R>(
        _ change: Change,
        _ check: StateCore<Value>.Check?,
        commitsOnCaller: Bool,
        _ body: (inout Value) throws -> R
    ) throws -> Attempt<R> {
        do {
            let base = base
            if let error = base.unreadable, !change.replaces { throw error }
            try base.revision.check(isExpected: change.expected, of: key)
            var value = base.value
            let result = try runBody { try body(&value) }
            try check?(value)
            let bytes = try codec.encode(value)
            return submit(value, bytes, on: base, change, commitsOnCaller: commitsOnCaller, result)
        } catch {
            turn.give()
            throw error
        }
    }

    func runBody<R>(_ body: () throws -> R) rethrows -> R {
        clinux_set_body(Unmanaged.passUnretained(self).toOpaque())
        defer { clinux_set_body(nil) }
        return try body()
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
            change.durability == .memory
            && head.withLock { $0.pending.count < PersistentCore.earlyLimit }
        expect(answer, value, bytes, reason: change.reason, isEarly: isEarly)
        let mutation: Mutation =
            bytes.map { .set(key, $0, ifRevision: condition) }
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
            base: base.revision,
            isVoid: bytes == nil && condition == 0
        )
    }

    /// From now on an answer is awaited.
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

    /// The commit's number is known, if it succeeds; what its writer does not wait for is published.
    func promise(_ answer: Answer, _ number: Int64) -> Revision {
        published.withLock { published in
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

    /// Takes the keyspace's answer; where its writer went on without it, what was published too early is taken back.
    func settle(_ answer: Answer, _ result: Result<Int64, StateError>) {
        let isLost = published.withLock { published in
            head.withLock { head in
                guard let index = head.pending.firstIndex(where: { $0.answer === answer }) else {
                    return false
                }
                let pending = head.pending.remove(at: index)
                guard pending.isEarly, case .failure = result else { return false }
                takeBack(&published, &head)
                return true
            }
        }
        answer.put(result)
        guard isLost, case .failure(let error) = result else { return }
        note(error)
        deliverLater()
    }

    /// Shows what is stored, where something is shown that is not; once for all that failed with it.
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

    /// What became of an attempt; nil where it has to be made again on a newer value.
    private func outcome<R>(
        of attempt: Attempt<R>,
        _ change: Change
    ) throws(StateError) -> (result: R, revision: Revision)? {
        if attempt.isEarly, let revision = attempt.revision { return (attempt.result, revision) }
        guard let result = attempt.answer.result else {
            preconditionFailure("an attempt on '\(key)' went on without its answer")
        }
        switch result {
        case .success where attempt.isVoid:
            return (attempt.result, attempt.base)
        case .success(let number):
            let epoch = head.withLock { $0.stored.revision.epoch }
            return (attempt.result, Revision(epoch: epoch, number: number))
        case .failure(let error) where error.code == .conflict && change.expected == nil:
            return nil
        case .failure(let error):
            throw error
        }
    }

    /// Waits for every answer that is awaited now.
    ///
    /// - Throws: the first that is an error.
    nonisolated(nonsending) func flush() async throws(StateError) {
        for answer in head.withLock({ $0.pending.map(\.answer) }) {
            await answer.wait()
            if case .failure(let error)? = answer.result { throw error }
        }
    }
}

extension PersistentCore.Head {
    /// The newest change that is under way, or else what is stored.
    ///
    /// - Parameter shown: Newer than what is stored where a change was taken back: then it is the revision that everybody reads.
    /// - Returns: What the next change is computed on.
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
