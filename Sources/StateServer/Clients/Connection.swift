import CLinux
import Glibc
import StateEngine
import StateWire

/// One client: its socket, what came in and is no command yet, and what waits to go out.
///
/// Everything belongs to the loop thread.
final class Connection {
    // Immutable.
    let descriptor: Int32
    /// Counts up, never given twice: CLIENT ID, and the registration number in epoll.
    let number: Int
    let peer: clinux_peer
    /// Whom the rules know the peer as.
    let subject: Subject
    let connectedAt: Int64
    // Coming in.
    var parser: FrameParser
    var input = ByteBuffer()
    /// Why no more commands are run for now.
    var pause: Pause?
    /// The peer has ended its side, or the connection shall end once everything is sent.
    var isEnding = false
    var isClosed = false
    /// The files that its next command waits for, and until when.
    var awaitedFiles: AwaitedFiles?
    /// The reply of its last command is to come: from a ``HistoryJob``, or where it is ``blocked``.
    var awaitsLateReply = false
    /// The command that lists in slices.
    var listing: ListingCommand?
    /// What is read from the history for it: for a command, and for a watch.
    var jobs: [any HistoryJob] = []
    /// The STATE.CHANGES that waits for a commit.
    var blocked: BlockedChanges?

    // Going out.
    var output = ByteBuffer()
    var held = HeldReplies()
    /// The last flush ended though the socket may take more.
    private(set) var hasMoreToSend = false
    /// Stands in the server's list of what is unfinished, to be flushed on.
    var isListedForSending = false
    /// As many bytes are sent at once.
    private static let flushByteCount = 256 << 10
    /// What came while its user rested.
    var postponedEvent: Poller.Event?
    /// Stands in the server's list of those to be flushed.
    var isListedForFlush = false
    /// Stands in the server's list of those with watches that are not synced.
    var isListedAsAdvancing = false
    /// Stands in the server's list of those that hold replies.
    var isListedAsHolding = false
    /// Bytes of messages to channels that may wait among them, at most.
    var messageByteCount = 0
    /// It did not read its messages: it ends without being sent what waits.
    var isLetGo = false
    /// What epoll watches for.
    var interest = Poller.readableOnce

    // What it takes of the memory for clients; ``ClientMemory`` counts.
    var account: ClientMemory.Account?
    var countedByteCount = 0
    var countedInputByteCount = 0
    /// Bytes that were sent to it, and how many there were when it was last looked at whether it reads.
    var sentByteCount = 0
    var seenSentByteCount = 0
    /// Its place among those that have begun a command and not ended it.
    var framePlace: FrameTimer.Place?
    /// The patterns of its watches.
    var watchByteCount = 0
    /// The keys of WATCH.
    var watchedKeyByteCount = 0
    /// What its watches owe of latest values; nil if it has had none.
    var owed: OwedBytes?

    // The session.
    var version = ProtocolVersion.resp2
    var name: [UInt8] = []
    var cause: InternedCause?
    var transaction: QueuedTransaction?
    var watchedKeys: [WatchedKey] = [] {
        didSet { if watchedKeys.isEmpty { watchedKeyByteCount = 0 } }
    }
    var watchers: [Int: ConnectionWatcher] = [:]
    var lastWatch = 0
    /// Patterns of all watches.
    var watchPatternCount = 0
    /// The notes of the named handlers that it has.
    var handlers: [String] = []
    /// The watch for which the history is read: one at a time, each in its turn.
    var reader: ConnectionWatcher?
    /// The number of the watch that it was read for last.
    var lastReader = 0
    /// The number of the watch that was told a piece or a part of a round last.
    var lastTold = 0
    var subscriptions = Subscriptions()
    /// Whether there are any.
    var isSubscribed = false
    /// A held reply, of EXEC, tells of subscriptions: no message passes it.
    var isConfirmationHeld = false
    var commandCount = 0
    /// How often the rules of access had changed when its last read of the history was begun.
    var accessCount = 0

    enum Pause {
        /// What is not committed yet has reached its limit.
        case queueIsFull
        /// The client does not read.
        case outputIsFull
        /// The next command needs all replies before it to have gone.
        case repliesAreHeld
        /// The reply of the last command is to come.
        case replyIsLate
        /// Files of the keys that the next command writes may have been edited.
        case filesAreEdited
        /// Its slice is over: the others are served first.
        case turnIsOver
        /// Its user's clients have their share of memory, and there is little left.
        case memoryIsFull
    }

    /// A key of WATCH as it was then.
    struct WatchedKey {
        let key: [UInt8]
        /// 0: absent.
        let revision: Int64
    }

    init(
        descriptor: Int32,
        number: Int,
        limits: FrameParser.Limits,
        subjects: inout Subjects,
        at time: Int64
    ) {
        self.descriptor = descriptor
        self.number = number
        var peer = clinux_peer()
        // A socket that is no Unix socket has no credentials: nobody's.
        if clinux_peer_credentials(descriptor, &peer) != 0 {
            peer = clinux_peer(pid: 0, uid: .max, gid: .max)
        }
        self.peer = peer
        subject = subjects.subject(of: peer, on: descriptor)
        connectedAt = time
        parser = FrameParser(limits: limits)
    }

    /// Bytes that came in and are not carried out: no whole command yet, or queued for EXEC.
    var unfinishedByteCount: Int { input.count + (transaction?.byteCount ?? 0) }

    /// Bytes that wait for the client.
    var waitingByteCount: Int { output.count + held.byteCount }

    /// Gives back at once what it holds: it has ended, and lists may keep it for a while.
    func releaseMemory() {
        input.removeAll()
        input.shrink(to: 0)
        output.removeAll()
        output.shrink(to: 0)
        held = HeldReplies()
        transaction = nil
        watchedKeys = []
    }

    // MARK: The socket

    enum Received {
        case bytes(Int)
        case nothing
        case end
    }

    /// Reads what is there, `byteCount` bytes at most, to the end of `buffer`.
    func receive(into buffer: inout ByteBuffer, _ byteCount: Int) -> Received {
        let flags = Int32(MSG_DONTWAIT)
        while true {
            let count = recv(descriptor, buffer.reserve(byteCount), byteCount, flags)
            if count > 0 {
                buffer.extend(by: count)
                return .bytes(count)
            }
            if count == 0 { return .end }
            switch errno {
            case EINTR: continue
            case EAGAIN: return .nothing
            case EBADF, EFAULT: preconditionFailure("recv of descriptor \(descriptor)")
            default: return .end
            }
        }
    }

    /// Sends what may go, ``flushByteCount`` at most: a client that reads as fast as it is sent to would keep the others waiting.
    ///
    /// - Returns: Whether the connection still stands.
    func flush() -> Bool {
        var left = Connection.flushByteCount
        hasMoreToSend = false
        while !output.isEmpty {
            guard left > 0 else {
                hasMoreToSend = true
                return true
            }
            let bytes = output.bytes
            let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
            let count = send(descriptor, bytes.baseAddress, min(bytes.count, left), flags)
            if count >= 0 {
                output.removeFirst(count)
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
        output.shrink(to: 64 << 10)
        return true
    }

    /// Whether the peer has closed its socket, as the kernel knows at once: the event that tells of it may stand behind another.
    var hasHungUp: Bool {
        var state = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&state, 1, 0) > 0
    }

    // MARK: The session

    /// The command name of the peer, as the kernel keeps it; a hint.
    var peerCommand: String {
        let file = open("/proc/\(peer.pid)/comm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return "" }
        defer { close(file) }
        return withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
            let count = read(file, buffer.baseAddress, buffer.count)
            guard count > 1 else { return "" }
            return String(decoding: buffer[..<(count - 1)], as: UTF8.self)
        }
    }
}
