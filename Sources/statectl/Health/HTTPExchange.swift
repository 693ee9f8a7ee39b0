import Glibc

/// One HTTP request on standard input and its reply: what a scraper needs, and no more.
struct HTTPExchange {
    /// The bytes of the reply.
    private(set) var reply: [UInt8] = []

    /// A request with its headers may have so many bytes.
    private static let requestByteLimit = 16 << 10
    /// How long all of it may take to arrive.
    private static let patience = Duration.seconds(2)

    private enum Request {
        /// The words of the first line.
        case whole([Substring])
        case malformed
        case late
    }

    /// Reads the request and makes the reply, which for an error of `body` has the status 503.
    mutating func answer(
        _ body: (_ path: String) throws(Failure) -> (status: Int, content: [UInt8])
    ) {
        let words: [Substring]
        switch HTTPExchange.readRequest() {
        case .whole(let found): words = found
        case .malformed: return write(400, "this is no HTTP request\n".bytes, isHead: false)
        case .late: return write(408, "the request took too long\n".bytes, isHead: false)
        }
        let isHead = words[0] == "HEAD"
        guard isHead || words[0] == "GET" else {
            return write(405, "only GET and HEAD are known\n".bytes, isHead: false)
        }
        let path = String(words[1].prefix { $0 != "?" })
        do throws(Failure) {
            let (status, content) = try body(path)
            write(status, content, isHead: isHead)
        } catch {
            write(503, "\(error.message ?? "")\n".bytes, isHead: isHead)
        }
    }

    /// Reads until the headers have ended.
    ///
    /// The time is that of the whole request: a client that sends
    /// a byte now and then gets no more of it.
    private static func readRequest() -> Request {
        let deadline = ContinuousClock.now + patience
        var request: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 4_096)
        let end = Array("\r\n\r\n".utf8)
        while request.count < requestByteLimit {
            guard isReadable(until: deadline) else { return .late }
            let count = read(STDIN_FILENO, &room, room.count)
            guard count > 0 else { return .malformed }
            let from = max(0, request.count - end.count)
            request += room[..<count]
            let isWhole = (from...max(from, request.count - end.count)).contains {
                request[$0...].starts(with: end)
            }
            if isWhole { return firstLine(of: request) }
        }
        return .malformed
    }

    private static func firstLine(of request: [UInt8]) -> Request {
        let line = String(decoding: request.prefix { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
        let words = line.split(separator: " ")
        return words.count == 3 && words[2].hasPrefix("HTTP/1.") ? .whole(words) : .malformed
    }

    private static func isReadable(until deadline: ContinuousClock.Instant) -> Bool {
        while true {
            let left = ContinuousClock.now.duration(to: deadline)
            guard left > .zero else { return false }
            let milliseconds = Int32(left / .milliseconds(1)) + 1
            var waiting = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            let count = poll(&waiting, 1, milliseconds)
            if count > 0 { return true }
            guard count == 0 || errno == EINTR else { return false }
        }
    }

    private mutating func write(_ status: Int, _ content: [UInt8], isHead: Bool) {
        let reasons = [
            200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed",
            408: "Request Timeout", 503: "Service Unavailable",
        ]
        reply +=
            """
            HTTP/1.1 \(status) \(reasons[status] ?? "")\r
            Content-Type: text/plain; version=0.0.4; charset=utf-8\r
            Content-Length: \(content.count)\r
            Connection: close\r
            \r\n
            """.utf8
        if !isHead { reply += content }
    }
}
