import Glibc
import StateModel
import StateWire

/// The link's connection to the daemon: commands are sent without waiting, and their replies come in
/// the same order.
final class DaemonConnection {
    let descriptor: Int32
    /// The socket of the daemon.
    let choice: SocketLocation.Choice
    private var parser = ReplyParser()
    private var request = RequestWriter()
    private var unsent: [UInt8] = []
    private var sentCount = 0
    private var room = [UInt8](repeating: 0, count: 64 << 10)
    /// The bytes of each command; of those before `answeredCount` the reply has come.
    private var sent: [Int] = []
    private var answeredCount = 0
    private var unansweredByteCount = 0
    /// What clients of the daemon want to change, as it has come.
    private var batches: [MirrorWriter.Batch] = []

    /// Commands of so many bytes may wait for their replies.
    private static let waitingByteCount = 8 << 20

    /// - Throws: ``LinkFailure/daemon(_:code:)``.
    init(_ choice: SocketLocation.Choice) throws(LinkFailure) {
        let opened = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var choice = choice
        let code: Int32
        do throws(StateError) {
            code = try SocketLocation.process.connect(to: &choice) { path in
                let address = sockaddr_un(name: Array(path.utf8))
                let status = address.withAddress { connect(opened, $0, $1) }
                return status == 0 && fcntl(opened, F_SETFL, O_NONBLOCK) == 0 ? 0 : errno
            }
        } catch {
            close(opened)
            throw .daemon(error.message, code: nil)
        }
        guard code == 0 else {
            close(opened)
            let reason = String(cString: strerror(code))
            throw .daemon("no daemon answers at \(choice.path): \(reason)", code: nil)
        }
        descriptor = opened
        self.choice = choice
    }

    deinit { close(descriptor) }

    var wantsWrite: Bool { sentCount < unsent.count }
    /// Whether no more should be sent before some of it is answered.
    var isFull: Bool { unansweredByteCount >= DaemonConnection.waitingByteCount }
    var isIdle: Bool { answeredCount == sent.count }

    /// Adds a command to what is sent next.
    func send(_ arguments: [[UInt8]]) {
        request.append(arguments)
        sent.append(request.bytes.count)
        unansweredByteCount += request.bytes.count
        unsent += request.bytes
        request.removeAll()
    }

    func send(_ words: String...) { send(words.map { Array($0.utf8) }) }

    /// - Throws: ``LinkFailure/daemon(_:code:)``.
    func flush() throws(LinkFailure) {
        while sentCount < unsent.count {
            let count = unsent[sentCount...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count > 0 {
                sentCount += count
            } else if errno == EAGAIN {
                return
            } else if errno != EINTR {
                throw .daemon("the daemon: \(String(cString: strerror(errno)))", code: nil)
            }
        }
        unsent.removeAll(keepingCapacity: unsent.count < 1 << 20)
        sentCount = 0
    }

    /// Takes the replies that have come, up to the first refusal.
    ///
    /// - Throws: ``LinkFailure/daemon(_:code:)``, with the code of a refusal.
    func receive() throws(LinkFailure) -> [Reply] {
        var replies: [Reply] = []
        // What comes later, poll(2) reports.
        var isDrained = false
        while true {
            while let reply = try parsed() {
                if case .push(let elements) = reply {
                    if let batch = MirrorWriter.Batch(elements) { batches.append(batch) }
                    continue
                }
                if case .error(let error) = reply {
                    throw .daemon(error.message, code: error.code.description)
                }
                noteAnswer()
                replies.append(reply)
            }
            if isDrained { return replies }
            let count = recv(descriptor, &room, room.count, 0)
            if count > 0 {
                room.withUnsafeBytes { parser.append(Bytes(rebasing: $0[..<count])) }
                isDrained = count < room.count
            } else if count == 0 {
                throw .daemon("the daemon has closed the connection", code: nil)
            } else if errno == EAGAIN {
                return replies
            } else if errno != EINTR {
                throw .daemon("the daemon: \(String(cString: strerror(errno)))", code: nil)
            }
        }
    }

    func takeBatches() -> [MirrorWriter.Batch] {
        defer { batches = [] }
        return batches
    }

    private func noteAnswer() {
        guard !isIdle else { return }
        unansweredByteCount -= sent[answeredCount]
        answeredCount += 1
        // Not for each: there may be very many.
        guard isIdle || answeredCount >= 4_096 else { return }
        sent.removeFirst(answeredCount)
        answeredCount = 0
    }

    private func parsed() throws(LinkFailure) -> Reply? {
        do throws(ReplyError) { return try parser.next() } catch {
            throw .daemon("the daemon: \(error.description)", code: nil)
        }
    }
}
