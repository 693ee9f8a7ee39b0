public import StateModel
import StatePlatform
import StateWire

/// The daemon's keyspace: one connection, shared by all threads of the process.
///
/// Requests of all callers share the connection and are answered in order. A lost connection is
/// restored, with attempts forever after pauses from 10 ms to 1 s; watches then resume, if
/// necessary with the full state. The keyspace lives as long as it, a watch of it or a request
/// without an answer is retained; ``close()`` ends it at once.
///
/// Events and answers come from its own thread: completions and receivers must not wait for the
/// keyspace.
///
/// ```swift
/// let keyspace = try RemoteKeyspace.shared()
/// // Returns when the change is on the daemon's stable storage.
/// try keyspace.apply([.set("audio/volume", Array("0.7".utf8))])
/// ```
public final class RemoteKeyspace: WaitableKeyspace {
    /// What happens to a request that cannot be sent because the daemon does not answer.
    public enum WhileAway: Hashable, Sendable {
        /// It fails at once with ``StateError/Code/unreachable``.
        case refuse
        /// It waits for the daemon for at most this time, then fails with
        /// ``StateError/Code/unreachable``.
        case wait(upTo: Duration)
    }

    /// The path of the daemon's socket when this object was made; a default location is looked up
    /// again at each attempt until one succeeds.
    public let socketPath: String
    /// How long an answer may take after a request is sent.
    public let timeout: Duration
    /// What happens to a request while the daemon is unavailable.
    public let whileAway: WhileAway
    let link: RemoteLink

    /// Starts connecting; returns before the connection exists.
    ///
    /// - Parameters:
    ///   - socket: The path of the daemon's socket; nil for the one that `statectl` uses:
    ///     `$STATED_SOCKET`, else the user's own, else the machine's if this user has no daemon.
    ///   - name: The client's name, which the daemon records with every write: at most 256 visible
    ///     ASCII characters.
    ///   - timeout: How long an answer may take.
    ///   - whileAway: What happens to a request while the daemon does not answer.
    /// - Throws: ``StateError/Code/invalidRequest`` for a path or name that is not valid;
    ///   ``StateError/Code/limit`` if the process has no file descriptor left.
    public init(
        socket: String? = nil,
        name: String = "",
        timeout: Duration = .seconds(5),
        whileAway: WhileAway = .refuse
    ) throws(StateError) {
        socketPath = try SocketLocation.process.clientChoice(option: socket).path
        guard name.utf8.count <= 256, name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw StateError(.err, "a client name must be at most 256 visible ASCII characters")
        }
        self.timeout = timeout
        self.whileAway = whileAway
        link = try RemoteLink(socket: socket, name: name, timeout: timeout)
        link.start()
    }

    deinit { link.release() }

    /// The epoch of the daemon's store, as last reported; its bits are 0 before the first
    /// connection.
    public var epoch: Epoch { link.epoch }

    /// Commits all the mutations in one commit, or none of them; see
    /// ``Keyspace/submit(_:completion:)``.
    ///
    /// The completion's error is ``StateError/Code/unreachable`` if nothing was sent;
    /// ``StateError/Code/outcomeUnknown`` if the connection was lost or the time ran out before the
    /// answer; ``StateError/Code/limit`` if too many requests already wait; else the daemon's
    /// error, and nothing has changed.
    ///
    /// - Returns: nil: the revision is known only from the answer.
    /// - Complexity: O(*n*) in the bytes of keys and values, and a round trip.
    @discardableResult
    public func submit(
        _ mutations: [Mutation],
        completion: @escaping @Sendable (Result<Int64, StateError>) -> Void
    ) -> Int64? {
        submit(mutations, durability: .synced, completion: completion)
        return nil
    }

    /// The same with options for this request.
    ///
    /// - Parameters:
    ///   - mutations: Done in order; each sees the effects of those before it.
    ///   - durability: How safe the commit must be before the answer; more than one mutation is
    ///     always synced.
    ///   - whileAway: What happens to it while the daemon does not answer; nil: as the keyspace
    ///     says.
    ///   - timeout: How long the answer may take; nil: as the keyspace says.
    ///   - completion: As in ``submit(_:completion:)``.
    package func submit(
        _ mutations: [Mutation],
        durability: Durability,
        whileAway: WhileAway? = nil,
        timeout: Duration? = nil,
        completion: @escaping @Sendable (Result<Int64, StateError>) -> Void
    ) {
        var request = RequestWriter()
        request.append(mutations, durability)
        if mutations.contains(where: \.livesAsConnection) { link.noteLifetime() }
        // With less than stable storage, the answer comes before the change is delivered.
        let changedKeys = durability < .synced ? [] : mutations.changedKeys
        call(
            request,
            isWrite: true,
            changing: changedKeys,
            whileAway: whileAway,
            timeout: timeout
        ) { reply in
            completion(
                reply.flatMap { reply in
                    reply["revision"]?.integerValue.map { .success($0) }
                        ?? .failure(Client.unexpected("a write"))
                }
            )
        }
    }

    /// Starts a watch of keys; see ``Keyspace/watch(_:)``.
    ///
    /// At most 1,000 patterns; more are refused.
    public func watch(
        _ receive: @escaping @Sendable (KeyspaceEvent) -> Void
    ) -> any KeyspaceWatch {
        RemoteWatch(link, receive)
    }

    /// Closes the keyspace: waiting requests fail, watches are notified that it is unavailable, and
    /// the connection is closed.
    ///
    /// Later requests fail with ``StateError/Code/unreachable``. Must not be called by a completion
    /// or a receiver.
    public func close() { link.close() }

    /// Ends the process if called by a completion or a receiver, which would wait for its own
    /// thread.
    package func checkMayWait() { link.checkMayWait() }

    /// Sends one request.
    ///
    /// - Parameters:
    ///   - request: One command.
    ///   - isWrite: Whether its outcome is unknown if its answer is lost.
    ///   - changedKeys: Every watch of these keys gets the change before `answer` is called.
    ///   - whileAway: What happens to it while the daemon does not answer; nil: as the keyspace
    ///     says.
    ///   - timeout: How long the answer may take; nil: as the keyspace says.
    ///   - answer: Takes the reply, or an error, which may be the daemon's.
    func call(
        _ request: RequestWriter,
        isWrite: Bool = false,
        changing changedKeys: [Key] = [],
        whileAway: WhileAway? = nil,
        timeout: Duration? = nil,
        _ answer: @escaping @Sendable (Result<Reply, StateError>) -> Void
    ) {
        var patience: Duration?
        if case .wait(let upTo) = whileAway ?? self.whileAway { patience = upTo }
        link.submit(
            RemoteCall(
                request: request.bytes,
                isWrite: isWrite,
                changedKeys: changedKeys,
                timeout: timeout ?? self.timeout,
                patience: patience
            ) { reply in
                if case .success(.error(let error)) = reply {
                    answer(.failure(error))
                } else {
                    answer(reply)
                }
            }
        )
    }
}

extension RequestWriter {
    /// Appends the command that commits the mutations.
    mutating func append(_ mutations: [Mutation], _ durability: Durability) {
        if mutations.count == 1, case .set(let key, let value, _, _) = mutations[0] {
            begin(argumentCount: mutations[0].argumentCount + (durability == .synced ? 0 : 2))
            appendStep("STATE.SET", key, value, mutations[0])
            if durability != .synced {
                append(argument: "DURABILITY")
                append(argument: durability.description)
            }
            return
        }
        begin(argumentCount: 2 + mutations.reduce(0) { $0 + $1.argumentCount })
        append(argument: "STATE.APPLY")
        append(argument: String(mutations.count))
        for mutation in mutations { append(mutation) }
    }

    private mutating func append(_ mutation: Mutation) {
        switch mutation {
        case .set(let key, let value, _, _): appendStep("SET", key, value, mutation)
        case .delete(let key, _): appendStep("DELETE", key, nil, mutation)
        case .check(let key, let revision):
            append(argument: "CHECK")
            append(argument: key.bytes)
            append(argument: String(revision))
        }
    }

    private mutating func appendStep(
        _ word: String,
        _ key: Key,
        _ value: [UInt8]?,
        _ mutation: Mutation
    ) {
        append(argument: word)
        append(argument: key.bytes)
        if let value { append(argument: value) }
        for word in mutation.options { append(argument: word) }
    }
}

extension [Mutation] {
    /// The keys that certainly change if the commit succeeds: set last, or deleted on condition
    /// that they exist.
    fileprivate var changedKeys: [Key] {
        if count == 1, case .set(let key, _, _, _) = self[0] { return [key] }
        var keys: Set<Key> = []
        for mutation in self {
            switch mutation {
            case .set(let key, _, _, _): keys.insert(key)
            case .delete(let key, let revision?) where revision > 0: keys.insert(key)
            case .delete(let key, _): keys.remove(key)
            case .check: break
            }
        }
        return [Key](keys)
    }
}

extension Mutation {
    /// How many arguments it has in STATE.APPLY.
    fileprivate var argumentCount: Int {
        switch self {
        case .set: 3 + options.count
        case .delete: 2 + options.count
        case .check: 3
        }
    }

    /// Its options as words of the wire.
    fileprivate var options: [String] {
        switch self {
        case .set(_, _, let revision, let expiry): Mutation.condition(revision) + expiry.words
        case .delete(_, let revision): Mutation.condition(revision)
        case .check: []
        }
    }

    private static func condition(_ revision: Int64?) -> [String] {
        revision.map { ["IFREV", String($0)] } ?? []
    }

    /// Whether the daemon deletes its key when the connection ends.
    fileprivate var livesAsConnection: Bool {
        if case .set(_, _, _, .with(.connection)) = self { true } else { false }
    }
}

extension Expiry {
    /// The option as words of the wire.
    fileprivate var words: [String] {
        switch self {
        case .ruled: []
        case .kept: ["EXPIRES", "keep"]
        case .never: ["EXPIRES", "never"]
        case .after(let milliseconds): ["EXPIRES", String(max(1, milliseconds))]
        // The wire has no wall times.
        case .at(let time): ["EXPIRES", String(max(1, time - SystemClock.wallMilliseconds()))]
        case .with(let lifetime): ["LIFETIME", lifetime.rawValue]
        }
    }
}
