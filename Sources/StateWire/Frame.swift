import StateModel

/// The arguments of one command, in the buffer in which they arrived.
///
/// Borrowed: valid until the parser's next call or a change of the buffer.
@usableFromInline
package struct Arguments {
    /// The position of an argument, from the start of the frame.
    @usableFromInline
    package struct Span {
        @usableFromInline var offset: Int
        @usableFromInline var count: Int
    }

    @usableFromInline let base: UnsafeRawPointer
    @usableFromInline let spans: UnsafePointer<Span>
    @usableFromInline package let count: Int

    init(base: UnsafeRawPointer, spans: UnsafePointer<Span>, count: Int) {
        self.base = base
        self.spans = spans
        self.count = count
    }

    @inlinable
    package subscript(index: Int) -> UnsafeRawBufferPointer {
        precondition(index >= 0 && index < count, "argument \(index) of \(count)")
        return UnsafeRawBufferPointer(
            start: base + spans[index].offset,
            count: spans[index].count
        )
    }

    /// The arguments from `start` on.
    package func dropFirst(_ start: Int) -> Arguments {
        precondition(start <= count, "argument \(start) of \(count)")
        return Arguments(base: base, spans: spans + start, count: count - start)
    }

    /// The first `length` arguments.
    package func prefix(_ length: Int) -> Arguments {
        precondition(length <= count, "argument \(length) of \(count)")
        return Arguments(base: base, spans: spans, count: length)
    }

    /// Whether the argument is this word, in any case.
    package func isWord(_ index: Int, _ word: StaticString) -> Bool {
        self[index].isWord(word)
    }

    /// Bytes of all arguments together.
    package var byteCount: Int { (0..<count).reduce(0) { $0 + spans[$1].count } }
}

extension UnsafeRawBufferPointer {
    /// Whether these bytes are this upper-case ASCII word, in any case.
    package func isWord(_ word: StaticString) -> Bool {
        guard count == word.utf8CodeUnitCount else { return false }
        for index in 0..<count {
            let byte = self[index]
            let isLower = byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z")
            if (isLower ? byte - 32 : byte) != word.utf8Start[index] { return false }
        }
        return true
    }

    /// The bytes as a decimal number in the form that Redis accepts: no sign but `-`, no leading
    /// zeros, no spaces; else nil.
    package var decimal: Int64? {
        guard count > 0, count <= 20 else { return nil }
        let isNegative = self[0] == UInt8(ascii: "-")
        let first = isNegative ? 1 : 0
        guard count > first else { return nil }
        if self[first] == UInt8(ascii: "0") { return count == 1 ? 0 : nil }
        var number: Int64 = 0
        for index in first..<count {
            let digit = self[index] &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            // 18 digits always fit.
            if index < 18 {
                number = number &* 10 &- Int64(digit)
                continue
            }
            let (tens, overflows) = number.multipliedReportingOverflow(by: 10)
            let (next, overflowsToo) = tens.subtractingReportingOverflow(Int64(digit))
            if overflows || overflowsToo { return nil }
            number = next
        }
        if isNegative { return number }
        return number == .min ? nil : -number
    }
}
