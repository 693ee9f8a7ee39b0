import Glibc
import StateModel
import StateWire

/// One connection from its beginning to its loss: requests go out, replies come in and are matched in order.
///
/// The connection's thread alone uses it.
final class RemoteSession {
    /// Bytes that wait to be sent, above which no more requests are taken from those that wait.
    private static let outputByteLimit = 1 << 20

    let path: String
    private let transport: Transport
    private var parser = ReplyParser()
    private var room = [UInt8](repeating: 0, count: 64 << 10)
    private var output = ByteBuffer()
    /// Bytes that were put into `output`, and that have left it.
    private var appendedCount = 0
    private var sentCount = 0
    private var awaited = FirstInFirstOut<Awaited>()
    /// Callers that wait for an answer.
    private var callCount = 0

    /// A reply that is to come.
    struct Awaited {
        /// What it answers; nil where that was given up.
        var call: RemoteCall?
        /// What takes a reply that is the connection's own affair.
        var take: ((Reply) throws(Loss) -> Void)?
        /// By when it has to be there.
        var deadline: Deadline
        /// Bytes that stood before the request, and its own.
        var start: Int
        var byteCount: Int
    }

    init(path: String) throws(StateError) {
        self.path = path
        // A full queue of the listener is no reason to let everybody wait for long.
        transport = try Transport(path: path, deadline: Deadline(after: .milliseconds(250)))
    }

    var descriptor: Int32 { transport.descriptor }
    var hasOutput: Bool { !output.isEmpty }
    var hasCalls: Bool { callCount > 0 }
    var hasRoom: Bool { output.count < Self.outputByteLimit }

    /// Sends a caller's request, whose answer is due so long from now.
    func send(_ call: RemoteCall) {
        callCount += 1
        var sent = call
        sent.request = []
        append(call.request, call: sent, take: nil, within: call.timeout)
    }

    /// Sends a request of the connection's own, which is lost where that is not answered in time.
    func send(
        _ request: RequestWriter,
        within timeout: Duration,
        _ take: @escaping (Reply) throws(Loss) -> Void
    ) {
        append(request.bytes, call: nil, take: take, within: timeout)
    }

    private func append(
        _ request: [UInt8],
        call: RemoteCall?,
        take: ((Reply) throws(Loss) -> Void)?,
        within timeout: Duration
    ) {
        request.withUnsafeBytes { output.append($0) }
        awaited.append(
            Awaited(
                call: call,
                take: take,
                deadline: Deadline(after: timeout),
                start: appendedCount,
                byteCount: request.count
            )
        )
        appendedCount += request.count
    }

    /// Sends what the socket takes.
    func flush() throws(Loss) {
        while !output.isEmpty {
            let count = try transport.send(output.bytes)
            guard count > 0 else { return }
            output.removeFirst(count)
            sentCount += count
        }
        output.shrink(to: 256 << 10)
    }

    /// Takes in what is there, 64 KiB at most.
    func receive() throws(Loss) {
        try room.withUnsafeMutableBufferPointer { (room) throws(Loss) in
            guard let count = try transport.receive(.init(room), mayWait: false) else { return }
            parser.append(Bytes(rebasing: Bytes(room)[0..<count]))
        }
    }

    /// The next reply or push that has arrived whole.
    func next() throws(Loss) -> Reply? { try parser.parsed() }

    /// What the next reply answers.
    func popAwaited() throws(Loss) -> Awaited {
        guard let next = awaited.popFirst() else {
            throw .malformed("a reply arrived that answers nothing")
        }
        if next.call != nil { callCount -= 1 }
        return next
    }

    /// Gives up the calls whose time is over; their replies will be passed over.
    ///
    /// - Returns: The earliest deadline of the others.
    /// - Throws: where a request of the connection's own was not answered in time.
    func expire() throws(Loss) -> Deadline? {
        var earliest: Deadline?
        var expired: [RemoteCall] = []
        var isSilent = false
        awaited.update { awaited in
            guard awaited.call != nil || awaited.take != nil else { return }
            guard awaited.deadline.hasPassed else {
                earliest = min(earliest ?? awaited.deadline, awaited.deadline)
                return
            }
            if awaited.take != nil { isSilent = true }
            if let call = awaited.call.take() { expired.append(call) }
        }
        callCount -= expired.count
        for call in expired {
            let timeout = Quantity.text(call.timeout)
            call.fail("the daemon did not answer within \(timeout) (\(path))", isSent: true)
        }
        if isSilent { throw .timedOut }
        return earliest
    }

    /// Everything that is not answered, and of each whether any of it may have arrived.
    func end() -> [(awaited: Awaited, isSent: Bool)] {
        let all = awaited.take { _ in true }
        return all.map { ($0, $0.start < sentCount) }
    }
}
