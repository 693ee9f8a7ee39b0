import CLinux
import Synchronization

extension LocalKeyspace {
    /// Begins to watch keys; see ``Keyspace/watch(_:)``.
    public func watch(
        _ receive: @escaping @Sendable (KeyspaceEvent) -> Void
    ) -> any KeyspaceWatch {
        let watch = LocalWatch(unowned, receive)
        return inner == nil ? watch : OwnedWatch(watch, of: self)
    }

    /// Ends the process if the caller is delivering, because it would wait for itself.
    package func checkMayWait() {
        guard isHandingOut else { return }
        fatalError(
            "a completion or receiver of a keyspace must not wait for it: it runs on its thread"
        )
    }

    /// Whether the caller runs inside a delivery of events and answers by this keyspace.
    var isHandingOut: Bool {
        let deliverer: UnsafeRawPointer? = clinux_deliverer()
        return deliverer == UnsafeRawPointer(Unmanaged.passUnretained(core).toOpaque())
    }

    /// Delivers events and answers, in order, unless another thread is doing so.
    ///
    /// Order matters: a watch receives a commit before its writer is answered, and both happen
    /// without the lock.
    ///
    /// A writer's thread is not kept forever by the writes of others: the commit thread takes over.
    func deliver() {
        let before = clinux_deliverer()
        clinux_set_deliverer(Unmanaged.passUnretained(core).toOpaque())
        defer { clinux_set_deliverer(before) }
        var roundsLeft = 16
        var isAtIt = false
        while let deliveries = withCore({ $0.pending.takeDeliveries(goingOn: isAtIt) }) {
            isAtIt = true
            roundsLeft -= 1
            for delivery in deliveries {
                switch delivery {
                case .event(let event, let watch): watch.forward(event)
                case .answer(let answer): answer.completion(answer.result)
                case .compaction(let answer): answer.completion(answer.result)
                }
            }
            guard roundsLeft == 0, !queue.isOnItsThread else { continue }
            withCore { $0.pending.stopDelivering() }
            if queue.submit(.notify) { return }
            isAtIt = false
        }
    }
}

/// The program's end of a watch: it keeps the keyspace open.
final class OwnedWatch: KeyspaceWatch {
    private let watch: LocalWatch
    private let keyspace: LocalKeyspace

    init(_ watch: LocalWatch, of keyspace: LocalKeyspace) {
        (self.watch, self.keyspace) = (watch, keyspace)
    }

    // A delivery may still hold the other end.
    deinit { watch.cancel() }

    func include(_ patterns: [Pattern]) { watch.include(patterns) }
    func exclude(_ patterns: [Pattern]) { watch.exclude(patterns) }
    func cancel() { watch.cancel() }
}

/// A watch of a keyspace in this process.
///
/// Its state is changed under the keyspace's lock: the proof of `@unchecked Sendable`.
final class LocalWatch: KeyspaceWatch, WatchReceiver, @unchecked Sendable {
    private let keyspace: LocalKeyspace
    private let receiveEvent: @Sendable (KeyspaceEvent) -> Void
    private let watcher: Watcher
    private var counts: [Pattern: Int] = [:]
    private let isCancelled = Atomic(false)

    init(_ keyspace: LocalKeyspace, _ receive: @escaping @Sendable (KeyspaceEvent) -> Void) {
        self.keyspace = keyspace
        receiveEvent = receive
        watcher = keyspace.withCore { core in
            let watcher = Watcher(PatternSet([]), .now, in: core)
            core.hub.add(watcher)
            return watcher
        }
        watcher.receiver = self
    }

    deinit { cancel() }

    func include(_ patterns: [Pattern]) {
        keyspace.withCore { core in
            guard !isCancelled.load(ordering: .relaxed) else { return }
            for pattern in patterns {
                let count = counts[pattern, default: 0]
                counts[pattern] = count + 1
                if count == 0 { core.hub.add(pattern, to: watcher) }
            }
            var changes: [KeyspaceChange] = []
            core.forEachDurable(PatternSet(patterns), after: nil) { record in
                changes.append(core.keyspaceChange(record))
                return true
            }
            enqueue(
                .state(core.revision(core.revisions.durable), patterns: patterns, changes),
                in: core
            )
        }
        keyspace.deliver()
    }

    func exclude(_ patterns: [Pattern]) {
        keyspace.withCore { core in
            for pattern in patterns {
                guard let count = counts[pattern] else { continue }
                counts[pattern] = count > 1 ? count - 1 : nil
                if count == 1 { core.hub.remove(pattern, from: watcher) }
            }
        }
    }

    func cancel() {
        guard !isCancelled.exchange(true, ordering: .relaxed) else { return }
        keyspace.withCore { core in
            core.hub.remove(watcher, patterns: counts.keys)
        }
    }

    /// The queue of deliveries is bounded by the receiver, not here.
    var hasRoom: Bool { true }

    func receive(_ notice: Watcher.Notice, in core: KeyspaceCore) {
        // It begins synced and always has room: it gets no pieces and no gap.
        guard case .commit(let revision, let changes) = notice else { return }
        let cause = changes.first.map { core.cause(of: $0) } ?? .unknown
        enqueue(
            .commit(core.revision(revision), changes.map { core.keyspaceChange($0) }, cause: cause),
            in: core
        )
    }

    private func enqueue(_ event: KeyspaceEvent, in core: KeyspaceCore) {
        // The delivery retains this object, so that its last reference is never released under the
        // lock.
        core.pending.deliver(.event(event, self))
    }

    fileprivate func forward(_ event: KeyspaceEvent) {
        if !isCancelled.load(ordering: .relaxed) { receiveEvent(event) }
    }
}

extension KeyspaceCore {
    func revision(_ number: Int64) -> Revision { Revision(epoch: epoch, number: number) }

    /// A version as a watch receives it.
    func keyspaceChange(_ record: Record) -> KeyspaceChange {
        KeyspaceChange(
            key: Key(verified: record.key),
            value: record.value.map { Array($0) },
            revision: record.isDeleted ? 0 : record.revision,
            cause: cause(of: record)
        )
    }
}
