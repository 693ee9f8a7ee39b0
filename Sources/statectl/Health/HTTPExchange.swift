import Glibc

/// One HTTP request on standard input and its reply: what a scraper needs, and no more.
struct HTTPExchange {
    /// The bytes of the reply.
    private(set) var reply: [UInt8] = []

    /// A request with its headers may have so many bytes.
    private static let requestByteLimit = 16 << 10
    /// How long it may take, in milliseconds.
    private static let patience: Int32 = 5_000

    /// Reads the request and makes the reply, which for an error of `body` has the status 503.
    mutating func answer(
        _ body: (_ path: String) throws(Failure) -> (status: Int, content: [UInt8])
    ) {
        guard let words = HTTPExchange.readRequest() else {
            return write(400, "this is no HTTP request\n".bytes, isHead: false)
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

    /// The words of the first line, once the headers have ended; nil if they do not.
    private static func readRequest() -> [Substring]? {
        var request: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 4_096)
        let end = Array("\r\n\r\n".utf8)
        while request.count < requestByteLimit {
            var waiting = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, patience) > 0 else { return nil }
            let count = read(STDIN_FILENO, &room, room.count)
            guard count > 0 else { return nil }
            let from = max(0, request.count - end.count)
            request += room[..<count]
            let isWhole = (from...max(from, request.count - end.count)).contains {
                request[$0...].starts(with: end)
            }
            guard isWhole else { continue }
            let line = String(decoding: request.prefix { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
            let words = line.split(separator: " ")
            return words.count == 3 && words[2].hasPrefix("HTTP/1.") ? words : nil
        }
        return nil
    }

    private mutating func write(_ status: Int, _ content: [UInt8], isHead: Bool) {
        let reasons = [
            200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed",
            503: "Service Unavailable",
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
