import CLinux
import Glibc
import StateEngine
import StateWire

/// Every reply passes here: it is sent, or held until the commits that it depends on are durable.
///
/// Used only by the loop thread.
final class ReplyGate {
    let settings: Settings
    let turn: Turn
    /// Log lines that clients can cause repeatedly.
    let repeated = RepeatedLines()
    let registry: Registry
    private let flushes: FlushList
    let timers: TimerQueue
    /// The commands that wait for a cluster; nil without one.
    var cluster: ClusterWrites?

    init(
        _ settings: Settings,
        _ turn: Turn,
        _ registry: Registry,
        _ flushes: FlushList,
        _ timers: TimerQueue
    ) {
        (self.settings, self.turn) = (settings, turn)
        (self.registry, self.flushes, self.timers) = (registry, flushes, timers)
    }

    /// Sends what was written to a connection in this turn, before others get what was written to them.
    func flushFirst(_ connection: Connection) { flushes.addFirst(connection) }

    /// Replaces the reply that begins at `start` in the output by an error.
    func refuse(_ error: StateError, from start: Int, _ context: borrowing CommandContext) {
        context.output.truncate(to: start)
        context.output.writeError(error)
        noteError(context)
    }

    /// Sends the reply that begins at `start` in the output, or holds it until the commits that it
    /// depends on are durable, or kept if storage may have them later.
    func send(from start: Int, _ context: inout CommandContext) {
        // A late reply is not this one: what CLIENT REPLY says of it holds when it comes.
        guard !context.connection.inbound.awaitsLateReply else { return }
        endWait(of: context.connection)
        if context.connection.session.silence != .none,
            silence(context.connection, from: start)
        {
            return
        }
        // Otherwise the reply comes later, from the history.
        guard context.output.count > start else { return }
        let (durable, kept) = (context.core.revisions.durable, context.core.revisions.kept)
        let isHeld = context.receipt.revision > durable
        let isUnkept = context.receipt.published > max(durable, kept)
        if isHeld || isUnkept || !context.connection.outbound.held.isEmpty {
            let connection = context.connection
            if connection.outbound.held.isEmpty { connection.outbound.isConfirmationHeld = false }
            connection.outbound.hold(
                from: start,
                HeldReplies.Hold(
                    revision: isHeld ? context.receipt.revision : 0,
                    published: isUnkept ? context.receipt.published : 0,
                    reported: context.receipt.reportedRevision,
                    byteCount: connection.outbound.bytes.count - start,
                    isFinal: context.receipt.isFinal,
                    isDecided: context.round == .decided
                )
            )
            registry.addHolding(connection)
        } else if context.receipt.reportedRevision > 0 {
            registry.early.append(context.receipt.reportedRevision)
        }
        flushes.add(context.connection)
    }

    /// The next command of a connection may run, if it waited for the late reply that is there now.
    func endWait(of connection: Connection) {
        if connection.inbound.pause == .replyIsLate { registry.addPaused(connection) }
    }

    /// Drops the reply that begins at `start`, if the client wants none.
    @inline(never)
    private func silence(_ connection: Connection, from start: Int) -> Bool {
        switch connection.session.silence {
        case .none: return false
        case .all: break
        case .afterThis: connection.session.silence = .once
        case .once: connection.session.silence = .none
        }
        connection.outbound.bytes.truncate(to: start)
        return true
    }
}

/// The waiting replies of one connection: those that wait for a revision, and those after them.
struct HeldReplies: ~Copyable {
    struct Hold {
        /// The reply waits until this is durable; 0: it only waits for earlier replies.
        var revision: Int64
        /// The same, but that this is kept is enough.
        var published: Int64 = 0
        /// The commit that it acknowledges early, without waiting for it; 0: none.
        var reported: Int64 = 0
        var byteCount: Int
        /// The commit that it waits for cannot be undone.
        var isFinal = false
        /// A cluster has the commit, whether or not storage here fails.
        var isDecided = false
    }

    var bytes = ByteBuffer()
    var holds: [Hold] = []
    private(set) var first = 0

    var isEmpty: Bool { first == holds.count }
    var count: Int { holds.count - first }
    var byteCount: Int { bytes.count }
    /// Their approximate memory.
    var footprint: Int { bytes.footprint + holds.capacity * MemoryLayout<Hold>.stride }

    /// Adds a message that waits for earlier replies only.
    mutating func append(_ message: Bytes) {
        bytes.append(message)
        holds.append(Hold(revision: 0, byteCount: message.count))
    }

    /// Moves the replies that need not wait any more to `output`, in order.
    ///
    /// - Parameters:
    ///   - revision: The newest durable revision.
    ///   - kept: Up to here, what is published is kept.
    ///   - output: Receives the replies.
    ///   - early: Receives the commits that they acknowledge early and that are not durable.
    mutating func release(
        durable revision: Int64,
        kept: Int64,
        into output: inout ByteBuffer,
        early: inout EarlyReplies
    ) {
        var byteCount = 0
        while first < holds.count, holds[first].revision <= revision,
            holds[first].published <= max(revision, kept)
        {
            if holds[first].reported > revision { early.append(holds[first].reported) }
            byteCount += holds[first].byteCount
            first += 1
        }
        guard byteCount > 0 else { return }
        if byteCount == bytes.count {
            output.append(taking: &bytes)
        } else {
            output.append(bytes.bytes.slice(0, byteCount))
            bytes.removeFirst(byteCount)
        }
        if first == holds.count {
            holds.removeAll(keepingCapacity: holds.capacity <= 4_096)
            first = 0
            bytes.shrink(to: 64 << 10)
        } else if first >= 1_024, first * 2 > holds.count {
            holds.removeFirst(first)
            first = 0
        }
    }
}

/// Commits whose writers got a reply before they were durable, as their durability level allows.
struct EarlyReplies {
    /// The revisions of those that are not durable yet.
    private var revisions: [Int64] = []
    /// How many such commits failed, and were undone.
    private(set) var undoneCount = 0

    mutating func append(_ revision: Int64) { revisions.append(revision) }

    mutating func settle(through revision: Int64) { revisions.removeAll { $0 <= revision } }

    /// Counts the undone commits from `revision` on.
    mutating func fail(from revision: Int64) -> Int {
        let count = revisions.count { $0 >= revision }
        revisions.removeAll { $0 >= revision }
        undoneCount += count
        return count
    }
}

/// A client's output: bytes that may be sent, and replies that wait for storage.
struct Outbound: ~Copyable {
    /// Bytes that may be sent.
    var bytes = ByteBuffer()
    var held = HeldReplies()
    /// A held reply of EXEC confirms subscriptions: no message may overtake it.
    var isConfirmationHeld = false
    /// The last flush ended although the socket may accept more.
    private(set) var hasMoreToSend = false
    /// The upper bound of bytes of channel messages among them.
    var messageByteCount = 0
    /// Bytes that were sent, and their number at the last check of whether the client reads.
    private(set) var sentByteCount = 0
    var seenSentByteCount = 0

    /// How many bytes one flush sends at most.
    private static let flushByteCount = 256 << 10

    /// Bytes that wait for the client.
    var waitingByteCount: Int { bytes.count + held.byteCount }

    /// Holds the reply that begins at `start` in the bytes.
    ///
    /// - Complexity: O(1) if nothing else waits, otherwise O(*n*) in its bytes.
    mutating func hold(from start: Int, _ hold: HeldReplies.Hold) {
        if start == 0 {
            held.bytes.append(taking: &bytes)
        } else {
            held.bytes.append(bytes.bytes.slice(start, bytes.count))
            bytes.truncate(to: start)
        }
        held.holds.append(hold)
    }

    /// Sends at most ``flushByteCount`` bytes.
    ///
    /// - Returns: Whether the connection is still open.
    mutating func flush(to descriptor: Int32) -> Bool {
        var left = Outbound.flushByteCount
        hasMoreToSend = false
        while !bytes.isEmpty {
            guard left > 0 else {
                hasMoreToSend = true
                return true
            }
            let waiting = bytes.bytes
            let count = clinux_send(descriptor, waiting.baseAddress, min(waiting.count, left))
            if count >= 0 {
                bytes.removeFirst(count)
                left -= count
                sentByteCount &+= count
                continue
            }
            switch errno {
            case EINTR: continue
            case EAGAIN: return true
            case EBADF, EFAULT: preconditionFailure("send to descriptor \(descriptor)")
            default: return false
            }
        }
        bytes.shrink(to: 64 << 10)
        return true
    }
}

/// The connections with output to send, each once.
final class FlushList {
    /// The last commit that was encoded for watchers since the list was drained.
    let encodedCommit = EncodedCommit()
    private var connections: [Connection] = []
    /// Those that must be sent something before the others are.
    private var first: [Connection] = []
    /// Those that nobody waits for.
    private var last: [Connection] = []

    var isEmpty: Bool { connections.isEmpty && first.isEmpty && last.isEmpty }

    /// Adds a connection whose client must not read later than those of other connections.
    func addFirst(_ connection: Connection) {
        if first.last !== connection { first.append(connection) }
    }

    /// Sends what must come first before replies are released; ``drain(_:)`` sends the rest.
    func sendFirst() { for client in first where !client.isClosed { _ = client.flush() } }

    func add(_ connection: Connection) {
        guard !connection.places.isFlushed else { return }
        connection.places.isFlushed = true
        if connection.places.isFlushedLast {
            last.append(connection)
        } else {
            connections.append(connection)
        }
    }

    /// Calls `body` for each connection and empties the list.
    func drain(_ body: (Connection) -> Void) {
        if !first.isEmpty {
            for connection in first where !connection.isClosed { body(connection) }
            first.removeAll(keepingCapacity: first.capacity <= 1_024)
        }
        var index = 0
        while index < connections.count || !last.isEmpty {
            if index == connections.count {
                connections.append(last.removeLast())
            }
            let connection = connections[index]
            connection.places.isFlushed = false
            if !connection.isClosed { body(connection) }
            index += 1
        }
        connections.removeAll(keepingCapacity: true)
    }
}
