import StateModel
import StateSystem
import StateWire

/// The changes of the daemon's clients on their way to etcd: one batch at a time.
///
/// Each batch compares a key that only this connection has set. If an answer is lost, the next
/// connection sets that key anew: what has not come before it in the stream cannot come later.
struct MirrorWriter {
    private let etcd: EtcdClient
    private let node: String
    private let bounds: MirrorLink.Bounds
    /// The value of the session's key.
    private let session: [UInt8]
    /// Whether etcd has no room for a session.
    private(set) var isFull = false
    /// Whether the session has come in the stream.
    private(set) var isReady = false
    private var call: HTTP2Connection.Call?
    /// The leases that the batch needs, and the transaction that waits for them.
    private var grants: [HTTP2Connection.Call] = []
    private var prepared: [UInt8] = []
    /// Times whose leases etcd has; so many at most.
    private var granted: Set<Int64> = []
    private static let grantedCount = 10_000
    /// What is sent next.
    private var waiting: Batch?
    private var number: Int64 = 0
    private var sentAt: Int64 = 0
    /// Why etcd has refused the batch, which it may have made.
    private var refused: (code: String, reason: String)?
    /// Whether another link has begun a session.
    private var isSuperseded = false

    /// How long etcd may take to decide, in milliseconds.
    private static let patience: Int64 = 5_000

    /// Begins a session; it is there once its key comes in the stream.
    ///
    /// - Throws: ``LinkFailure/cluster(_:)``.
    init(
        _ etcd: EtcdClient,
        _ filter: MirrorFilter,
        _ node: String,
        _ bounds: MirrorLink.Bounds
    ) throws(LinkFailure) {
        (self.etcd, self.node, self.bounds) = (etcd, node, bounds)
        session = Array(String(UInt64.random(in: .min ... .max), radix: 36).utf8)
        call = try etcd.begin(.put, EtcdMessages.put(filter.sessionKey(of: node), session))
        sentAt = SystemClock.monotonicMilliseconds()
    }

    /// The event of the session's key has come.
    ///
    /// - Returns: The message for the daemon; nil if it is the event of an earlier one.
    /// - Throws: ``LinkFailure/cluster(_:)`` if somebody else has begun one.
    mutating func note(session value: [UInt8]) throws(LinkFailure) -> [String]? {
        guard value == session else {
            guard !isReady else { throw .cluster(MirrorWriter.otherLink(node)) }
            return nil
        }
        isReady = true
        return ["STATE.MIRROR", "READY", "\(bounds.operationCount)", "\(bounds.byteCount)"]
    }

    private static func otherLink(_ node: String) -> String {
        "another link writes as node \(node): each machine needs a name of its own"
    }

    /// Takes a batch of the daemon.
    ///
    /// - Throws: ``LinkFailure/daemon(_:code:)`` if the one before has not ended.
    mutating func add(_ batch: Batch) throws(LinkFailure) {
        guard waiting == nil, isReady else {
            throw .daemon("the daemon has sent a batch before the end of another", code: nil)
        }
        waiting = batch
    }

    /// Sends the batch, once the answer to the one before has come: its changes may come earlier.
    ///
    /// - Returns: A message for the daemon; nil if it needs none.
    /// - Throws: ``LinkFailure``.
    mutating func send(_ filter: MirrorFilter) throws(LinkFailure) -> [String]? {
        guard !isSuperseded else { throw .cluster(MirrorWriter.otherLink(node)) }
        guard call == nil, grants.isEmpty, let batch = waiting else { return nil }
        waiting = nil
        number = batch.number
        var transaction = EtcdTransaction()
        transaction.require(filter.sessionKey(of: node), has: session)
        let writers = Array("\(batch.number)\u{1E}".utf8) + batch.writers
        transaction.put(filter.writersKey(of: node), writers)
        for write in batch.writes {
            guard let inner = EtcdTransaction(write, at: batch.position) else {
                throw .daemon("the daemon has sent a batch that cannot be read", code: nil)
            }
            if let key = filter.firstRefused(clearedBy: write) {
                return [
                    "STATE.MIRROR", "FAILED", "\(number)", "REJECTED", MirrorWriter.unseen(key),
                ]
            }
            transaction.add(inner)
        }
        prepared = transaction.bytes
        sentAt = SystemClock.monotonicMilliseconds()
        let now = SystemClock.wallMilliseconds()
        if granted.count > MirrorWriter.grantedCount { granted = [] }
        for time in transaction.deadlines where granted.insert(time).inserted {
            grants.append(try etcd.begin(.grant, MirrorLease.grant(time, at: now)))
        }
        if grants.isEmpty { try sendPrepared() }
        return nil
    }

    private mutating func sendPrepared() throws(LinkFailure) {
        call = try etcd.begin(.transaction, prepared)
        prepared = []
    }

    /// Sends the transaction once etcd has all its leases.
    ///
    /// - Returns: A message for the daemon, if etcd refuses one.
    private mutating func takeGrants() throws(LinkFailure) -> [String]? {
        let statuses = grants.compactMap(\.status)
        guard statuses.count == grants.count else {
            try requirePatience()
            return nil
        }
        grants = []
        guard let failed = statuses.first(where: { !MirrorLease.isThere($0) }) else {
            try sendPrepared()
            return nil
        }
        granted = []
        guard let code = EtcdClient.refusal(failed) else {
            throw .cluster("\(etcd.endpoint): \(failed.message)")
        }
        return ["STATE.MIRROR", "FAILED", "\(number)", code, "etcd: \(failed.message)"]
    }

    private func requirePatience() throws(LinkFailure) {
        guard SystemClock.monotonicMilliseconds() - sentAt < MirrorWriter.patience else {
            throw .cluster("\(etcd.endpoint) does not answer")
        }
    }

    private static func unseen(_ key: [UInt8]) -> String {
        "etcd has key \(key.withUnsafeBytes { StateError.quoted($0) }) there, which cannot be here: "
            + "delete it with etcdctl, or delete the others one by one"
    }

    /// Looks whether the batch is decided.
    ///
    /// What is in it comes in the stream; here only a refusal matters.
    ///
    /// - Returns: A message for the daemon; nil if it needs none.
    /// - Throws: ``LinkFailure/cluster(_:)`` if the outcome is unknown.
    mutating func take(_ filter: MirrorFilter) throws(LinkFailure) -> [String]? {
        guard grants.isEmpty else { return try takeGrants() }
        guard let call else { return nil }
        guard let status = call.status else {
            try requirePatience()
            return nil
        }
        if let code = EtcdClient.refusal(status) {
            let reason = "etcd: \(status.message)"
            // The transaction with which etcd becomes full is made, and gets that answer all the same:
            // https://github.com/etcd-io/etcd/blob/v3.4.23/etcdserver/apply.go, quotaApplierV3
            guard code != "NOSPACE" || !isReady else {
                refused = (code, reason)
                self.call = try etcd.begin(.range, EtcdMessages.range(filter.writersKey(of: node)))
                return nil
            }
            self.call = nil
            guard isReady else {
                isFull = code == "NOSPACE"
                return ["STATE.MIRROR", "REFUSING", code, reason]
            }
            return ["STATE.MIRROR", "FAILED", "\(number)", code, reason]
        }
        guard let answer = try etcd.answer(of: call) else { return nil }
        self.call = nil
        do throws(MalformedMessage) { return try take(answer: answer) } catch {
            throw .cluster("\(etcd.endpoint) has sent what cannot be read")
        }
    }

    private mutating func take(answer: [UInt8]) throws(MalformedMessage) -> [String]? {
        if let refused {
            self.refused = nil
            let writers = try EtcdRange(answer[...]).entries.first?.value ?? []
            let isMade = writers.starts(with: "\(number)\u{1E}".utf8)
            return isMade
                ? nil : ["STATE.MIRROR", "FAILED", "\(number)", refused.code, refused.reason]
        }
        // The put of the session's key has no more to say; a batch has, if its session has ended.
        if number > 0, try !EtcdTransaction.hasSucceeded(answer) { isSuperseded = true }
        return nil
    }

    /// A batch, as the daemon has sent it.
    struct Batch {
        let number: Int64
        /// Everything up to this revision of the cluster was known to the commands.
        let position: Int64
        let writers: [UInt8]
        let writes: [[[UInt8]]]

        /// - Returns: Nil for what is no push of a batch.
        init?(_ push: [Reply]) {
            guard push.count == 5, push[0].textValue == "state.batch",
                let number = push[1].integerValue, let position = push[2].integerValue,
                let writers = push[3].byteValue, let writes = push[4].elements
            else { return nil }
            (self.number, self.position, self.writers) = (number, position, writers)
            self.writes = writes.map { $0.elements?.compactMap(\.byteValue) ?? [] }
        }
    }
}

extension EtcdTransaction {
    /// One command's conditions and changes.
    ///
    /// - Returns: Nil if the words are not those of a batch.
    init?(_ words: [[UInt8]], at position: Int64) {
        var rest = words[...]
        while let word = rest.popFirst() {
            guard let key = rest.popFirst() else { return nil }
            let word = String(decoding: word, as: UTF8.self)
            switch word {
            case "PRESENT": requirePresent(key, unchangedSince: position)
            case "ABSENT": requireAbsent(key)
            case "DELETE": delete(key)
            case "PUT", "UNTIL", "RANGE", "CLEAR":
                guard let second = rest.popFirst() else { return nil }
                switch word {
                case "PUT": put(key, second)
                case "UNTIL":
                    guard
                        let time = rest.popFirst().flatMap({
                            Int64(String(decoding: $0, as: UTF8.self))
                        })
                    else { return nil }
                    put(key, second, until: time)
                case "RANGE": requireUnchanged(from: key, to: second, since: position)
                default: delete(key, to: second)
                }
            default: return nil
            }
        }
    }
}
