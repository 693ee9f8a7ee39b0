import CLinux
import Glibc
import StateEngine
import StateWire

/// One client: its socket, what came in and is no command yet, and what waits to go out.
///
/// Everything belongs to the loop thread.
final class Connection {
    let descriptor: Int32
    /// Counts up, never given twice: CLIENT ID, and the registration number in epoll.
    let number: Int
    let peer: clinux_peer
    /// Whom the rules know the peer as.
    let subject: Subject
    let connectedAt: Int64
    var inbound: Inbound
    var outbound = Outbound()
    var session = Session()
    var watches = WatchSet()
    var share = MemoryShare()
    var places = Places()
    /// What epoll watches for.
    var interest = Poller.readableOnce
    /// The peer has ended its side, or the connection shall end once everything is sent.
    var isEnding = false
    /// It did not read its messages: it ends without being sent what waits.
    var isLetGo = false
    var isClosed = false

    /// What a connection takes of the memory for clients; ``ClientMemory`` counts.
    struct MemoryShare {
        var account: ClientMemory.Account?
        var byteCount = 0
        var inputByteCount = 0
    }

    /// In which lists of the server a connection stands.
    struct Places {
        /// Those whose output goes on after others were served.
        var hasUnfinishedOutput = false
        /// Those to be flushed.
        var isFlushed = false
        /// Those with watches that are not synced.
        var isAdvancing = false
        /// Those that hold replies.
        var isHolding = false
        /// Those that have begun a command and not ended it.
        var frame: FrameTimer.Place?
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
        inbound = Inbound(parser: FrameParser(limits: limits))
    }

    /// Bytes that came in and are not carried out: no whole command yet, or queued for EXEC.
    var unfinishedByteCount: Int {
        inbound.bytes.count + (session.transaction?.byteCount ?? 0)
    }

    /// Gives back at once what it holds: it has ended, and lists may keep it for a while.
    func releaseMemory() {
        inbound.bytes.removeAll()
        inbound.bytes.shrink(to: 0)
        outbound = Outbound()
        session.transaction = nil
        session.watchedKeys = []
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

    /// Sends what may go, 256 KiB at most: a client that reads as fast as it is sent to would keep the others waiting.
    ///
    /// - Returns: Whether the connection still stands.
    func flush() -> Bool { outbound.flush(to: descriptor) }

    /// Whether the peer has closed its socket, as the kernel knows at once: the event that tells of it may stand behind another.
    var hasHungUp: Bool {
        var state = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&state, 1, 0) > 0
    }

    /// Whether the process that connected is gone, as far as the daemon can see processes.
    ///
    /// Its socket may be open still: a child that was about to run another program has it until then.
    var hasExited: Bool { peer.pid > 0 && kill(peer.pid, 0) != 0 && errno == ESRCH }

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
