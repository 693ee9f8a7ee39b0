import Glibc

/// A way for values from a writer to its subscribers.
struct DeliveryRoute: Sendable {
    enum Server: String, CaseIterable {
        /// STATE.WATCH of a prefix under RESP3, and SET: stored and synced before it is delivered.
        case stated
        /// SUBSCRIBE and PUBLISH: nothing is stored.
        case redis
        /// The same with a script that also sets a key, so that with `appendfsync always` it is
        /// synced before it is delivered.
        case redisStored = "redis-stored"
        /// Watch of a prefix and puts with the JSON gateway, over HTTP/1.1: stored and synced.
        case etcd
    }

    let server: Server
    private let socket: String
    /// Where subscribers are: another node of a cluster, or the same.
    private let watchSocket: String
    /// What the key begins with.
    private let folder: String
    private let port: Int

    init(_ options: Options) throws(BenchError) {
        let name = options.text("server", standard: "stated")
        guard let server = Server(rawValue: name) else {
            throw .usage("--server expects stated, redis, redis-stored or etcd, not '\(name)'")
        }
        self.server = server
        socket = server == .etcd ? "" : try options.text("socket")
        watchSocket = options.text("watch-socket", standard: socket)
        folder = options.text("folder", standard: "")
        port = try options.number("port", standard: 2379)
    }

    func connect() throws(BenchError) -> Connection {
        server == .etcd ? try Connection(port: port) : try Connection(socket: socket)
    }

    /// The same for a subscriber.
    func connectSubscriber() throws(BenchError) -> Connection {
        server == .etcd ? try connect() : try Connection(socket: watchSocket)
    }

    /// Subscribes, on a blocking connection, and waits for the confirmation.
    func subscribe(_ connection: Connection) throws(BenchError) {
        switch server {
        case .stated:
            try connection.ask("HELLO", "3")
            try connection.ask("STATE.WATCH", "\(folder)delivery/")
        case .redis, .redisStored:
            try connection.ask("SUBSCRIBE", "delivery")
        case .etcd:
            connection.output.append(
                etcdRequest(
                    "watch",
                    """
                    {"create_request":{"key":"\(base64("delivery/"))",\
                    "range_end":"\(base64("delivery0"))"}}
                    """
                )
            )
            guard try connection.flush() else { throw .failed("the connection was closed") }
            try connection.awaitChunk(containing: "\"created\":true")
        }
    }

    // MARK: The writer's side

    /// How many connections writes use in turn: etcd answers a connection's put before it reads the
    /// next.
    var writerCount: Int { server == .etcd ? 8 : 1 }

    func makeRequest(valueByteCount: Int) -> DeliveryRequest {
        let value = String(repeating: "v", count: valueByteCount)
        switch server {
        case .stated: return request(["SET", "\(folder)delivery/key", value], valueByteCount)
        case .redis: return request(["PUBLISH", "delivery", value], valueByteCount)
        case .redisStored:
            let script =
                "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('PUBLISH', KEYS[1], ARGV[1])"
            return request(["EVAL", script, "1", "delivery", value], valueByteCount)
        case .etcd:
            let encoded = base64(value)
            let text = etcdRequest(
                "kv/put",
                "{\"key\":\"\(base64("delivery/key"))\",\"value\":\"\(encoded)\"}"
            )
            let bytes = Array(text.utf8)
            return DeliveryRequest(
                bytes,
                offset: bytes.count - 2 - encoded.utf8.count,
                isEncoded: true
            )
        }
    }

    /// A command whose last word is the value.
    private func request(_ words: [String], _ valueByteCount: Int) -> DeliveryRequest {
        var queue = ByteQueue(capacity: 256)
        queue.append(command: words)
        let bytes = Array(queue.bytes)
        return DeliveryRequest(bytes, offset: bytes.count - 2 - valueByteCount, isEncoded: false)
    }

    /// Checks the answers that have arrived.
    ///
    /// - Returns: Their number.
    func takeAnswers(_ connection: Connection) throws(BenchError) -> Int {
        var count = 0
        guard server == .etcd else {
            try connection.takeReplies { (reply) throws(BenchError) in
                guard reply[0] != UInt8(ascii: "-") else {
                    throw .failed(String(decoding: reply, as: UTF8.self))
                }
                count += 1
            }
            return count
        }
        while try connection.takeResponse() { count += 1 }
        return count
    }

    // MARK: The subscribers' side

    /// Passes on the stamp of each value that has arrived.
    func takeStamps(
        _ connection: Connection,
        _ body: (UInt64) -> Void
    ) throws(BenchError) {
        guard server == .etcd else {
            try connection.takeReplies { (push) throws(BenchError) in
                body(try stamp(in: push))
            }
            return
        }
        try connection.takeChunks { (chunk) throws(BenchError) in
            guard let start = chunk.offset(after: "\"value\":\"") else {
                throw .failed("no value in '\(String(decoding: chunk, as: UTF8.self))'")
            }
            let length = Base64.encodedCount(DeliveryStamp.byteCount + 1)
            body(DeliveryStamp.read(Base64.decode(chunk[start...].prefix(length))))
        }
    }

    /// The stamp of a RESP push: its value is the last bulk string in it, after the last `$` line.
    private func stamp(in push: UnsafeRawBufferPointer) throws(BenchError) -> UInt64 {
        var end = push.count - 2
        while end > 0, push[end - 1] != UInt8(ascii: "\n") { end -= 1 }
        guard end > 0, push.count - 2 - end >= DeliveryStamp.byteCount else {
            throw .failed("no value in '\(String(decoding: push, as: UTF8.self))'")
        }
        return DeliveryStamp.read(push[end...])
    }

    private func base64(_ text: String) -> String {
        String(decoding: Base64.encode(Array(text.utf8)), as: UTF8.self)
    }

    private func etcdRequest(_ path: String, _ body: String) -> String {
        "POST /v3/\(path) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }
}
