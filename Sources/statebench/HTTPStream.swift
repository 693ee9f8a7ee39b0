import Glibc

/// The part of HTTP/1.1 that etcd's JSON gateway uses: bodies of a known length, and chunked bodies
/// (RFC 9112, 7.1).
extension Connection {
    /// Passes on each complete chunk of an endless response; its head is skipped.
    func takeChunks(
        _ body: (UnsafeRawBufferPointer) throws(BenchError) -> Void
    ) throws(BenchError) {
        while true {
            let bytes = receivedBytes
            guard !bytes.isEmpty else { return }
            if bytes[0] == UInt8(ascii: "H") {
                guard let end = bytes.offset(after: "\r\n\r\n") else { return }
                try HTTPHead(bytes[..<end]).checkStatus()
                consumeReceived(end)
                continue
            }
            guard let start = bytes.offset(after: "\r\n") else { return }
            let digits = String(decoding: bytes[..<(start - 2)], as: UTF8.self)
            guard let count = Int(digits, radix: 16), count > 0 else {
                throw .failed("a chunk of '\(digits)' bytes: the response has ended")
            }
            guard bytes.count >= start + count + 2 else { return }
            try body(UnsafeRawBufferPointer(rebasing: bytes[start..<(start + count)]))
            consumeReceived(start + count + 2)
        }
    }

    /// Removes a complete response with a length.
    ///
    /// - Returns: Whether there was one.
    /// - Throws: Its status, unless it is a success.
    func takeResponse() throws(BenchError) -> Bool {
        guard let end = receivedBytes.offset(after: "\r\n\r\n") else { return false }
        let head = HTTPHead(receivedBytes[..<end])
        let count = try head.contentLength()
        guard receivedBytes.count >= end + count else { return false }
        try head.checkStatus()
        consumeReceived(end + count)
        return true
    }

    /// Waits for a chunk that contains `text`, on a blocking connection.
    func awaitChunk(containing text: StaticString) throws(BenchError) {
        var isFound = false
        while !isFound {
            guard case .bytes = try receive() else { throw .failed("the connection was closed") }
            try takeChunks { (chunk) throws(BenchError) in
                if chunk.offset(after: text) != nil { isFound = true }
            }
        }
    }
}

/// The lines before a response's body.
private struct HTTPHead {
    private let lines: [Substring]

    init(_ bytes: Slice<UnsafeRawBufferPointer>) {
        let text = String(decoding: bytes, as: UTF8.self)
        lines = text.split(separator: "\r\n")
    }

    func checkStatus() throws(BenchError) {
        let status = lines.first ?? ""
        guard status.hasPrefix("HTTP/1.1 200") else { throw .failed(String(status)) }
    }

    func contentLength() throws(BenchError) -> Int {
        let name = "content-length:"
        let line = lines.first { $0.lowercased().hasPrefix(name) }
        let digits = line?.dropFirst(name.utf8.count).drop { $0 == " " }
        guard let count = digits.flatMap({ Int($0) }) else {
            throw .failed("a response without a length: \(lines)")
        }
        return count
    }
}

extension UnsafeRawBufferPointer {
    /// The end of the first `text`; nil if there is none.
    func offset(after text: StaticString) -> Int? {
        guard let base = baseAddress else { return nil }
        let length = text.utf8CodeUnitCount
        var start = 0
        while start + length <= count {
            let first = Int32(text.utf8Start[0])
            guard let found = memchr(base + start, first, count - length - start + 1) else {
                return nil
            }
            if memcmp(found, text.utf8Start, length) == 0 {
                return UnsafeRawPointer(found) - base + length
            }
            start = UnsafeRawPointer(found) - base + 1
        }
        return nil
    }
}

/// RFC 4648, 4.
enum Base64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 0, count: 256)
        for (index, byte) in alphabet.enumerated() { values[Int(byte)] = UInt8(index) }
        return values
    }()

    static func encodedCount(_ count: Int) -> Int { (count + 2) / 3 * 4 }

    static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var encoded: [UInt8] = []
        encoded.reserveCapacity(encodedCount(bytes.count))
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            var bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for _ in 0...group.count {
                encoded.append(alphabet[bits >> 18 & 63])
                bits <<= 6
            }
            for _ in group.count..<3 { encoded.append(UInt8(ascii: "=")) }
        }
        return encoded
    }

    /// Decodes whole groups of four characters without padding.
    static func decode(_ encoded: some Sequence<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        var bits = 0
        var count = 0
        for byte in encoded {
            bits = bits << 6 | Int(values[Int(byte)])
            count += 1
            guard count == 4 else { continue }
            for shift in [16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: bits >> shift)) }
            (bits, count) = (0, 0)
        }
        return bytes
    }
}
