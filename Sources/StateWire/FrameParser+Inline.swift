import StateModel
import StatePlatform

/// Inline commands, as people type them: words in one line, possibly in quotes.
extension FrameParser {
    mutating func nextInline(_ input: Bytes) throws(WireError) -> Step {
        guard let base = input.baseAddress,
            let found = memchr(
                base,
                Int32(UInt8(ascii: "\n")),
                min(input.count, limits.inlineByteCount)
            )
        else {
            guard input.count < limits.inlineByteCount else {
                throw .inlineTooLong(limit: limits.inlineByteCount)
            }
            return .more
        }
        let lineEnd = UnsafeRawPointer(found) - base
        inline.removeAll()
        spanCount = 0
        var index = 0
        while true {
            while index < lineEnd, Self.isBlank(input[index]) { index += 1 }
            guard index < lineEnd else { break }
            let start = inline.count
            index = try takeWord(input, index, lineEnd)
            appendSpan(Arguments.Span(offset: start, count: inline.count - start))
        }
        guard spanCount > 0 else { return .skip(lineEnd + 1) }
        // A single empty word may have left the buffer without memory; for no bytes, any address
        // will do.
        return .frame(
            Arguments(base: inline.bytes.baseAddress ?? base, spans: spans, count: spanCount),
            byteCount: lineEnd + 1
        )
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\r")
    }

    /// Copies one word without its quotes; returns the index after it.
    private mutating func takeWord(
        _ input: Bytes,
        _ start: Int,
        _ end: Int
    ) throws(WireError) -> Int {
        var index = start
        while index < end, !Self.isBlank(input[index]) {
            let byte = input[index]
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                index = try takeQuoted(input, index + 1, end, quote: byte)
                // As in Redis, only a blank or the end may follow a closing quote.
                guard index == end || Self.isBlank(input[index]) else { throw .unbalancedQuotes }
            } else {
                inline.append(byte)
                index += 1
            }
        }
        return index
    }

    private mutating func takeQuoted(
        _ input: Bytes,
        _ start: Int,
        _ end: Int,
        quote: UInt8
    )
        throws(WireError) -> Int
    {
        var index = start
        while index < end, input[index] != quote {
            guard input[index] == UInt8(ascii: "\\"), index + 1 < end else {
                inline.append(input[index])
                index += 1
                continue
            }
            let next = input[index + 1]
            if quote == UInt8(ascii: "'") {
                if next != quote { inline.append(input[index]) }
                inline.append(next)
                index += 2
            } else if next == UInt8(ascii: "x"), index + 3 < end,
                let byte = Self.hexadecimal(input[index + 2], input[index + 3])
            {
                inline.append(byte)
                index += 4
            } else {
                inline.append(Self.unescaped(next))
                index += 2
            }
        }
        guard index < end else { throw .unbalancedQuotes }
        return index + 1
    }

    private static func unescaped(_ byte: UInt8) -> UInt8 {
        switch byte {
        case UInt8(ascii: "n"): UInt8(ascii: "\n")
        case UInt8(ascii: "r"): UInt8(ascii: "\r")
        case UInt8(ascii: "t"): UInt8(ascii: "\t")
        case UInt8(ascii: "b"): 8
        case UInt8(ascii: "a"): 7
        default: byte
        }
    }

    private static func hexadecimal(_ high: UInt8, _ low: UInt8) -> UInt8? {
        guard let high = Character(UnicodeScalar(high)).hexDigitValue,
            let low = Character(UnicodeScalar(low)).hexDigitValue
        else { return nil }
        return UInt8(high * 16 + low)
    }
}
