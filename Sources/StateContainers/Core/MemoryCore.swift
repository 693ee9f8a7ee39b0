public import CLinux
public import StateEngine

extension StateCore {
    /// Makes a core in memory.
    static func inMemory(
        _ value: Value,
        key: Key,
        isDirect: Bool,
        isTracked: Bool,
        initial: InitialValue<Value>? = nil
    ) -> StateCore {
        let facts = TypeFacts.of(Value.self)
        if let rule = facts.uncheckedRule { fatalError("state '\(key)': \(rule)") }
        if facts.isBareFunction {
            fatalError(
                "state '\(key)' is a function, which each change would wrap: put it in a struct"
            )
        }
        let core = StateCore(
            value,
            key: key,
            revision: .memoryStart,
            isDirect: isDirect,
            isTracked: isTracked
        )
        core.published.withLock { $0.initial = initial }
        return core
    }

    /// Makes a change in place if it has no receivers; returns nil, and does nothing, if it has.
    @inlinable
    final func modifyInPlace<R>(
        _ body: (inout Value) -> R
    ) -> (result: R, revision: Revision)? {
        checkBody()
        let owner = Unmanaged.passUnretained(self).toOpaque()
        // Not returned by the lock's closure: what the body returns stays in the caller's region.
        var done: (result: R, revision: Revision)?
        var replaced: Value?
        published.withLock { published in
            guard published.queues.isEmpty else { return }
            if published.initial != nil { published.forgetInitial() }
            if ownsObjects { replaced = published.value }
            clinux_set_body(owner)
            let result = body(&published.value)
            clinux_set_body(nil)
            published.number &+= 1
            done = (result, Revision(epoch: published.epoch, number: published.number))
        }
        withExtendedLifetime(replaced) {}
        return done
    }

    /// Makes a change that has receivers; returns nil, and does nothing, if one has no room, or if
    /// changes may cause each other without end.
    ///
    /// Like ``modifyInPlace(_:)`` it is compiled where it is called, for the types there: what
    /// ``modifyPublished(reason:admit:_:)`` looks up at run time takes 600 ns.
    @inlinable
    @inline(never)
    final func modifyObserved<R>(
        _ body: (inout Value) -> R
    ) -> (result: R, revision: Revision)? {
        let owner = Unmanaged.passUnretained(self).toOpaque()
        var queues: [ChangeQueue] = []
        var passed: ChangeRecord?
        var done: (result: R, revision: Revision)?
        var replaced: Value?
        published.withLock { published in
            guard ChangeQueue.haveRoom(published.queues) else { return }
            queues = published.queues
            if ownsObjects { replaced = published.value }
            var value = published.value
            clinux_set_body(owner)
            let result = body(&value)
            clinux_set_body(nil)
            passed = published.publish(value)
            done = (result, Revision(epoch: published.epoch, number: published.number))
        }
        if let passed {
            queues[0].deliver(passed)
        } else {
            for queue in queues { queue.drain() }
        }
        withExtendedLifetime(replaced) {}
        return done
    }

    /// Makes a change that has receivers or that may be refused.
    ///
    /// - Parameters:
    ///   - reason: Why the writer makes the change.
    ///   - admit: Takes the revision that the change is based on; throws to refuse it.
    ///   - body: Changes a copy.
    /// - Returns: What `body` returned, and the revision of the commit.
    /// - Throws: What `admit` or `body` threw; nothing has changed.
    final func modifyPublished<R, E: Error>(
        reason: String = "",
        admit: (Revision) throws(E) -> Void = { _ in },
        _ body: (inout Value) throws(E) -> R
    ) throws(E) -> (result: R, revision: Revision) {
        checkBody()
        while true {
            var queues: [ChangeQueue] = []
            if let outcome = attempt(reason, &queues, admit, body) {
                let done = try outcome.get()
                for queue in queues { queue.drain() }
                return done
            }
            for queue in queues { queue.waitForRoom() }
        }
    }

    /// Runs the body and publishes; returns nil if one of `queues`, which it hands out, has no
    /// room.
    private func attempt<R, E: Error>(
        _ reason: String,
        _ queues: inout [ChangeQueue],
        _ admit: (Revision) throws(E) -> Void,
        _ body: (inout Value) throws(E) -> R
    ) -> Result<(result: R, revision: Revision), E>? {
        let owner = Unmanaged.passUnretained(self).toOpaque()
        let depth = clinux_depth()
        var outcome: Result<(result: R, revision: Revision), E>?
        // Both outlive the lock: the one that is replaced, and the one that is refused.
        var (old, new): (Value?, Value?)
        published.withLock { published in
            queues = published.queues
            guard depth > 0 || published.queues.allSatisfy(\.hasRoom) else { return }
            if ownsObjects { old = published.value }
            var value = published.value
            clinux_set_body(owner)
            defer {
                clinux_set_body(nil)
                if ownsObjects { new = value }
            }
            do throws(E) {
                try admit(published.revision)
                let result = try body(&value)
                let revision = Revision(epoch: published.epoch, number: published.number + 1)
                var cause = Cause.thisProcess
                cause.reason = reason
                published.publish(value, revision, cause: cause, depth: depth, merges: false)
                outcome = .success((result, revision))
            } catch {
                outcome = .failure(error)
            }
        }
        withExtendedLifetime((old, new)) {}
        return outcome
    }
}

extension Revision {
    /// The revision before the first change of a container in memory.
    static let memoryStart = Revision(epoch: .random(), number: 0)

    /// - Throws: ``StateError/Code/conflict``, naming this revision, if it is not the expected one
    ///   of `key`.
    func check(isExpected expected: Revision?, of key: Key) throws(StateError) {
        guard let expected, expected != self else { return }
        throw StateError(.conflict, "key '\(key)' is at revision \(number), not \(expected.number)")
    }
}

/// Detects changes that cause each other without end: each is made during the delivery of the one
/// before.
enum Feedback {
    static let limit: Int64 = 1_000

    /// - Throws: ``StateError/Code/feedbackLoop``, naming the key; nothing has changed.
    static func check(_ key: Key) throws(StateError) {
        guard clinux_depth() > limit else { return }
        throw StateError(
            .feedbackLoop,
            "state '\(key)': \(limit) changes in a row, "
                + "each made while the one before was delivered"
        )
    }
}
