import CHTTP2
import Glibc
import StateSystem

/// Calls of gRPC over one connection of HTTP/2.
///
/// https://github.com/grpc/grpc/blob/v1.30.0/doc/PROTOCOL-HTTP2.md
package final class HTTP2Connection {
    private let stream: SecureStream
    let host: String
    private var session: OpaquePointer?
    var calls: [Int32: Call] = [:]
    private var unsent: [UInt8] = []
    private static let writeByteCount = 64 << 10
    private var room = [UInt8](repeating: 0, count: 64 << 10)
    var failure: LinkFailure?
    /// When something has come last, on the monotonic clock in milliseconds.
    private(set) var receivedAt = SystemClock.monotonicMilliseconds()

    /// One message may be so long, in bytes.
    static let messageByteCount = 512 << 20
    /// What a peer may send before it is acknowledged, in bytes.
    private static let windowByteCount: Int32 = 4 << 20

    /// A call, or a stream of messages in both directions.
    package final class Call {
        var outgoing: [UInt8] = []
        var sentCount = 0
        var isLast: Bool
        var incoming: [UInt8] = []
        /// The messages that have come.
        var messages: [[UInt8]] = []
        /// What its headers have said so far.
        var found = Status()
        /// Set once it has ended.
        var status: Status?

        init(_ message: [UInt8], isLast: Bool) {
            self.isLast = isLast
            add(message)
        }

        func add(_ message: [UInt8]) {
            outgoing.append(0)
            let count = UInt32(message.count)
            for shift in stride(from: 24, through: 0, by: -8) {
                outgoing.append(UInt8(truncatingIfNeeded: count >> UInt32(shift)))
            }
            outgoing += message
        }
    }

    /// How a call ended.
    struct Status {
        /// The code of gRPC; nil if there was none.
        var code: Int?
        var message = ""
        /// The status of HTTP, if it is not 200.
        var httpStatus: String?
    }

    /// - Throws: ``LinkFailure/cluster(_:)``.
    init(_ endpoint: Endpoint, _ certificates: Certificates?) throws(LinkFailure) {
        stream = try SecureStream(endpoint, certificates)
        host = "\(endpoint)"
        var callbacks: OpaquePointer?
        nghttp2_session_callbacks_new(&callbacks)
        defer { nghttp2_session_callbacks_del(callbacks) }
        HTTP2Connection.set(callbacks)
        let this = Unmanaged.passUnretained(self).toOpaque()
        guard nghttp2_session_client_new(&session, callbacks, this) == 0 else {
            throw .cluster("HTTP/2 cannot begin")
        }
        var settings = nghttp2_settings_entry(
            settings_id: Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue),
            value: UInt32(HTTP2Connection.windowByteCount)
        )
        nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), &settings, 1)
        nghttp2_session_set_local_window_size(
            session,
            UInt8(NGHTTP2_FLAG_NONE.rawValue),
            0,
            HTTP2Connection.windowByteCount
        )
    }

    deinit { nghttp2_session_del(session) }

    var descriptor: Int32 { stream.descriptor }
    var wantsWrite: Bool {
        !unsent.isEmpty || stream.wantsWrite || nghttp2_session_want_write(session) != 0
    }

    /// Whether something can be received that poll(2) does not report.
    var hasInput: Bool { stream.hasInput }

    // MARK: Calls

    /// Begins a call.
    ///
    /// - Parameters:
    ///   - path: The method, such as `/etcdserverpb.KV/Range`.
    ///   - message: The first message.
    ///   - isLast: Whether no other follows.
    /// - Returns: The call, which has no answer yet.
    /// - Throws: ``LinkFailure/cluster(_:)``.
    func begin(_ path: String, _ message: [UInt8], isLast: Bool) throws(LinkFailure) -> Call {
        let call = Call(message, isLast: isLast)
        // With `hasleader`, a member that has lost the others says so instead of waiting.
        let fields = [
            (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", host),
            ("te", "trailers"), ("content-type", "application/grpc"), ("hasleader", "true"),
        ]
        var provider = nghttp2_data_provider()
        provider.read_callback = { _, id, buffer, capacity, flags, _, user in
            guard let user, let buffer, let flags else { return -1 }
            let this = Unmanaged<HTTP2Connection>.fromOpaque(user).takeUnretainedValue()
            return this.give(id, buffer, capacity, flags)
        }
        let id = HTTP2Connection.withFields(fields) {
            nghttp2_submit_request(session, nil, $0.baseAddress, $0.count, &provider, nil)
        }
        guard id > 0 else { throw .cluster("a call of etcd cannot begin (\(id))") }
        calls[id] = call
        return call
    }

    private static func withFields<R>(
        _ fields: [(String, String)],
        _ body: (UnsafeBufferPointer<nghttp2_nv>) -> R
    ) -> R {
        let bytes = fields.map { (Array($0.0.utf8), Array($0.1.utf8)) }
        let all = UnsafeMutableBufferPointer<UInt8>.allocate(
            capacity: bytes.reduce(0) { $0 + $1.0.count + $1.1.count }
        )
        defer { all.deallocate() }
        var end = 0
        func place(_ bytes: [UInt8]) -> UnsafeMutablePointer<UInt8>? {
            defer { end += bytes.count }
            for (index, byte) in bytes.enumerated() { all[end + index] = byte }
            return all.baseAddress.map { $0 + end }
        }
        let list = bytes.map { name, value in
            nghttp2_nv(
                name: place(name),
                value: place(value),
                namelen: name.count,
                valuelen: value.count,
                flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue)
            )
        }
        return list.withUnsafeBufferPointer(body)
    }

    // MARK: The socket

    /// Sends what waits, as far as the socket takes it.
    ///
    /// - Throws: ``LinkFailure/cluster(_:)``.
    func flush() throws(LinkFailure) {
        while true {
            if unsent.isEmpty { try collect() }
            guard !unsent.isEmpty else { return }
            switch try stream.write(unsent[...]) {
            case .moved(let count): unsent.removeFirst(count)
            case .mustWait: return
            case .ended: throw .cluster("\(host) has closed the connection")
            }
        }
    }

    /// Takes the frames that can be sent: those of a call together, for each write is a packet.
    private func collect() throws(LinkFailure) {
        while unsent.count < HTTP2Connection.writeByteCount {
            var data: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &data)
            guard count >= 0 else { throw .cluster("\(host): HTTP/2 failed (\(count))") }
            guard count > 0, let data else { return }
            unsent += UnsafeBufferPointer(start: data, count: count)
        }
    }

    /// Takes what has come; messages are then in their calls.
    ///
    /// - Throws: ``LinkFailure/cluster(_:)``.
    func receive() throws(LinkFailure) {
        // In bounds, so that what was taken can be handed on meanwhile.
        for _ in 0..<16 {
            switch try stream.read(into: &room) {
            case .moved(let count):
                receivedAt = SystemClock.monotonicMilliseconds()
                let taken = nghttp2_session_mem_recv(session, room, count)
                guard taken >= 0 else { throw .cluster("\(host) does not speak HTTP/2 (\(taken))") }
                if let failure { throw failure }
                // What comes later, poll(2) reports.
                if count < room.count, !stream.hasInput { return }
            case .mustWait: return
            case .ended: throw .cluster("\(host) has closed the connection")
            }
        }
    }
}
