import Glibc
public import StateModel
import StateWire

/// The daemon's keyspace: one connection, shared by all threads of the process.
///
/// Requests of many callers share the connection and are answered in their order; a lost connection is made again, for ever,
/// with pauses from 10 ms to 1 s, and what is watched is followed again from a full state. It lives as long as somebody
/// holds it, or a watch of it, or waits for an answer; ``close()`` ends it at once.
///
/// What it tells and answers comes from a thread of its own: completions and receivers may not wait for the keyspace.
///
/// ```swift
/// let keyspace = try RemoteKeyspace.shared()
/// try keyspace.apply([.set("audio/volume", Array("0.7".utf8))])   // on the daemon's stable storage
/// ```
public final class RemoteKeyspace: WaitableKeyspace {
    /// What becomes of a request that cannot be sent because the daemon does not answer.
    public enum WhileAway: Hashable, Sendable {
        /// It fails at once, with ``StateError/Code/unreachable``.
        case refuse
        /// It waits for the daemon, at most so long, and fails in the same way.
        case wait(upTo: Duration)
    }

    /// The socket that was the daemon's when this was made; one that was not named is looked for at each attempt.
    public let socketPath: String
    /// How long an answer may take once a request is sent.
    public let timeout: Duration
    /// What becomes of a request while the daemon is away.
    public let whileAway: WhileAway
    let link: RemoteLink

    /// Begins to connect; returns before it has.
    ///
    /// - Parameters:
    ///   - socket: The path of the daemon's socket; nil for the one that `statectl` would take: `$STATED_SOCKET`, else the user's
    ///     own, else the machine's.
    ///   - name: What the daemon notes as this client's name with every write: at most 256 visible ASCII characters.
    ///   - timeout: How long an answer may take.
    ///   - whileAway: What becomes of a request while the daemon does not answer.
    /// - Throws: ``StateError/Code/err`` for a path that no socket or a name that no client can have, and
    ///   ``StateError/Code/limit`` where the process has no descriptor left.
    public init(
        socket: String? = nil,
        name: String = "",
        timeout: Duration = .seconds(5),
        whileAway: WhileAway = .refuse
    ) throws(StateError) {
        socketPath = try Client.path(of: socket)
        guard name.utf8.count <= 256, name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw StateError(.err, "the name of a client is at most 256 visible ASCII characters")
        }
        self.timeout = timeout
        self.whileAway = whileAway
        link = try RemoteLink(socket: socket, name: name, timeout: timeout)
        link.start()
    }

    deinit { link.release() }

    /// The identity of the daemon's store, as it was last heard; its bits are 0 before the first connection.
    public var epoch: Epoch { link.epoch }

    /// Makes all the mutations one commit, or none of them; see ``Keyspace/submit(_:completion:)``.
    ///
    /// The completion's error is ``StateError/Code/unreachable`` where nothing was sent, ``StateError/Code/outcomeUnknown`` where
    /// the connection was lost or the time has passed before the answer, ``StateError/Code/limit`` where too many requests wait
    /// already, else the daemon's, nothing having changed.
    ///
    /// - Returns: nil: only the answer tells.
    /// - Complexity: O(*n*) in the bytes of keys and values, and a round trip.
    @discardableResult
    public func submit(
        _ mutations: [Mutation],
        completion: @escaping @Sendable (Result<Int64, StateError>) -> Void
    ) -> Int64? {
        submit(mutations, durability: .synced, completion: completion)
        return nil
    }

    /// The same, with choices for this request alone.
    ///
    /// - Parameters:
    ///   - mutations: Done in their order; each sees what those before it did.
    ///   - durability: How safe the commit has to be before the answer; more than one mutation is always synced.
    ///   - whileAway: What becomes of it while the daemon does not answer; nil: as of the keyspace.
    ///   - timeout: How long the answer may take; nil: as of the keyspace.
    ///   - completion: As of ``submit(_:completion:)``.
    package func submit(
        _ mutations: [Mutation],
        durability: Durability,
        whileAway: WhileAway? = nil,
        timeout: Duration? = nil,
        completion: @escaping @Sendable (Result<Int64, StateError>) -> Void
    ) {
        var request = RequestWriter()
        request.append(mutations, durability)
        // Who asks for less than stable storage is answered before anybody is told.
        let changedKeys = durability == .memory ? [] : mutations.changedKeys
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

    /// Begins to follow keys; see ``Keyspace/watch(_:)``.
    ///
    /// Up to 1,000 patterns; more of them are refused.
    public func watch(
        _ receive: @escaping @Sendable (KeyspaceEvent) -> Void
    ) -> any KeyspaceWatch {
        RemoteWatch(link, receive)
    }

    /// Ends it: requests that wait fail, watches are told that it is away, and the connection is closed.
    ///
    /// What is asked for afterwards fails with ``StateError/Code/unreachable``. It must not be called by a completion or a
    /// receiver.
    public func close() { link.close() }

    /// Ends the process where a completion or a receiver is about to wait for the thread that it holds.
    package func checkMayWait() { link.checkMayWait() }

    /// Sends one request.
    ///
    /// - Parameters:
    ///   - request: One command.
    ///   - isWrite: Whether its outcome is unknown where its answer is lost.
    ///   - changedKeys: Every watch of these is told of the change before `answer` is called.
    ///   - whileAway: What becomes of it while the daemon does not answer; nil: as of the keyspace.
    ///   - timeout: How long the answer may take; nil: as of the keyspace.
    ///   - answer: Takes the reply, or the daemon's error among others.
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
    /// Adds the command that makes the mutations one commit.
    mutating func append(_ mutations: [Mutation], _ durability: Durability) {
        if mutations.count == 1, case .set(let key, let value, let revision) = mutations[0] {
            let options = (revision == nil ? 0 : 2) + (durability == .synced ? 0 : 2)
            begin(argumentCount: 3 + options)
            appendStep("STATE.SET", key, value, ifRevision: revision)
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
        case .set(let key, let value, let revision):
            appendStep("SET", key, value, ifRevision: revision)
        case .delete(let key, let revision):
            appendStep("DELETE", key, nil, ifRevision: revision)
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
        ifRevision revision: Int64?
    ) {
        append(argument: word)
        append(argument: key.bytes)
        if let value { append(argument: value) }
        guard let revision else { return }
        append(argument: "IFREV")
        append(argument: String(revision))
    }
}

extension [Mutation] {
    /// The keys that are surely changed where the commit succeeds: set at the end, or deleted where they must be there.
    fileprivate var changedKeys: [Key] {
        if count == 1, case .set(let key, _, _) = self[0] { return [key] }
        var keys: Set<Key> = []
        for mutation in self {
            switch mutation {
            case .set(let key, _, _): keys.insert(key)
            case .delete(let key, let revision?) where revision > 0: keys.insert(key)
            case .delete(let key, _): keys.remove(key)
            case .check: break
            }
        }
        return [Key](keys)
    }
}

extension Mutation {
    /// How many arguments it is in STATE.APPLY.
    fileprivate var argumentCount: Int {
        switch self {
        case .set(_, _, let revision): revision == nil ? 3 : 5
        case .delete(_, let revision): revision == nil ? 2 : 4
        case .check: 3
        }
    }
}
