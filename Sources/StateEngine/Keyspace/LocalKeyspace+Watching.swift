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
package final class LocalWatch: KeyspaceWatch, WatchReceiver, @unchecked Sendable {
    private let keyspace: LocalKeyspace
    private let receiveEvent: @Sendable (KeyspaceEvent) -> Void
    private let watcher: Watcher
    private var counts: [Pattern: Int] = [:]
    /// The pattern whose entries are counted, and how many are durable; nil if commits and states are
    /// delivered with their changes.
    private var counted: (pattern: Pattern, entryCount: Int)?
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

    package func include(_ patterns: [Pattern]) {
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

    package func exclude(_ patterns: [Pattern]) {
        keyspace.withCore { core in
            for pattern in patterns {
                guard let count = counts[pattern] else { continue }
                counts[pattern] = count > 1 ? count - 1 : nil
                if count == 1 { core.hub.remove(pattern, from: watcher) }
            }
        }
    }

    package func cancel() {
        guard !isCancelled.exchange(true, ordering: .relaxed) else { return }
        keyspace.withCore { core in
            core.hub.remove(watcher, patterns: counts.keys)
        }
    }

    // MARK: Counting

    /// Watches the keys of one pattern, the only one of this watch, and counts their entries.
    ///
    /// Copies none of them: delivers no state, and commits without their changes.
    /// ``page(offset:limit:)`` reads the entries.
    ///
    /// - Complexity: O(*m*) in the entries below the pattern's literal part, and no memory for them.
    package func count(_ pattern: Pattern) {
        keyspace.withCore { core in
            counts[pattern] = 1
            core.hub.add(pattern, to: watcher)
            var entryCount = 0
            core.forEachDurable(PatternSet([pattern]), after: nil) { _ in
                entryCount += 1
                return true
            }
            counted = (pattern, entryCount)
        }
    }

    /// Some entries of the counted pattern in the order of their keys, and how many it has, as of one
    /// commit: the last that is durable, which may not be delivered yet.
    ///
    /// - Complexity: O(`offset` + `limit`), and less if there are fewer entries; for a glob, O(*m*) in
    ///   the entries below its literal part.
    package func page(
        offset: Int,
        limit: Int
    ) -> (epoch: Epoch, entryCount: Int, entries: [KeyspaceChange]) {
        keyspace.withCore { core in
            guard let counted else { preconditionFailure("a page of a watch that counts nothing") }
            var entries: [KeyspaceChange] = []
            var toSkip = offset
            if limit > 0, offset < counted.entryCount {
                core.forEachDurable(PatternSet([counted.pattern]), after: nil) { record in
                    toSkip -= 1
                    if toSkip < 0 { entries.append(core.keyspaceChange(record)) }
                    return entries.count < limit
                }
            }
            return (core.epoch, counted.entryCount, entries)
        }
    }

    /// The durable entry of a key of the counted pattern; nil if there is none.
    package func entry(for key: Key) -> (epoch: Epoch, change: KeyspaceChange)? {
        keyspace.withCore { core in
            key.bytes.withUnsafeBytes { bytes in
                guard let counted, counted.pattern.matches(bytes) else { return nil }
                return core.readDurable(bytes).map { (core.epoch, core.keyspaceChange($0)) }
            }
        }
    }

    // MARK: Receiving

    /// The queue of deliveries is bounded by the receiver, not here.
    package var hasRoom: Bool { true }

    package func receive(_ notice: Watcher.Notice, in core: KeyspaceCore) {
        // It begins synced and always has room: it gets no pieces and no gap.
        guard case .commit(let revision, let changes) = notice else { return }
        let cause = changes.first.map { core.cause(of: $0) } ?? .unknown
        let delivered = counted == nil ? changes.map { core.keyspaceChange($0) } : []
        for record in changes { counted?.entryCount += LocalWatch.difference(by: record) }
        enqueue(.commit(core.revision(revision), delivered, cause: cause), in: core)
    }

    /// How many entries a version makes more; it still has the one that it supersedes.
    private static func difference(by record: Record) -> Int {
        let wasThere = record.older.map { !$0.isDeleted } ?? false
        return (record.isDeleted ? 0 : 1) - (wasThere ? 1 : 0)
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
