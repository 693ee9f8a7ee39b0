import StateModel
import StatePlatform
import StateWire

/// One connection, from its start to its loss: sends requests, receives replies and matches them in
/// order.
///
/// Only the connection's thread uses it.
final class RemoteSession {
    /// How many unsent bytes may be buffered before no more waiting requests are taken.
    private static let outputByteLimit = 1 << 20

    let socket: SocketLocation.Choice
    private let transport: Transport
    private var parser = ReplyParser()
    private var room = [UInt8](repeating: 0, count: 64 << 10)
    private var output = ByteBuffer()
    /// How many bytes were appended to `output`, and how many were sent.
    private var appendedCount = 0
    private var sentCount = 0
    private var awaited = FirstInFirstOut<Awaited>()
    /// How many callers wait for an answer.
    private var callCount = 0

    /// An expected reply.
    struct Awaited {
        /// The call that it answers; nil if that was given up.
        var call: RemoteCall?
        /// Takes the reply to one of the connection's own requests.
        var take: ((Reply) throws(Loss) -> Void)?
        /// When the reply must have arrived.
        var deadline: Deadline
        /// The bytes appended before the request, and its own size.
        var start: Int
        var byteCount: Int
    }

    init(_ choice: SocketLocation.Choice) throws(StateError) {
        var choice = choice
        // A full listener queue must not delay all callers for long.
        transport = try Transport(&choice, deadline: Deadline(after: .milliseconds(250)))
        socket = choice
    }

    var path: String { socket.path }

    var descriptor: Int32 { transport.descriptor }
    var hasOutput: Bool { !output.isEmpty }
    var hasCalls: Bool { callCount > 0 }
    var hasRoom: Bool { output.count < Self.outputByteLimit }

    /// Sends a caller's request; its answer is due after the call's timeout.
    func send(_ call: RemoteCall) {
        callCount += 1
        var sent = call
        sent.request = []
        append(call.request, call: sent, take: nil, within: call.timeout)
    }

    /// Sends one of the connection's own requests; the connection is lost if it is not answered in
    /// time.
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

    /// Sends as much as the socket accepts.
    func flush() throws(Loss) {
        while !output.isEmpty {
            let count = try transport.send(output.bytes)
            guard count > 0 else { return }
            output.removeFirst(count)
            sentCount += count
        }
        output.shrink(to: 256 << 10)
    }

    /// Receives what is available, at most 64 KiB.
    func receive() throws(Loss) {
        try room.withUnsafeMutableBufferPointer { (room) throws(Loss) in
            guard let count = try transport.receive(.init(room), mayWait: false) else { return }
            parser.append(Bytes(rebasing: Bytes(room)[0..<count]))
        }
    }

    /// The next complete reply or push.
    func next() throws(Loss) -> Reply? { try parser.parsed() }

    /// The request of the next reply.
    func popAwaited() throws(Loss) -> Awaited {
        guard let next = awaited.popFirst() else {
            throw .malformed("a reply arrived without a request")
        }
        if next.call != nil { callCount -= 1 }
        return next
    }

    /// Fails the calls whose time is over; their replies will be ignored.
    ///
    /// - Returns: The earliest deadline of the others.
    /// - Throws: If one of the connection's own requests was not answered in time.
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

    /// All requests without an answer, and for each whether any part of it may have arrived.
    func end() -> [(awaited: Awaited, isSent: Bool)] {
        let all = awaited.take { _ in true }
        return all.map { ($0, $0.start < sentCount) }
    }
}
