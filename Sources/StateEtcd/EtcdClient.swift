import Glibc
import StateSystem

/// One member of etcd: calls that wait for their answers, and one watch.
package final class EtcdClient {
    private let connection: HTTP2Connection
    let endpoint: Endpoint
    private var watch: HTTP2Connection.Call?
    /// Of the newest revision that has come more may follow.
    private var unfinished: [EtcdEvent] = []

    /// How long a call may take, in milliseconds: a member that starts accepts connections and is
    /// silent for 10 s, and one that has lost the others says so after 3.3 to 4.7 s.
    package static let patience: Int64 = 5_000
    /// How long connecting may take.
    static let connectPatience: Int64 = 1_500

    /// - Throws: ``LinkFailure/cluster(_:)``.
    package init(_ endpoint: Endpoint, _ certificates: Certificates?) throws(LinkFailure) {
        self.endpoint = endpoint
        connection = try HTTP2Connection(endpoint, certificates)
    }

    package var descriptor: Int32 { connection.descriptor }
    package var wantsWrite: Bool { connection.wantsWrite }
    /// Whether something can be received that poll(2) does not report.
    var hasInput: Bool { connection.hasInput }

    /// When it has sent something last, on the monotonic clock in milliseconds.
    var lastReceivedAt: Int64 { connection.receivedAt }

    package func flush() throws(LinkFailure) { try connection.flush() }
    package func receive() throws(LinkFailure) { try connection.receive() }

    /// Begins a call; its answer is in ``answer(of:)`` later.
    package func begin(
        _ method: Method,
        _ message: [UInt8]
    ) throws(LinkFailure) -> HTTP2Connection.Call {
        try connection.begin(method.rawValue, message, isLast: method != .watch)
    }

    package enum Method: String {
        case range = "/etcdserverpb.KV/Range"
        case put = "/etcdserverpb.KV/Put"
        case transaction = "/etcdserverpb.KV/Txn"
        case watch = "/etcdserverpb.Watch/Watch"
        case grant = "/etcdserverpb.Lease/LeaseGrant"
    }

    /// The answer of a call that has ended; nil if it has not.
    ///
    /// - Throws: ``LinkFailure/cluster(_:)``, with what etcd says.
    package func answer(of call: HTTP2Connection.Call) throws(LinkFailure) -> [UInt8]? {
        guard let status = call.status else { return nil }
        guard status.code == 0, let message = call.messages.first else {
            throw .cluster("\(endpoint): \(status.message)")
        }
        return message
    }

    /// The code for a client of a call that was refused, after which nothing was changed; nil if
    /// that is not known.
    ///
    /// https://github.com/etcd-io/etcd/blob/v3.4.23/etcdserver/api/v3rpc/rpctypes/error.go
    static func refusal(_ status: HTTP2Connection.Status) -> String? {
        switch status.code {
        case 3: "TOOBIG"
        case 7: "NOPERM"
        case 8 where status.message.contains("space"): "NOSPACE"
        case 8 where status.message.contains("larger"): "TOOBIG"
        default: nil
        }
    }

    /// Makes a call and waits for its answer.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - message: Its message.
    ///   - patience: How long it may take, in milliseconds.
    /// - Returns: The message of the answer.
    /// - Throws: ``LinkFailure/cluster(_:)``.
    package func call(
        _ method: Method,
        _ message: [UInt8],
        patience: Int64 = EtcdClient.patience
    ) throws(LinkFailure) -> [UInt8] {
        let call = try begin(method, message)
        try wait(for: call, patience: patience)
        guard let answer = try answer(of: call) else {
            preconditionFailure("a call that has ended has an answer")
        }
        return answer
    }

    /// Makes a call that etcd may refuse, because it has no room or the node may only read.
    ///
    /// - Throws: ``LinkFailure/cluster(_:)`` for everything else.
    func tryCall(_ method: Method, _ message: [UInt8]) throws(LinkFailure) {
        let call = try begin(method, message)
        try wait(for: call, patience: EtcdClient.patience)
        if let status = call.status, EtcdClient.refusal(status) != nil { return }
        _ = try answer(of: call)
    }

    private func wait(
        for call: HTTP2Connection.Call,
        patience: Int64
    ) throws(LinkFailure) {
        let deadline = SystemClock.monotonicMilliseconds() + patience
        while true {
            try connection.flush()
            guard call.status == nil else { return }
            let left = deadline - SystemClock.monotonicMilliseconds()
            guard left > 0 else { throw .cluster("\(endpoint) does not answer") }
            var waiting = pollfd(
                fd: descriptor,
                events: Int16(POLLIN) | (connection.wantsWrite ? Int16(POLLOUT) : 0),
                revents: 0
            )
            poll(&waiting, 1, Int32(clamping: left))
            try connection.receive()
        }
    }

    package func range(
        _ key: [UInt8],
        end: [UInt8] = [],
        limit: Int64 = 0,
        revision: Int64 = 0,
        changedAt changed: Int64 = 0,
        patience: Int64 = EtcdClient.patience
    ) throws(LinkFailure) -> EtcdRange {
        let message = EtcdMessages.range(
            key,
            end: end,
            limit: limit,
            revision: revision,
            changedAt: changed
        )
        let answer = try call(.range, message, patience: patience)
        do throws(MalformedMessage) { return try EtcdRange(answer[...]) } catch {
            throw .cluster("\(endpoint) has sent what cannot be read")
        }
    }

    // MARK: The watch

    /// Begins to watch all keys with a prefix, from a revision on.
    package func watch(_ prefix: [UInt8], from revision: Int64) throws(LinkFailure) {
        let end = EtcdMessages.end(of: prefix)
        watch = try begin(.watch, EtcdMessages.watch(prefix, end: end, from: revision))
    }

    /// What the watch has brought, oldest first.
    ///
    /// - Throws: ``LinkFailure/mustCompare(_:)`` if its beginning was compacted;
    ///   ``LinkFailure/cluster(_:)`` if it has ended otherwise.
    package func takeEvents() throws(LinkFailure) -> [EtcdEvent] {
        guard let watch else { return [] }
        var events: [EtcdEvent] = []
        defer { watch.messages = [] }
        for message in watch.messages {
            let response: EtcdWatchResponse
            do throws(MalformedMessage) { response = try EtcdWatchResponse(message[...]) } catch {
                throw .cluster("\(endpoint) has sent what cannot be read")
            }
            guard response.compactRevision == 0 else {
                throw .mustCompare(
                    "etcd has compacted its history up to revision \(response.compactRevision)"
                )
            }
            guard !response.isCanceled else {
                throw .cluster("\(endpoint) has ended the watch: \(response.cancelReason)")
            }
            unfinished += response.events
            let last = response.isFragment ? unfinished.last?.entry.modRevision : nil
            let end = unfinished.firstIndex { $0.entry.modRevision == last } ?? unfinished.count
            events += unfinished[..<end]
            unfinished.removeFirst(end)
        }
        if let status = watch.status { throw .cluster("\(endpoint): \(status.message)") }
        return events
    }
}
