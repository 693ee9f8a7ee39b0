import CLinux
import Synchronization

extension LocalKeyspace {
    /// Begins to follow keys; see ``Keyspace/watch(_:)``.
    public func watch(
        _ receive: @escaping @Sendable (KeyspaceEvent) -> Void
    ) -> any KeyspaceWatch {
        LocalWatch(self, receive)
    }

    /// Ends the process where the caller hands out what it is about to wait for.
    package func checkMayWait() {
        guard isHandingOut else { return }
        fatalError("a completion or a receiver of a keyspace waits for it, whose thread it holds")
    }

    /// Whether the caller is told of something, or answered, and by nobody else meanwhile.
    var isHandingOut: Bool {
        let deliverer: UnsafeRawPointer? = clinux_deliverer()
        return deliverer == UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
    }

    /// Hands out what is to be told and answered, in order, unless somebody is at it.
    ///
    /// Order matters: a watch hears of a commit before its writer is answered, and both without the lock.
    ///
    /// A thread that has written is not kept for ever by what others write: the commit thread goes on.
    func deliver() {
        let before = clinux_deliverer()
        clinux_set_deliverer(Unmanaged.passUnretained(self).toOpaque())
        defer { clinux_set_deliverer(before) }
        var roundsLeft = 16
        var isAtIt = false
        while let deliveries = withCore({ $0.pending.takeDeliveries(goingOn: isAtIt) }) {
            isAtIt = true
            roundsLeft -= 1
            for delivery in deliveries {
                switch delivery {
                case .event(let event, let watch): watch.hear(event)
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

/// A watch of a keyspace in this process.
///
/// What changes is changed under the keyspace's lock: the proof of `@unchecked Sendable`.
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
            tell(
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

    /// What waits to be handed out is bounded by who follows, not here.
    var hasRoom: Bool { true }

    func receive(_ notice: Watcher.Notice, in core: KeyspaceCore) {
        // It begins synced and always has room: no pieces and no gap.
        guard case .commit(let revision, let changes) = notice else { return }
        let cause = changes.first.map { core.cause(of: $0) } ?? .unknown
        tell(
            .commit(core.revision(revision), changes.map { core.keyspaceChange($0) }, cause: cause),
            in: core
        )
    }

    private func tell(_ event: KeyspaceEvent, in core: KeyspaceCore) {
        // It holds this object, so that the last reference never goes under the lock.
        core.pending.deliver(.event(event, self))
    }

    fileprivate func hear(_ event: KeyspaceEvent) {
        if !isCancelled.load(ordering: .relaxed) { receiveEvent(event) }
    }
}

extension KeyspaceCore {
    func revision(_ number: Int64) -> Revision { Revision(epoch: epoch, number: number) }

    /// A version as a watch is told of it.
    func keyspaceChange(_ record: Record) -> KeyspaceChange {
        KeyspaceChange(
            key: Key(verified: record.key),
            value: record.value.map { Array($0) },
            revision: record.isDeleted ? 0 : record.revision,
            cause: cause(of: record)
        )
    }
}
