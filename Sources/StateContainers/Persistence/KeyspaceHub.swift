import StateEngine

/// Follows a keyspace for the containers in it.
///
/// They share one watch, so that each commit is published in one piece.
///
/// There is one for each keyspace, as long as a container is in it.
final class KeyspaceHub: Sendable {
    let keyspace: any Keyspace
    /// The same, if it knows which threads it waits for.
    let waitable: (any WaitableKeyspace)?
    /// Set by `init`, and nil only in it.
    private let watch = StateLock<(any KeyspaceWatch)?>(nil)
    private let members = StateLock<Members>(Members())

    private struct Members {
        var byKey: [Key: WeakMember] = [:]
        /// Why the keyspace is unavailable; nil if it is available.
        var absence: StateError?
    }

    private struct WeakMember: Sendable {
        weak var member: (any HubMember)?
    }

    private struct WeakHub: Sendable {
        weak var hub: KeyspaceHub?
    }

    private static let hubs = StateLock<[ObjectIdentifier: WeakHub]>([:])

    /// The hub of a keyspace, which does not keep it open: containers do.
    static func of(_ keyspace: any Keyspace) -> KeyspaceHub {
        let keyspace: any Keyspace = (keyspace as? LocalKeyspace)?.unowned ?? keyspace
        return hubs.withLock { hubs in
            if let hub = hubs[ObjectIdentifier(keyspace)]?.hub { return hub }
            let hub = KeyspaceHub(keyspace)
            hubs[ObjectIdentifier(keyspace)] = WeakHub(hub: hub)
            return hub
        }
    }

    private init(_ keyspace: any Keyspace) {
        self.keyspace = keyspace
        waitable = keyspace as? any WaitableKeyspace
        let begun = keyspace.watch { [weak self] event in self?.receive(event) }
        watch.withLock { $0 = begun }
    }

    deinit {
        watch.withLock { $0 }?.cancel()
        // Another hub may have replaced this one. Handed out, so that its last reference is not
        // released under the lock.
        _ = KeyspaceHub.hubs.withLock { hubs in
            let present = hubs[ObjectIdentifier(keyspace)]?.hub
            if present == nil { hubs[ObjectIdentifier(keyspace)] = nil }
            return present
        }
    }

    /// Submits mutations; see ``WaitableKeyspace``.
    func submit(
        _ mutations: [Mutation],
        commitsOnCaller: Bool,
        completion: @escaping @Sendable (Result<Int64, StateError>) -> Void
    ) -> Int64? {
        guard let waitable else { return keyspace.submit(mutations, completion: completion) }
        return waitable.submit(mutations, commitsOnCaller: commitsOnCaller, completion: completion)
    }

    // MARK: Members

    /// The member of a key; made and followed if there is none.
    ///
    /// Its value may not have arrived yet.
    ///
    /// - Throws: ``StateError/Code/typeMismatch``, naming key and types, if the key has a member of
    ///   another type.
    func member<Member: HubMember>(
        on key: Key,
        _ make: () -> Member
    ) throws(StateError) -> Member {
        if let member = self.member(key) as? Member { return member }
        let made = make()
        let (present, absence) = members.withLock { members in
            if let member = members.byKey[key]?.member {
                return (member as any HubMember, members.absence)
            }
            members.byKey[key] = WeakMember(member: made)
            return (made, members.absence)
        }
        guard let member = present as? Member else {
            throw StateError(
                .typeMismatch,
                "key '\(key)' has type \(present.valueType) in this process, not \(made.valueType)"
            )
        }
        if member === made {
            member.isFollowed = true
            if let absence { member.fail(absence) }
            watch.withLock { $0 }?.include([Pattern(key)])
        }
        return member
    }

    /// Forgets a followed member that is gone; another may have its key by now.
    func forget(_ key: Key) {
        // Handed out, so that its last reference is not released under the lock.
        _ = members.withLock { members -> (any HubMember)? in
            let present = members.byKey[key]?.member
            if present == nil { members.byKey[key] = nil }
            return present
        }
        watch.withLock { $0 }?.exclude([Pattern(key)])
    }

    private func member(_ key: Key) -> (any HubMember)? {
        members.withLock { $0.byKey[key]?.member }
    }

    // MARK: Events

    private func receive(_ event: KeyspaceEvent) {
        switch event {
        case .commit(let revision, let changes, let cause):
            publish(revision, changes, cause)
        case .state(let revision, let patterns, let changes):
            members.withLock { $0.absence = nil }
            publish(revision, KeyspaceHub.whole(patterns, changes), nil)
        case .away(let error):
            for member in note(absence: error) { member.fail(error) }
        case .resumed:
            for member in note(absence: nil) { member.resume() }
        case .refused(let patterns, let error):
            for pattern in patterns {
                guard let key = try? Key(bytes: pattern.literal) else { continue }
                member(key)?.fail(error)
            }
        }
    }

    /// - Returns: The members to notify.
    private func note(absence: StateError?) -> [any HubMember] {
        members.withLock { members in
            members.absence = absence
            return members.byKey.values.compactMap(\.member)
        }
    }

    /// The changes, and the keys of `patterns` that are absent.
    private static func whole(
        _ patterns: [Pattern],
        _ changes: [KeyspaceChange]
    ) -> [KeyspaceChange] {
        let present = Set(changes.map(\.key))
        let absent = Set(patterns.compactMap { try? Key(bytes: $0.literal) }).subtracting(present)
        return changes + absent.map { KeyspaceChange(key: $0, value: nil, revision: 0) }
    }

    /// Publishes a commit, or a state (no cause), for all members at one moment, then delivers it.
    private func publish(_ revision: Revision, _ changes: [KeyspaceChange], _ cause: Cause?) {
        var publications: [any Publication] = []
        for change in changes {
            guard let member = member(change.key) else { continue }
            publications.append(member.publication(of: change, revision, cause))
        }
        publications.sort { $0.key < $1.key }
        // The locks of this many are held at once; a commit of another process may have changed
        // more.
        for start in stride(from: 0, to: publications.count, by: StateTransaction.limit) {
            publishAtOnce(publications[start...].prefix(StateTransaction.limit))
        }
        for publication in publications { publication.deliver() }
    }
}

/// Publishes all while the locks of all are held, taken in the order of the keys.
func publishAtOnce(_ publications: ArraySlice<any Publication>) {
    guard let first = publications.first else { return }
    first.publish { publishAtOnce(publications.dropFirst()) }
}

/// A container's core, as the hub sees it.
protocol HubMember: AnyObject, Sendable {
    var key: Key { get }
    var valueType: Any.Type { get }
    /// Set only by the hub, before anybody else has the member.
    var isFollowed: Bool { get set }

    /// Decodes a change; publishes nothing yet.
    func publication(
        of change: KeyspaceChange,
        _ revision: Revision,
        _ cause: Cause?
    ) -> any Publication

    /// Reports that the keyspace, or this key, is unavailable.
    func fail(_ error: StateError)

    /// Reports that the keyspace is available again, and the last value of this key is current.
    func resume()
}

/// A change ready to be published with the others of its commit.
protocol Publication {
    var key: Key { get }

    /// Publishes the change, and calls `others` before it releases the lock.
    func publish(_ others: () -> Void)

    /// Delivers the change, with no lock held.
    func deliver()
}
