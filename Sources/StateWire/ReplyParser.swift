package import StateModel
import StatePlatform

/// Why bytes are not a reply.
///
/// The connection that sent them cannot be used any more.
package enum ReplyError: Error, Hashable, Sendable {
    /// A first byte that is not a known type.
    case unknownType(UInt8)
    /// A length or a number that is invalid.
    case badNumber(String)
    /// A line or a bulk without CR LF at its end, or a value that its type does not allow.
    case malformed
    /// Aggregates nested deeper than ``ReplyParser/depthLimit``.
    case tooDeep
    /// More bytes in one reply than ``ReplyParser/byteLimit``.
    case tooBig
}

extension ReplyError: CustomStringConvertible {
    /// A sentence for messages.
    package var description: String {
        switch self {
        case .unknownType(let byte): "a reply begins with byte \(byte), which is not a known type"
        case .badNumber(let text): "a reply has '\(text)' instead of a number"
        case .malformed: "a reply is malformed"
        case .tooDeep: "a reply is nested deeper than \(ReplyParser.depthLimit) levels"
        case .tooBig: "a reply is larger than its limit"
        }
    }
}

/// Reads replies from bytes that arrive in pieces.
///
/// The parsed part of an unfinished aggregate is kept on a stack and never parsed again. So a reply
/// costs O(*n*) in its bytes, however it is split.
package struct ReplyParser: Sendable {
    /// How deep aggregates may be nested.
    package static let depthLimit = 16
    /// The longest line (a status, an error, a number), in bytes.
    package static let lineByteLimit = 64 << 10

    /// The most bytes of one reply; a larger one is refused before it is buffered.
    package let byteLimit: Int

    private var buffer: [UInt8] = []
    /// Everything before this index was parsed.
    private var start = 0
    /// There is no line feed between `start` and this index.
    private var searched = 0
    /// A bulk whose header was parsed and whose bytes have not all arrived.
    private var bulk: (kind: UInt8, byteCount: Int)?
    private var open: [Aggregate] = []
    /// Bytes of the reply that is being parsed.
    private var replyByteCount = 0

    private struct Aggregate {
        var kind: UInt8
        var missing: Int
        var elements: [Reply] = []
    }

    /// Creates a parser; the default limit is above any reply of `stated`.
    package init(byteLimit: Int = 512 << 20) {
        self.byteLimit = byteLimit
    }

    /// Adds bytes that arrived.
    package mutating func append(_ bytes: Bytes) {
        if start == buffer.count {
            buffer.removeAll(keepingCapacity: true)
            (start, searched) = (0, 0)
        } else if start > buffer.count / 2 {
            buffer.removeFirst(start)
            searched -= start
            start = 0
        }
        buffer += bytes
    }

    /// The next reply, or nil if it needs more bytes.
    ///
    /// - Throws: ``ReplyError``, after which the parser cannot be used any more.
    package mutating func next() throws(ReplyError) -> Reply? {
        while let element = try nextElement() {
            guard let reply = fold(element) else { continue }
            replyByteCount = 0
            return reply
        }
        return nil
    }

    /// A complete element, or the fact that an aggregate has begun or an attribute was skipped.
    private enum Element {
        case whole(Reply)
        case partial
    }

    /// Adds an element to the open aggregate, and returns the reply that it completes.
    private mutating func fold(_ element: Element) -> Reply? {
        guard case .whole(var reply) = element else { return nil }
        while let last = open.indices.last {
            open[last].elements.append(reply)
            open[last].missing -= 1
            guard open[last].missing == 0 else { return nil }
            guard let whole = Self.close(open.removeLast()) else { return nil }
            reply = whole
        }
        return reply
    }

    /// The reply of a complete aggregate; nil for an attribute.
    private static func close(_ aggregate: Aggregate) -> Reply? {
        switch aggregate.kind {
        case UInt8(ascii: "%"): .array(aggregate.elements).pairs.map { .map($0) }
        case UInt8(ascii: ">"): .push(aggregate.elements)
        case UInt8(ascii: "|"): nil
        default: .array(aggregate.elements)
        }
    }

    private mutating func nextElement() throws(ReplyError) -> Element? {
        if let bulk { return try takeBulk(bulk.kind, bulk.byteCount) }
        guard let line = try takeLine() else { return nil }
        let kind = buffer[line.lowerBound]
        let body = line.dropFirst()
        switch kind {
        case UInt8(ascii: "$"), UInt8(ascii: "="), UInt8(ascii: "!"):
            let byteCount = try count(in: body)
            guard byteCount >= 0 else { return .whole(.null) }
            guard byteCount <= byteLimit - replyByteCount else { throw .tooBig }
            bulk = (kind, byteCount)
            return try takeBulk(kind, byteCount)
        case UInt8(ascii: "*"), UInt8(ascii: "~"), UInt8(ascii: ">"), UInt8(ascii: "%"),
            UInt8(ascii: "|"):
            return try begin(kind, count: try count(in: body))
        default:
            return .whole(try scalar(kind, body))
        }
    }

    private mutating func begin(_ kind: UInt8, count: Int) throws(ReplyError) -> Element {
        guard count >= 0 else { return .whole(.null) }
        guard count <= byteLimit else { throw .tooBig }
        let isPaired = kind == UInt8(ascii: "%") || kind == UInt8(ascii: "|")
        var aggregate = Aggregate(kind: kind, missing: isPaired ? count * 2 : count)
        guard aggregate.missing > 0 else {
            return Self.close(aggregate).map { .whole($0) } ?? .partial
        }
        guard open.count < Self.depthLimit else { throw .tooDeep }
        // A length is only a claim: the memory is not allocated before the elements arrive.
        aggregate.elements.reserveCapacity(min(aggregate.missing, 64))
        open.append(aggregate)
        return .partial
    }

    private func scalar(_ kind: UInt8, _ body: Range<Int>) throws(ReplyError) -> Reply {
        switch kind {
        case UInt8(ascii: "+"): return .simple(text(body))
        case UInt8(ascii: "-"): return .error(StateError(line: text(body)))
        case UInt8(ascii: ":"): return .integer(Int64(try count(in: body)))
        case UInt8(ascii: "("): return Int64(text(body)).map { .integer($0) } ?? .bulk(bytes(body))
        case UInt8(ascii: "_"): return .null
        case UInt8(ascii: ","):
            guard let number = Double(text(body)) else { throw .badNumber(text(body)) }
            return .double(number)
        case UInt8(ascii: "#"):
            guard text(body) == "t" || text(body) == "f" else { throw .malformed }
            return .boolean(text(body) == "t")
        default: throw .unknownType(kind)
        }
    }

    /// The line at `start` without CR LF, or nil if its end has not arrived.
    private mutating func takeLine() throws(ReplyError) -> Range<Int>? {
        let found = buffer.withUnsafeBytes { bytes -> Int? in
            guard searched < bytes.count, let base = bytes.baseAddress else { return nil }
            guard let end = memchr(base + searched, 0x0A, bytes.count - searched) else {
                return nil
            }
            return UnsafeRawPointer(end) - base
        }
        guard let lineFeed = found else {
            searched = buffer.count
            guard buffer.count - start <= Self.lineByteLimit else { throw .tooBig }
            return nil
        }
        guard lineFeed - start >= 2, buffer[lineFeed - 1] == UInt8(ascii: "\r") else {
            throw .malformed
        }
        let line = start..<lineFeed - 1
        try advance(to: lineFeed + 1)
        return line
    }

    private mutating func takeBulk(_ kind: UInt8, _ byteCount: Int) throws(ReplyError) -> Element? {
        let end = start + byteCount
        guard buffer.count >= end + 2 else { return nil }
        guard buffer[end] == UInt8(ascii: "\r"), buffer[end + 1] == UInt8(ascii: "\n") else {
            throw .malformed
        }
        let body = start..<end
        bulk = nil
        try advance(to: end + 2)
        switch kind {
        case UInt8(ascii: "!"): return .whole(.error(StateError(line: text(body))))
        // A verbatim string begins with three letters of a format and a colon.
        case UInt8(ascii: "="): return .whole(.bulk(bytes(body.dropFirst(4))))
        default: return .whole(.bulk(bytes(body)))
        }
    }

    private mutating func advance(to index: Int) throws(ReplyError) {
        replyByteCount += index - start
        (start, searched) = (index, index)
        guard replyByteCount <= byteLimit else { throw .tooBig }
    }

    private func count(in body: Range<Int>) throws(ReplyError) -> Int {
        guard let number = Int(text(body)) else { throw .badNumber(text(body)) }
        return number
    }

    private func text(_ range: Range<Int>) -> String {
        String(decoding: buffer[range], as: UTF8.self)
    }

    private func bytes(_ range: Range<Int>) -> [UInt8] { Array(buffer[range]) }
}

extension StateError {
    /// Parses an error line of the wire; its first word is the code if it is in upper case.
    package init(line: String) {
        let word = line.prefix { $0 != " " }
        let isCode = !word.isEmpty && word.utf8.allSatisfy { (0x41...0x5A).contains($0) }
        if isCode {
            self.init(Code(String(word)), String(line.dropFirst(word.count + 1)))
        } else {
            self.init(.err, line)
        }
    }
}
