import CHTTP2

/// What nghttp2 calls.
extension HTTP2Connection {
    static func set(_ callbacks: OpaquePointer?) {
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            _,
            _,
            id,
            data,
            count,
            user in
            if let data {
                connection(of: user)?.take(id, UnsafeBufferPointer(start: data, count: count))
            }
            return 0
        }
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _,
            frame,
            name,
            nameCount,
            value,
            valueCount,
            _,
            user in
            guard let frame, let name, let value else { return 0 }
            connection(of: user)?.note(
                text(name, nameCount),
                text(value, valueCount),
                of: frame.pointee.hd.stream_id
            )
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, id, code, user in
            connection(of: user)?.end(id, code)
            return 0
        }
    }

    func give(
        _ id: Int32,
        _ buffer: UnsafeMutablePointer<UInt8>,
        _ capacity: Int,
        _ flags: UnsafeMutablePointer<UInt32>
    ) -> Int {
        guard let call = calls[id] else {
            return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
        }
        let left = call.outgoing.count - call.sentCount
        guard left > 0 || call.isLast else { return Int(NGHTTP2_ERR_DEFERRED.rawValue) }
        let count = min(left, capacity)
        for index in 0..<count { buffer[index] = call.outgoing[call.sentCount + index] }
        call.sentCount += count
        if count == left {
            (call.outgoing, call.sentCount) = ([], 0)
            if call.isLast { flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
        }
        return count
    }

    private func take(_ id: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard let call = calls[id] else { return }
        call.incoming += bytes
        var start = 0
        while call.incoming.count - start >= 5 {
            let head = call.incoming[start..<start + 5]
            let count = head.dropFirst().reduce(0) { $0 << 8 | Int($1) }
            // A call that is not a stream has one message.
            guard head.first == 0, count <= HTTP2Connection.messageByteCount,
                !call.isLast || call.messages.isEmpty
            else {
                failure = .cluster("\(host) has sent a message that cannot be read")
                return
            }
            guard call.incoming.count - start - 5 >= count else { break }
            call.messages.append(Array(call.incoming[start + 5..<start + 5 + count]))
            start += 5 + count
        }
        if start > 0 { call.incoming.removeFirst(start) }
    }

    private func note(_ name: String, _ value: String, of id: Int32) {
        guard let call = calls[id] else { return }
        var status = call.found
        switch name {
        case "grpc-status": status.code = Int(value)
        case "grpc-message": status.message = HTTP2Connection.decoded(value)
        case ":status" where value != "200": status.httpStatus = value
        default: return
        }
        call.found = status
    }

    private func end(_ id: Int32, _ code: UInt32) {
        guard let call = calls.removeValue(forKey: id) else { return }
        if call.found.code == nil, call.found.message.isEmpty {
            call.found.message =
                call.found.httpStatus.map { "HTTP status \($0)" } ?? "the call was ended (\(code))"
        }
        call.status = call.found
    }

    /// A message of gRPC, which has bytes as `%20`.
    private static func decoded(_ text: String) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            let digits = String(decoding: rest.prefix(2), as: UTF8.self)
            guard byte == UInt8(ascii: "%"), let number = UInt8(digits, radix: 16) else {
                bytes.append(byte)
                continue
            }
            bytes.append(number)
            rest = rest.dropFirst(2)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The connection that a callback belongs to.
private func connection(of user: UnsafeMutableRawPointer?) -> HTTP2Connection? {
    user.map { Unmanaged<HTTP2Connection>.fromOpaque($0).takeUnretainedValue() }
}

private func text(_ start: UnsafePointer<UInt8>, _ count: Int) -> String {
    String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
}
