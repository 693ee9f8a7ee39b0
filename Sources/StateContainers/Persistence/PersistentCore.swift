import CLinux
import StateEngine

/// The value of one key of a keyspace, for all containers of it in this process.
///
/// The published value is the one in storage. A submitted change without an answer is the base of
/// the next one, but invisible.
///
/// ```
/// turn        the right to compute on the newest value; held for the body and the submission, and
///             if commits are ordered elsewhere until the answer
/// published   what all readers see; its lock is taken by the holder of the turn, and for events of
///             the keyspace
/// head        the bookkeeping; its lock is taken under that of `published`, or alone
/// ```
@usableFromInline
package final class PersistentCore<Value: Codable & Sendable>: StateCore<Value>, HubMember,
    @unchecked Sendable
{
    /// A change on its way to storage.
    struct Pending: Sendable {
        let answer: Answer
        let value: Value
        /// Nil for a delete.
        let bytes: [UInt8]?
        /// Why the writer made the change.
        let reason: String
        let depth: Int64
        /// Whether its writer does not wait: the change is published before storage has it.
        let isEarly: Bool
        /// The revision number of its commit, if commits are ordered in this process.
        var number: Int64?
    }

    /// What storage holds.
    struct Stored {
        var value: Value
        /// Its revision.
        var revision: Revision
        /// The revision that a condition names; 0 if there is no entry.
        var entryRevision: Int64 = 0
        var origin = Origin.defaulted
        /// Why it cannot be read; `value` is then the last readable one.
        var unreadable: StateError?
    }

    struct Head {
        var stored: Stored
        var pending: [Pending] = []
        /// The newest commit that was published before storage had it; 0 after a revert.
        var early: Int64 = 0
        var isLoaded = false
        var awaySince: ContinuousClock.Instant?
    }

    let hub: KeyspaceHub
    let codec: StateCodec<Value>
    let defaultValue: Value
    let turn = Turn()
    let head: StateLock<Head>
    /// Answered once there is a first value, or an error.
    let loading = Answer()
    /// The present failure that no caller could get.
    package let failure: MonitoredState<StateError?>
    var isFollowed = false

    init(_ defaultValue: Value, key: Key, in hub: KeyspaceHub, codec: StateCodec<Value>) {
        self.hub = hub
        self.codec = codec.adapted(to: hub.keyspace)
        self.defaultValue = defaultValue
        let start = Revision(epoch: hub.keyspace.epoch, number: 0)
        head = StateLock(Head(stored: Stored(value: defaultValue, revision: start)))
        failure = MonitoredState(nil, key: key)
        super.init(defaultValue, key: key, revision: start, isDirect: false, isTracked: true)
    }

    /// The core of a key, shared by all containers of it; its value may not have arrived yet.
    static func following(
        _ key: Key,
        in keyspace: any Keyspace,
        _ defaultValue: Value,
        _ codec: StateCodec<Value>
    ) throws(StateError) -> PersistentCore {
        try TypeFacts.checkRules(of: Value.self, for: key)
        try checkDefault(defaultValue, of: key)
        let hub = KeyspaceHub.of(keyspace)
        let core = try hub.member(on: key) {
            PersistentCore(defaultValue, key: key, in: hub, codec: codec)
        }
        // Its value is that of the containers which are there: it is not decrypted once more.
        guard core.codec.seal == codec.seal else {
            throw StateError(
                .undecodable,
                "key '\(key)' has a container in this process with another secret key, or without "
                    + "one; make all of its containers with the same"
            )
        }
        return core
    }

    /// - Throws: ``StateError/Code/invalidRequest`` for a default that a nil would become.
    private static func checkDefault(_ defaultValue: Value, of key: Key) throws(StateError) {
        let optional = Value.self as? any AbsentValue.Type
        guard let optional, !optional.isAbsent(defaultValue) else { return }
        throw StateError(
            .invalidRequest,
            "key '\(key)': the default of an Optional must be nil, because a nil removes the entry, "
                + "and without an entry the value is the default; use scope(or:) for another value"
        )
    }

    /// The core of a key of a storage; if that cannot be opened, one that refuses changes.
    static func loaded(
        _ key: Key,
        in storage: StateStorage,
        _ scope: StateScope?,
        _ defaultValue: Value,
        _ codec: StateCodec<Value>
    ) -> PersistentCore {
        // The first use may be in the body of a transaction, which loading is no part of.
        let body = clinux_body()
        clinux_set_body(nil)
        defer { clinux_set_body(body) }
        do throws(StateError) {
            let keyspace = try storage.keyspace(in: scope)
            let core = try following(key, in: keyspace, defaultValue, codec)
            (keyspace as? any WaitableKeyspace)?.checkMayWait()
            if case .failure(let error) = core.loading.wait() { core.begin(away: error) }
            return core
        } catch {
            let hub = KeyspaceHub.of(RefusingKeyspace(error.naming(key)))
            let core = PersistentCore(defaultValue, key: key, in: hub, codec: codec)
            core.begin(away: error.naming(key))
            return core
        }
    }

    /// Begins with the default value, because there is no stored one yet.
    private func begin(away error: StateError) {
        head.withLock { $0.awaySince = .now }
        note(error)
    }

    /// - Throws: Why there is no first value, or, unless `acceptsUnreadable`, why it cannot be
    ///   read.
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

    /// Records an error that cannot be thrown to a caller.
    func note(_ error: StateError) {
        StateTrace.note(.failure(key, error.code))
        failure.modify(error)
    }

    override func transactionEntry(
        check: Check?,
        _ expiry: Expiry
    ) -> StateTransaction.Entry<Value> {
        StateTransaction.StoredEntry(self, base, check: check, expiry)
    }

    /// Releases what may own objects on the notifier: this thread delivers a commit, for which the
    /// keyspace waits, and a `deinit` may change another of its keys.
    func releaseLater(_ values: some Sendable) {
        guard ownsObjects else { return }
        Notifier.shared.run(LateWork(key, "a release") { withExtendedLifetime(values) {} })
    }

    // MARK: Events of the keyspace

    func publication(
        of change: KeyspaceChange,
        _ revision: Revision,
        _ cause: Cause?
    ) -> any Publication {
        let own = head.withLock { head in
            head.pending.first { cause != nil && $0.isMade(by: change, at: revision) }
        }
        var fullCause = cause
        if let own { fullCause?.reason = own.reason }
        return CorePublication(
            core: self,
            change: change,
            revision: revision,
            cause: fullCause,
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
        // An unreadable value remains a failure.
        guard wasAway else { return }
        failure.modify(head.withLock { $0.stored.unreadable })
    }
}

extension PersistentCore.Pending {
    /// Whether a commit contains this change.
    ///
    /// Its number decides; if commits are ordered elsewhere, its bytes do, since this process then
    /// has no other change on its way.
    func isMade(by change: KeyspaceChange, at revision: Revision) -> Bool {
        number.map { $0 == revision.number } ?? (bytes == change.value)
    }
}
