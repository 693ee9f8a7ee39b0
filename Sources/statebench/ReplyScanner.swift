import Glibc

/// Finds the end of a RESP reply without parsing it: the client must cost less than the server.
enum ReplyScanner {
    /// The size of the reply at the front in bytes; nil while it is incomplete.
    ///
    /// - Complexity: O(elements), and the bytes of the lines only: bulks are skipped.
    static func length(of bytes: UnsafeRawBufferPointer) throws(BenchError) -> Int? {
        var position = 0
        var elementsLeft = 1
        while elementsLeft > 0 {
            guard let lineEnd = endOfLine(bytes, from: position) else { return nil }
            let kind = bytes[position]
            switch kind {
            case UInt8(ascii: "$"), UInt8(ascii: "="), UInt8(ascii: "!"):
                let count = try number(bytes, position + 1, lineEnd)
                position = count < 0 ? lineEnd : lineEnd + count + 2
                if position > bytes.count { return nil }
            case UInt8(ascii: "*"), UInt8(ascii: "~"), UInt8(ascii: ">"):
                elementsLeft += max(0, try number(bytes, position + 1, lineEnd))
                position = lineEnd
            case UInt8(ascii: "%"):
                elementsLeft += 2 * (try number(bytes, position + 1, lineEnd))
                position = lineEnd
            case UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: ":"), UInt8(ascii: "_"),
                UInt8(ascii: "#"), UInt8(ascii: ","), UInt8(ascii: "("):
                position = lineEnd
            default:
                throw .failed("a reply starts with unexpected byte \(kind)")
            }
            elementsLeft -= 1
        }
        return position
    }

    /// The index after the line's CR LF.
    static func endOfLine(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
        guard start < bytes.count, let base = bytes.baseAddress else { return nil }
        guard let found = memchr(base + start, 10, bytes.count - start) else { return nil }
        return UnsafeRawPointer(found) - base + 1
    }

    /// The decimal number of a line that ends, including CR LF, at `lineEnd`.
    static func number(
        _ bytes: UnsafeRawBufferPointer,
        _ start: Int,
        _ lineEnd: Int
    ) throws(BenchError) -> Int {
        var index = start
        let isNegative = bytes[index] == UInt8(ascii: "-")
        if isNegative { index += 1 }
        var number = 0
        while index < lineEnd - 2 {
            let digit = bytes[index] &- UInt8(ascii: "0")
            guard digit < 10, number < 1 << 50 else {
                throw .failed("a number in a reply is not valid")
            }
            number = number * 10 + Int(digit)
            index += 1
        }
        return isNegative ? -number : number
    }
}
