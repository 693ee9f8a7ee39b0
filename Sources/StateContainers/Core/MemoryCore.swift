public import CLinux
public import StateEngine

extension StateCore {
    /// A core of its own in memory.
    static func inMemory(_ value: Value, key: Key, isDirect: Bool) -> StateCore {
        StateCore(value, key: key, revision: .memoryStart, isDirect: isDirect)
    }

    /// A change that nobody is told of, in place; nil, and nothing done, where somebody is.
    @inlinable
    final func modifyUntold<R>(
        _ body: (inout Value) -> R
    ) -> (result: R, revision: Revision)? {
        checkBody()
        let mark = Unmanaged.passUnretained(self).toOpaque()
        // Not as a result of the lock's own: what the body returns stays the caller's.
        var done: (result: R, revision: Revision)?
        published.withLock { published in
            guard published.queues.isEmpty else { return }
            clinux_set_body(mark)
            let result = body(&published.value)
            clinux_set_body(nil)
            published.number &+= 1
            done = (result, Revision(epoch: published.epoch, number: published.number))
        }
        return done
    }

    /// A change that somebody is told of, or that may be taken back.
    ///
    /// - Parameters:
    ///   - reason: What moved the writer.
    ///   - admit: Takes the revision that the change is made on, and throws where it may not be.
    ///   - body: Changes a copy.
    /// - Returns: What `body` returned, and the commit.
    /// - Throws: what `admit` or `body` threw; nothing has changed.
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

    /// Runs the body and publishes; nil where one of the `queues`, which it hands out, has no room.
    private func attempt<R, E: Error>(
        _ reason: String,
        _ queues: inout [ChangeQueue],
        _ admit: (Revision) throws(E) -> Void,
        _ body: (inout Value) throws(E) -> R
    ) -> Result<(result: R, revision: Revision), E>? {
        let mark = Unmanaged.passUnretained(self).toOpaque()
        let depth = clinux_depth()
        var outcome: Result<(result: R, revision: Revision), E>?
        published.withLock { published in
            queues = published.queues
            guard depth > 0 || published.queues.allSatisfy(\.hasRoom) else { return }
            var value = published.value
            clinux_set_body(mark)
            defer { clinux_set_body(nil) }
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
        return outcome
    }
}

extension Revision {
    /// Before the first change of a container in memory.
    static let memoryStart = Revision(epoch: .random(), number: 0)

    /// - Throws: ``StateError/Code/conflict``, naming this revision, where it is not the one expected of `key`.
    func check(isExpected expected: Revision?, of key: Key) throws(StateError) {
        guard let expected, expected != self else { return }
        throw StateError(.conflict, "key '\(key)' is at revision \(number), not \(expected.number)")
    }
}

/// A change whose telling makes the next, and so on.
enum Feedback {
    static let limit: Int64 = 1_000

    /// - Throws: ``StateError/Code/feedbackLoop``, naming the key; nothing has changed.
    static func check(_ key: Key) throws(StateError) {
        guard clinux_depth() > limit else { return }
        throw StateError(
            .feedbackLoop,
            "state '\(key)': \(limit) changes in a row were made by what was told of the one before"
        )
    }
}
