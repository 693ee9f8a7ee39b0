public import StateModel
import StatePlatform
package import StateWire

/// A connection to the daemon that blocks the thread that uses it.
///
/// One thread at a time: a client is not `Sendable`. Commands wait for their replies; events of
/// watches are kept apart, for ``nextEvent(timeout:)``. After the connection is lost the client
/// stays disconnected: every further call throws ``StateError/Code/unreachable`` without sending
/// anything.
///
/// ```swift
/// let client = try Client()
/// try client.set(Array("0.7".utf8), for: "audio/volume")
/// let volume = try client.value(for: "audio/volume")
/// ```
public final class Client {
    // Immutable.

    /// The socket that this client is connected to.
    public var socketPath: String { socket.path }
    /// The same, and why it is this one.
    package let socket: SocketLocation.Choice
    /// How long one call may take; nil for no limit.
    public let timeout: Duration?
    /// The default of ``timeout``.
    public static let standardTimeout = Duration.seconds(30)
    private let name: String
    private let transport: Transport

    /// What ends each wait for a reply, and with it the connection.
    package var interruption: Interruption?

    // Changed by every call.
    private var parser = ReplyParser()
    private var request = RequestWriter()
    private var hasSaidHello = false
    private var loss: String?
    private var room: [UInt8] = []

    // Received events; those before `firstPush` have been returned.
    private var pushes: [Reply] = []
    private var firstPush = 0

    /// Connects to a daemon; sends nothing before the first call.
    ///
    /// - Parameters:
    ///   - socket: The path of its socket; nil for `$STATED_SOCKET`, else the user's own, else the
    ///     machine's if this user has no daemon.
    ///   - timeout: How long connecting, and each call, may take; nil for no limit. It does not
    ///     limit ``nextEvent(timeout:)`` and ``compact(to:shrinks:)``.
    ///   - name: The client's name, which the daemon records with every write; empty for none.
    /// - Throws: ``StateError/Code/unreachable`` if nobody answers, naming the path;
    ///   ``StateError/Code/invalidRequest`` for a path over 107 bytes.
    public convenience init(
        socket: String? = nil,
        timeout: Duration? = Client.standardTimeout,
        name: String = ""
    ) throws(StateError) {
        let choice = try SocketLocation.process.clientChoice(option: socket)
        try self.init(choice, timeout: timeout, name: name)
    }

    /// The same for a socket that was chosen before.
    package init(
        _ choice: SocketLocation.Choice,
        timeout: Duration?,
        name: String = ""
    ) throws(StateError) {
        var choice = choice
        transport = try Transport(&choice, deadline: timeout.map { Deadline(after: $0) })
        socket = choice
        self.timeout = timeout
        self.name = name
    }

    /// What a request does: this decides the error if its reply is lost, and the protocol that it
    /// needs.
    package struct RequestKind: OptionSet, Sendable {
        /// The option's bit.
        package let rawValue: Int
        /// Changes something: if its reply is lost, its outcome is unknown.
        package static let write = RequestKind(rawValue: 1)
        /// The request, or what follows it, needs RESP3.
        package static let needsRESP3 = RequestKind(rawValue: 2)
        /// May take any time: its reply has no deadline.
        package static let waits = RequestKind(rawValue: 4)

        /// Makes a set of options.
        package init(rawValue: Int) { self.rawValue = rawValue }
    }

    /// Sends one command and waits for its reply.
    ///
    /// If the command is the first that needs HELLO, HELLO is sent in the same write.
    ///
    /// - Throws: The error that the daemon replied; ``StateError/Code/unreachable`` or, if a write
    ///   may have arrived, ``StateError/Code/outcomeUnknown``.
    package func call(
        _ arguments: [[UInt8]],
        _ kind: RequestKind = []
    ) throws(StateError) -> Reply {
        let (deadline, refusal) = try start(kind) { $0.append(arguments) }
        let reply = try nextReply(kind, deadline, refusal)
        if case .error(let error) = reply { throw error.naming(.limit) }
        return reply
    }

    /// Sends `count` commands in one write and waits for all their replies, which may be errors.
    ///
    /// - Throws: ``StateError/Code/unreachable`` or, if a write may have arrived,
    ///   ``StateError/Code/outcomeUnknown``.
    package func pipeline(
        count: Int,
        _ kind: RequestKind = [],
        _ write: (inout RequestWriter) -> Void
    ) throws(StateError) -> [Reply] {
        let (deadline, refusal) = try start(kind, write)
        var replies: [Reply] = []
        while replies.count < count { replies.append(try nextReply(kind, deadline, refusal)) }
        return replies
    }

    /// Sends commands, and the HELLO before them if it is due.
    ///
    /// - Returns: When their replies are due, and the error with which the HELLO was refused.
    private func start(
        _ kind: RequestKind,
        _ write: (inout RequestWriter) -> Void
    ) throws(StateError) -> (deadline: Deadline?, refusal: StateError?) {
        if let loss { throw StateError(.unreachable, loss) }
        let deadline = kind.contains(.waits) ? nil : timeout.map { Deadline(after: $0) }
        request.removeAll()
        let saysHello = kind.contains(.needsRESP3) && !hasSaidHello
        if saysHello { request.appendHello(name) }
        write(&request)
        try send(kind, deadline)
        guard saysHello else { return (deadline, nil) }
        hasSaidHello = true
        guard case .error(let error) = try nextReply(kind, deadline, nil) else {
            return (deadline, nil)
        }
        return (deadline, error.naming(.limit))
    }

    /// Sends the request, and receives meanwhile: a daemon whose replies are not read stops
    /// reading.
    private func send(_ kind: RequestKind, _ deadline: Deadline?) throws(StateError) {
        var sent = 0
        do throws(Loss) {
            while true {
                sent += try request.bytes.withUnsafeBufferPointer { (bytes) throws(Loss) -> Int in
                    try transport.send(Bytes(rebasing: Bytes(bytes)[sent...]))
                }
                guard sent < request.bytes.count else { return }
                try transport.wait(toSend: true, until: deadline, unless: interruption)
                _ = try receive(mayWait: false)
            }
        } catch {
            let isUnknown = sent > 0 && kind.contains(.write)
            throw lost(isUnknown ? .outcomeUnknown : .unreachable, error, because: closingError())
        }
    }

    /// The error that a daemon sent before it closed a connection that it refuses.
    private func closingError() -> StateError? {
        while (try? receive(mayWait: false)) ?? false {}
        guard case .error(let error) = try? parser.next() else { return nil }
        return error.naming(.limit)
    }

    private func nextReply(
        _ kind: RequestKind,
        _ deadline: Deadline?,
        _ refusal: StateError?
    ) throws(StateError) -> Reply {
        do throws(Loss) {
            while true {
                guard let reply = try parser.parsed() else {
                    try receive(until: deadline, unless: interruption)
                    continue
                }
                guard case .push = reply else { return reply }
                pushes.append(reply)
            }
        } catch {
            let code: StateError.Code = kind.contains(.write) ? .outcomeUnknown : .unreachable
            throw lost(code, error, because: refusal)
        }
    }

    /// The next event; nil after the deadline, or if `other` happens.
    package func nextPush(
        until deadline: Deadline?,
        unless other: Interruption? = nil
    ) throws(StateError) -> Reply? {
        if let push = takePush() { return push }
        if let loss { throw StateError(.unreachable, loss) }
        do throws(Loss) {
            while true {
                while let reply = try parser.parsed() {
                    if case .push = reply { return reply }
                    throw .malformed("a reply arrived without a request")
                }
                try receive(until: deadline, unless: other)
            }
        } catch .timedOut, .abandoned {
            return nil
        } catch {
            throw lost(.unreachable, error, because: nil)
        }
    }

    private func takePush() -> Reply? {
        guard firstPush < pushes.count else {
            pushes.removeAll(keepingCapacity: true)
            firstPush = 0
            return nil
        }
        firstPush += 1
        return pushes[firstPush - 1]
    }

    private func receive(until deadline: Deadline?, unless other: Interruption?) throws(Loss) {
        guard deadline != nil || other != nil else {
            _ = try receive(mayWait: true)
            return
        }
        try transport.wait(toSend: false, until: deadline, unless: other)
        _ = try receive(mayWait: false)
    }

    /// Receives what is available; returns false if nothing is.
    private func receive(mayWait: Bool) throws(Loss) -> Bool {
        if room.isEmpty { room = [UInt8](repeating: 0, count: 2 << 10) }
        let count = try room.withUnsafeMutableBufferPointer { (room) throws(Loss) -> Int? in
            let count = try transport.receive(.init(room), mayWait: mayWait)
            if let count { parser.append(Bytes(rebasing: Bytes(room)[0..<count])) }
            return count
        }
        guard let count else { return false }
        // A long reply needs fewer, larger reads.
        if count == room.count, count < 1 << 20 {
            room = [UInt8](repeating: 0, count: count * 4)
        }
        return true
    }

    /// Records that the connection is lost.
    private func lost(
        _ code: StateError.Code,
        _ loss: Loss,
        because refusal: StateError?
    ) -> StateError {
        var sentence = "\(loss) (\(socketPath))"
        if case .timedOut = loss, let timeout {
            let time = Quantity.text(timeout)
            sentence = "the daemon at \(socketPath) did not answer within \(time)"
        }
        self.loss = "the connection was lost earlier: \(sentence)"
        if let refusal { return refusal }
        return code == .outcomeUnknown ? .unknownOutcome(sentence) : StateError(code, sentence)
    }
}

extension StateError {
    /// The refusal of a daemon that has too many clients, in the words of Redis, under its own code.
    fileprivate func naming(_ code: Code) -> StateError {
        let isFull = self.code == .err && message == "max number of clients reached"
        return isFull ? StateError(code, message) : self
    }
}
