import CLinux
import StateEngine
import StateWire

/// The context in which commands of a connection run: the connection, the keyspace, and the receipt
/// of the reply.
///
/// It lives as long as the keyspace's lock is held. Handlers read through it and write through
/// ``write(waitingFor:_:)``, so that the receipt covers everything that the reply depends on.
struct CommandContext: ~Copyable {
    let connection: Connection
    let core: KeyspaceCore
    /// Wall time of this turn in milliseconds since 1970.
    let time: Int64
    /// Only ``write(waitingFor:_:)`` gives access to it.
    private var transaction: Transaction
    /// The state of a running EXEC; nil outside of EXEC.
    var execution: Execution?
    /// Whether there is a commit that ``Turn/note(_:)`` has not recorded yet.
    var hasCommitted = false
    /// What a cluster has to decide, instead of a commit here.
    var offer: ClusterOffer?
    /// How often the command was carried out for a cluster.
    var round = ClusterOffer.Round.first

    /// The state of an EXEC, whose commands are one commit.
    struct Execution {
        /// Entries that its listings may still visit.
        var visitsLeft: Int
        /// The subscriptions before it changed them; nil if it has not.
        var subscriptionsBefore: Subscriptions?
    }

    init(_ connection: Connection, in core: KeyspaceCore, at time: Int64) {
        self.connection = connection
        self.core = core
        self.time = time
        transaction = Transaction(in: core, core.makeReceipt())
    }

    /// Begins the reply to the next command.
    mutating func beginAnswer() { transaction.receipt = core.makeReceipt() }

    /// The receipt of the reply.
    var receipt: Receipt {
        @inline(__always) _read { yield transaction.receipt }
        @inline(__always) _modify { yield &transaction.receipt }
    }

    /// The output of the reply.
    var output: ByteBuffer {
        @inline(__always) _read { yield connection.outbound.bytes }
        @inline(__always) nonmutating _modify { yield &connection.outbound.bytes }
    }

    var version: ProtocolVersion { connection.session.version }

    var isExecuting: Bool { execution != nil }

    /// The subject, if rules may restrict it; else nil.
    var restriction: Subject? {
        // Without rules, a read costs no retain and release.
        core.rules == nil ? nil : core.restriction(of: connection.subject)
    }

    // MARK: Reading

    /// The newest version of a key as the connection sees it; see ``KeyspaceCore/look(at:for:_:)``.
    mutating func look(at key: Bytes) throws(StateError) -> Record? {
        guard let subject = restriction else { return core.read(key, &transaction.receipt) }
        return try core.look(at: key, for: subject, &transaction.receipt)
    }

    /// The same, but a hidden key is reported as absent.
    mutating func read(_ key: Bytes) -> Record? {
        core.read(key, for: restriction, &transaction.receipt)
    }

    // MARK: Writing

    /// Commits the changes of `body`, or adds them to the commit of EXEC.
    ///
    /// - Parameters:
    ///   - wait: What the reply waits for.
    ///   - body: Makes the changes.
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws; nothing has changed then.
    mutating func write<R>(
        waitingFor wait: Receipt.Wait = .rules,
        _ body: (inout Transaction) throws(StateError) -> R
    ) throws(StateError) -> R {
        guard !isExecuting else { return try body(&transaction) }
        core.begin(cause, at: time, by: restriction, connection.holders)
        if core.files != nil { core.limitFiles(of: connection.subject) }
        if round != .first { core.transaction.cluster?.isRepeated = true }
        let result: R
        do throws(StateError) {
            result = try body(&transaction)
            if core.transaction.awaitsCluster, try isOffered() {
                core.rollBack(keepsRates: true)
                return result
            }
        } catch {
            let error = core.transaction.awaitsCluster ? offeredFailure(error) : error
            core.rollBack()
            throw error
        }
        finish(waitingFor: wait)
        return result
    }

    /// Commits all changes of the commands of EXEC.
    ///
    /// - Parameters:
    ///   - visitCount: Entries that their listings may visit.
    ///   - mayWrite: Whether some of them may change something.
    ///   - body: Runs the commands.
    /// - Throws: What `body` throws; nothing has changed then.
    mutating func execute(
        visitCount: Int,
        mayWrite: Bool,
        _ body: (inout CommandContext) throws(StateError) -> Void
    ) throws(StateError) {
        execution = Execution(visitsLeft: visitCount)
        if round == .decided { return try body(&self) }
        core.begin(cause, at: time, by: restriction, connection.holders)
        if core.files != nil { core.limitFiles(of: connection.subject) }
        if round != .first { core.transaction.cluster?.isRepeated = true }
        do throws(StateError) {
            try body(&self)
            if mayWrite, core.transaction.awaitsCluster, try isOffered() {
                return core.rollBack(keepsRates: true)
            }
        } catch {
            let error = mayWrite && core.transaction.awaitsCluster ? offeredFailure(error) : error
            core.rollBack()
            throw error
        }
        finish(waitingFor: .storage)
    }

    /// Makes the reply wait until storage has everything written so far; in EXEC, also its own
    /// changes.
    mutating func storeEverything() throws(StateError) {
        guard !isExecuting else {
            transaction.storeAtOnce()
            return
        }
        try core.storeEverything(&transaction.receipt, cause)
        hasCommitted = true
    }

    /// The revision that the reply is about, whether or not it changes anything.
    var reachedRevision: Int64 { transaction.reachedRevision }

    private mutating func finish(waitingFor wait: Receipt.Wait) {
        // A client's own watches get its write before its reply.
        let goesAtOnce =
            connection.watches.all.isEmpty && !connection.session.isSubscribed
            && !core.hub.mustComeFirst
        let revision = core.finish(&transaction.receipt, waitingFor: wait, goesAtOnce: goesAtOnce)
        if revision > 0 { connection.session.usage.commitCount += 1 }
        hasCommitted = true
    }

    /// The cause of the connection's commits; determined at its first write.
    var cause: InternedCause {
        if let cause = connection.session.cause { return cause }
        let cause = core.retainCause(
            Cause(
                uid: connection.peer.uid,
                gid: connection.peer.gid,
                pid: connection.peer.pid,
                command: connection.peerCommand,
                client: String(decoding: connection.session.client.name, as: UTF8.self)
            )
        )
        connection.session.cause = cause
        return cause
    }
}
