import CLinux
import StateEngine
import StateWire

/// What commands of one connection are carried out with: who sends them, the keyspace, and the receipt of the answer.
///
/// It lives as long as the keyspace's lock is held. Handlers read through it and write through ``write(waitingFor:_:)``, so that the
/// receipt has all that the answer rests on.
struct CommandContext: ~Copyable {
    let connection: Connection
    let core: KeyspaceCore
    /// Wall time of this turn in milliseconds since 1970.
    let time: Int64
    /// Only ``write(waitingFor:_:)`` hands it out.
    private var transaction: Transaction
    /// The commands of EXEC that are being carried out; nil outside of EXEC.
    var execution: Execution?
    /// Whether something was committed that ``Turn/note(_:)`` has not taken over yet.
    var hasCommitted = false

    /// The commands of EXEC, which are one commit.
    struct Execution {
        /// Entries that they may still look at in listings.
        var visitsLeft: Int
        /// What the connection subscribed to before they changed that; nil if they have not.
        var subscriptionsBefore: Subscriptions?
    }

    init(_ connection: Connection, in core: KeyspaceCore, at time: Int64) {
        self.connection = connection
        self.core = core
        self.time = time
        transaction = Transaction(in: core, core.makeReceipt())
    }

    /// Begins the answer to the next command.
    mutating func beginAnswer() { transaction.receipt = core.makeReceipt() }

    /// Of the answer.
    var receipt: Receipt {
        @inline(__always) _read { yield transaction.receipt }
        @inline(__always) _modify { yield &transaction.receipt }
    }

    /// Where the answer is written to.
    var output: ByteBuffer {
        @inline(__always) _read { yield connection.outbound.bytes }
        @inline(__always) nonmutating _modify { yield &connection.outbound.bytes }
    }

    var version: ProtocolVersion { connection.session.version }

    var isExecuting: Bool { execution != nil }

    /// Whom the rules may keep out of something; nil for whom they do not.
    var restriction: Subject? { core.restriction(of: connection.subject) }

    // MARK: Reading

    /// The newest version of a key as the connection sees it; see ``KeyspaceCore/look(at:for:_:)``.
    mutating func look(at key: Bytes) throws(StateError) -> Record? {
        guard let subject = restriction else { return core.read(key, &transaction.receipt) }
        return try core.look(at: key, for: subject, &transaction.receipt)
    }

    /// The same, where nobody is told that a key is hidden.
    mutating func read(_ key: Bytes) -> Record? {
        core.read(key, for: restriction, &transaction.receipt)
    }

    // MARK: Writing

    /// Makes what `body` changes one commit, or part of the one that EXEC makes.
    ///
    /// - Parameters:
    ///   - wait: What the answer waits for.
    ///   - body: Makes the changes.
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws; nothing has changed then.
    mutating func write<R>(
        waitingFor wait: Receipt.Wait = .rules,
        _ body: (inout Transaction) throws(StateError) -> R
    ) throws(StateError) -> R {
        guard !isExecuting else { return try body(&transaction) }
        core.begin(cause, at: time, by: restriction)
        let result: R
        do throws(StateError) {
            result = try body(&transaction)
        } catch {
            core.rollBack()
            throw error
        }
        finish(waitingFor: wait)
        return result
    }

    /// Makes all that `body` changes one commit: what the commands of EXEC write.
    ///
    /// - Parameters:
    ///   - visitCount: Entries that they may look at in listings.
    ///   - body: Carries the commands out.
    /// - Throws: What `body` throws; nothing has changed then.
    mutating func execute(
        visitCount: Int,
        _ body: (inout CommandContext) throws(StateError) -> Void
    ) throws(StateError) {
        execution = Execution(visitsLeft: visitCount)
        core.begin(cause, at: time, by: restriction)
        do throws(StateError) {
            try body(&self)
        } catch {
            core.rollBack()
            throw error
        }
        finish(waitingFor: .storage)
    }

    private mutating func finish(waitingFor wait: Receipt.Wait) {
        // A client's own watches are sent before the answer to what it wrote.
        let goesAtOnce = connection.watches.all.isEmpty && !connection.session.isSubscribed
        core.finish(&transaction.receipt, waitingFor: wait, goesAtOnce: goesAtOnce)
        hasCommitted = true
    }

    /// Who the connection's commits are by; found out at its first write.
    var cause: InternedCause {
        if let cause = connection.session.cause { return cause }
        let cause = core.retainCause(
            Cause(
                uid: connection.peer.uid,
                gid: connection.peer.gid,
                pid: connection.peer.pid,
                command: connection.peerCommand,
                client: String(decoding: connection.session.name, as: UTF8.self)
            )
        )
        connection.session.cause = cause
        return cause
    }
}
