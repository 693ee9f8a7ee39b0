import CLinux
import StateEngine

/// A change that was submitted.
struct Attempt<R> {
    let result: R
    let ticket: Ticket
    /// Its commit if it succeeds, where commits are ordered in this process: the next change may be computed on it.
    let revision: Revision?
    let isEarly: Bool
}

extension PersistentCore {
    /// What the next change is computed on.
    struct Base {
        let value: Value
        let revision: Revision
        let entryRevision: Int64
        let unreadable: StateError?
    }

    var base: Base {
        head.withLock { head in
            let stored = head.stored
            guard let last = head.pending.last(where: { $0.number != nil }),
                let number = last.number, number > stored.revision.number
            else {
                return Base(
                    value: stored.value,
                    revision: stored.revision,
                    entryRevision: stored.entryRevision,
                    unreadable: stored.unreadable
                )
            }
            return Base(
                value: last.value,
                revision: Revision(epoch: stored.revision.epoch, number: number),
                entryRevision: last.bytes == nil ? 0 : number,
                unreadable: nil
            )
        }
    }

    /// Changes the value, and waits until storage has it at the durability asked for.
    func commit<R>(
        _ change: Change,
        check: StateCore<Value>.Check?,
        _ body: (inout Value) throws -> R
    ) throws -> (result: R, revision: Revision) {
        try prepare()
        while true {
            turn.take()
            let attempt = try begin(change, check, lendsThread: true, body)
            if attempt.revision != nil { turn.give() }
            if !attempt.isEarly { attempt.ticket.wait(lendingThreadTo: hub.keyspace) }
            if attempt.revision == nil { turn.give() }
            drain()
            if let done = try outcome(of: attempt, change) { return done }
        }
    }

    /// The same for a task.
    nonisolated(nonsending) func commit<R>(
        _ change: Change,
        check: StateCore<Value>.Check?,
        _ body: (inout Value) throws -> R
    ) async throws -> (result: R, revision: Revision) {
        try prepare()
        while true {
            await turn.take()
            let attempt = try begin(change, check, lendsThread: false, body)
            if attempt.revision != nil { turn.give() }
            if !attempt.isEarly { await attempt.ticket.wait() }
            if attempt.revision == nil { turn.give() }
            drain()
            if let done = try outcome(of: attempt, change) { return done }
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
        lendsThread: Bool,
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
            let condition = change.replaces ? nil : base.entryRevision
            let isEarly = change.durability == .memory
            let ticket = Ticket()
            expect(ticket, value, bytes, isEarly: isEarly)
            let number = hub.keyspace.submit(
                [mutation(bytes, ifRevision: condition)],
                lendsThread: lendsThread && !isEarly
            ) { [self] in answer(ticket, $0) }
            return Attempt(
                result: result,
                ticket: ticket,
                revision: number.map { promise(ticket, $0) },
                isEarly: isEarly && number != nil
            )
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

    private func mutation(_ bytes: [UInt8]?, ifRevision revision: Int64?) -> Mutation {
        bytes.map { .set(key, $0, ifRevision: revision) } ?? .delete(key, ifRevision: revision)
    }

    /// From now on an answer is awaited.
    func expect(_ ticket: Ticket, _ value: Value, _ bytes: [UInt8]?, isEarly: Bool) {
        let pending = Pending(
            ticket: ticket,
            value: value,
            bytes: bytes,
            depth: clinux_depth(),
            isEarly: isEarly
        )
        head.withLock { $0.pending.append(pending) }
    }

    /// The commit's number is known, if it succeeds; what its writer does not wait for is published.
    func promise(_ ticket: Ticket, _ number: Int64) -> Revision {
        published.withLock { published in
            head.withLock { head in
                let revision = Revision(epoch: head.stored.revision.epoch, number: number)
                guard let index = head.pending.firstIndex(where: { $0.ticket === ticket }) else {
                    return revision
                }
                head.pending[index].number = number
                let pending = head.pending[index]
                if pending.isEarly, number > published.number {
                    published.publish(
                        pending.bytes == nil ? defaultValue : pending.value,
                        revision,
                        cause: .thisProcess,
                        depth: pending.depth,
                        merges: true
                    )
                }
                return revision
            }
        }
    }

    /// Takes the keyspace's answer; where its writer went on without it, what was published too early is taken back.
    func answer(_ ticket: Ticket, _ result: Result<Int64, StateError>) {
        let takenBack = published.withLock { published in
            head.withLock { head in
                guard let index = head.pending.firstIndex(where: { $0.ticket === ticket }) else {
                    return false
                }
                let pending = head.pending.remove(at: index)
                guard pending.isEarly, case .failure = result,
                    published.number > head.stored.revision.number
                else { return false }
                let revision = Revision(epoch: published.epoch, number: published.number)
                published.publish(
                    head.stored.value,
                    revision,
                    cause: .thisProcess,
                    depth: 0,
                    merges: true
                )
                return true
            }
        }
        ticket.put(result)
        guard takenBack, case .failure(let error) = result else { return }
        note(error)
        tellLater()
    }

    /// What became of an attempt; nil where it has to be made again on a newer value.
    private func outcome<R>(
        of attempt: Attempt<R>,
        _ change: Change
    ) throws(StateError) -> (result: R, revision: Revision)? {
        if attempt.isEarly, let revision = attempt.revision { return (attempt.result, revision) }
        guard let answer = attempt.ticket.result else {
            preconditionFailure("an attempt on '\(key)' went on without its answer")
        }
        switch answer {
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
        for ticket in head.withLock({ $0.pending.map(\.ticket) }) {
            await ticket.wait()
            if case .failure(let error)? = ticket.result { throw error }
        }
    }
}
