import CLinux
import StateEngine

/// The value of one key of a keyspace, for all containers on it in this process.
///
/// What is published is what storage holds; what was submitted and is not answered yet is computed on, and seen by nobody else.
///
/// ```
/// turn        who computes on the newest value; held for the body and the submission, and where commits are ordered
///             elsewhere until the answer
/// published   what everybody reads; its lock is taken by who holds the turn, and by what the keyspace tells
/// head        what follows; its lock is taken under that of `published`, or alone
/// ```
@usableFromInline
package final class PersistentCore<Value: Codable & Sendable>: StateCore<Value>, HubMember,
    @unchecked Sendable
{
    /// A change on its way to storage.
    struct Pending {
        let answer: Answer
        let value: Value
        /// Nil for a delete.
        let bytes: [UInt8]?
        /// What moved the writer.
        let reason: String
        let depth: Int64
        /// Whether its writer does not wait: it is published before storage has it.
        let isEarly: Bool
        /// Its commit, where commits are ordered in this process.
        var number: Int64?
    }

    /// What storage holds.
    struct Stored {
        var value: Value
        /// The commit that made it so.
        var revision: Revision
        /// What a condition names; 0 where there is no entry.
        var entryRevision: Int64 = 0
        var origin = Origin.defaulted
        /// Why it cannot be read; `value` is the last one that could, then.
        var unreadable: StateError?
    }

    struct Head {
        var stored: Stored
        var pending: [Pending] = []
        /// The newest commit that was published before storage had it; 0 where that was taken back.
        var early: Int64 = 0
        var isLoaded = false
        var awaySince: ContinuousClock.Instant?
    }

    let hub: KeyspaceHub
    let codec: StateCodec<Value>
    let defaultValue: Value
    let turn = Turn()
    let head: StateLock<Head>
    /// Answered once there is a first value, or an error instead.
    let loading = Answer()
    /// What went wrong without a caller.
    package let failure: MonitoredState<StateError?, Never>
    var isFollowed = false

    init(_ defaultValue: Value, key: Key, in hub: KeyspaceHub, codec: StateCodec<Value>) {
        self.hub = hub
        self.codec = codec.checked
        self.defaultValue = defaultValue
        let start = Revision(epoch: hub.keyspace.epoch, number: 0)
        head = StateLock(Head(stored: Stored(value: defaultValue, revision: start)))
        failure = MonitoredState(nil, key: key)
        super.init(defaultValue, key: key, revision: start, isDirect: false)
    }

    /// The core of a key, shared by all containers on it; its value may be on its way.
    static func following(
        _ key: Key,
        in keyspace: any Keyspace,
        _ defaultValue: Value,
        _ codec: StateCodec<Value>
    ) throws(StateError) -> PersistentCore {
        let hub = KeyspaceHub.of(keyspace)
        return try hub.member(on: key) {
            PersistentCore(defaultValue, key: key, in: hub, codec: codec)
        }
    }

    /// - Throws: Why there is no first value, or unless `unreadable` is no error, why it cannot be read.
    func checkLoaded(acceptsUnreadable: Bool) throws(StateError) {
        if case .failure(let error)? = loading.result { throw error }
        if !acceptsUnreadable, let error = head.withLock({ $0.stored.unreadable }) { throw error }
    }

    deinit { if isFollowed { hub.forget(key) } }

    var valueType: Any.Type { Value.self }

    package var status: StateStatus {
        head.withLock { head in
            if let error = head.stored.unreadable { return .undecodable(error) }
            return head.awaySince.map { .away(since: $0) } ?? .current
        }
    }

    package var origin: Origin { head.withLock { $0.stored.origin } }

    /// Takes an error that no caller can be given.
    func note(_ error: StateError) {
        StateTrace.note(.failure(key, error.code))
        failure.modify(error)
    }

    func deliverLater() { for queue in published.withLock({ $0.queues }) { queue.drainLater() } }

    override func transactionEntry(check: Check?) -> StateTransaction.Entry<Value> {
        checkBody()
        return StateTransaction.StoredEntry(self, base, check: check)
    }

    // MARK: What the keyspace tells

    func publication(
        of change: KeyspaceChange,
        _ revision: Revision,
        _ cause: Cause?
    ) -> any Publication {
        let own = head.withLock { head in
            head.pending.first { cause != nil && $0.isMade(by: change, at: revision) }
        }
        var told = cause
        if let own { told?.reason = own.reason }
        return CorePublication(
            core: self,
            change: change,
            revision: revision,
            cause: told,
            depth: own?.depth ?? 0,
            isAwaited: own.map { !$0.isEarly } ?? false,
            decoded: own.map { .success(($0.value, nil)) } ?? decode(change.value)
        )
    }

    func decode(_ bytes: [UInt8]?) -> Result<StateCodec<Value>.Stored, StateError> {
        guard let bytes else { return .success((defaultValue, nil)) }
        do throws(StateError) {
            return .success(try codec.decodeStored(bytes))
        } catch {
            return .failure(error.naming(key))
        }
    }

    func fail(_ error: StateError) {
        let isNew = head.withLock { head in
            guard head.isLoaded, head.awaySince == nil else { return false }
            head.awaySince = .now
            return true
        }
        if isNew { note(error) }
        loading.putFirst(.failure(error))
    }

    func resume() {
        let wasAway = head.withLock { head in
            guard head.isLoaded, head.awaySince != nil else { return false }
            head.awaySince = nil
            return true
        }
        // That the value cannot be read stays a failure.
        guard wasAway else { return }
        failure.modify(head.withLock { $0.stored.unreadable })
    }
}

extension PersistentCore.Pending {
    /// Whether it is what a commit tells: its number says so, or where commits are ordered elsewhere its bytes do (for there nothing
    /// else of this process is under way).
    func isMade(by change: KeyspaceChange, at revision: Revision) -> Bool {
        number.map { $0 == revision.number } ?? (bytes == change.value)
    }
}
