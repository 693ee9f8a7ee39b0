package import StateModel

/// Cuts a stream of bytes into commands: RESP arrays of bulk strings, and inline commands.
///
/// It remembers what it has parsed of an incomplete frame, so it does not rescan a large value that
/// arrives in many pieces. It refers to arguments in the buffer: a value is copied once, into its
/// entry.
@usableFromInline
package struct FrameParser: ~Copyable {
    package struct Limits: Sendable {
        /// One argument, in bytes.
        package var argumentByteCount = 8 << 20
        /// Arguments of one command.
        package var argumentCount = 1 << 20
        /// One command, in bytes.
        package var commandByteCount = 128 << 20
        /// An inline command, in bytes.
        package var inlineByteCount = 64 << 10

        package init() {}
    }

    /// What the parser found.
    package enum Step {
        /// No complete command yet.
        case more
        /// A command, and its length in bytes.
        case frame(Arguments, byteCount: Int)
        /// So many bytes belong to no command: drop them and call again.
        case skip(Int)
        /// A command that was refused and whose bytes were skipped.
        case refused(WireError)
    }

    /// They may change at any time; the parsed part of a frame stays parsed.
    package var limits: Limits

    // The frame that is being parsed; all positions are offsets from its start.
    private var isArray = false
    private var argumentCount = 0
    private var position = 0
    private(set) var spans = UnsafeMutablePointer<Arguments.Span>.allocate(capacity: 8)
    @usableFromInline var spanCapacity = 8

    /// The approximate memory for the arguments of one command.
    @inlinable package var footprint: Int { spanCapacity * MemoryLayout<Arguments.Span>.stride }
    var spanCount = 0

    // A frame that is being skipped.
    private var refusal: WireError?
    private var bytesToSkip = 0

    // The arguments of an inline command, without quotes.
    var inline = ByteBuffer()

    /// Whether a command that was refused is being skipped: then the bytes before the next ones are
    /// gone.
    package var isSkipping: Bool { refusal != nil }

    package init(limits: Limits) { self.limits = limits }

    deinit { spans.deallocate() }

    /// The known lower bound of the length of the incomplete frame, in bytes.
    package private(set) var expectedByteCount = 0

    /// Looks for a command at the start of `input`.
    ///
    /// - Parameter input: All bytes since the end of the last command; after `.more`, the same
    ///   bytes and more.
    /// - Returns: What was found there.
    /// - Throws: ``WireError``, after which the position in the stream is unknown.
    /// - Complexity: O(*n*) in the new bytes of lengths; the bytes of arguments are not scanned.
    package mutating func next(_ input: Bytes) throws(WireError) -> Step {
        guard refusal == nil else { return try passOver(input) }
        if !isArray, spanCapacity > FrameParser.keptSpanCount { shrink() }
        guard let base = input.baseAddress, input.count > 0 else { return .more }
        if !isArray {
            guard input[0] == UInt8(ascii: "*") else { return try nextInline(input) }
            guard let (count, end) = try number(input, 1, or: .invalidArrayLength) else {
                return .more
            }
            guard count <= limits.argumentCount else { throw .invalidArrayLength }
            // As in Redis, a negative number is nothing, too.
            guard count > 0 else { return .skip(end) }
            isArray = true
            argumentCount = count
            position = end
            spanCount = 0
        }
        while spanCount < argumentCount {
            guard position < input.count else { return .more }
            guard input[position] == UInt8(ascii: "$") else { throw .expectedBulk(input[position]) }
            guard let (count, start) = try number(input, position + 1, or: .invalidBulkLength)
            else { return .more }
            guard count >= 0, count <= 512 << 20 else { throw .invalidBulkLength }
            guard count <= limits.argumentByteCount else { return refuse(count, start) }
            let end = start + count + 2
            guard end <= limits.commandByteCount else {
                throw .commandTooLong(limit: limits.commandByteCount)
            }
            guard end <= input.count else {
                expectedByteCount = end
                return .more
            }
            guard input[end - 2] == UInt8(ascii: "\r"), input[end - 1] == UInt8(ascii: "\n") else {
                throw .expectedLineEnd
            }
            appendSpan(Arguments.Span(offset: start, count: count))
            position = end
        }
        isArray = false
        expectedByteCount = 0
        return .frame(
            Arguments(base: base, spans: spans, count: spanCount),
            byteCount: position
        )
    }

    // MARK: Looking ahead

    /// Fills `keys` with the second arguments of the complete commands at the start of `input`: the
    /// keys of most.
    ///
    /// It ends early at what is not an array of a few bulk strings; nothing is refused.
    ///
    /// - Returns: How many commands there are, and their bytes.
    package func lookAhead(
        _ input: Bytes,
        _ keys: UnsafeMutableBufferPointer<Bytes>
    ) -> (count: Int, byteCount: Int) {
        var (count, end) = (0, 0)
        while count < keys.count, let command = secondArgument(of: input, at: end) {
            keys.initializeElement(at: count, to: command.argument)
            count += 1
            end = command.end
        }
        return (count, end)
    }

    /// The second argument of the command at `start`, empty if it has only one, and the command's end.
    private func secondArgument(
        of input: Bytes,
        at start: Int
    ) -> (argument: Bytes, end: Int)? {
        guard start < input.count, input[start] == UInt8(ascii: "*"),
            let (count, first) = try? number(input, start + 1, or: .invalidArrayLength),
            (1...FrameParser.fewArguments).contains(count)
        else { return nil }
        var (argument, end) = (Bytes(start: nil, count: 0), first)
        for index in 0..<count {
            guard end < input.count, input[end] == UInt8(ascii: "$"),
                let (length, place) = try? number(input, end + 1, or: .invalidBulkLength),
                length >= 0, length + 2 <= input.count - place
            else { return nil }
            if index == 1 { argument = input.slice(place, place + length) }
            end = place + length + 2
        }
        return (argument, end)
    }

    private static let fewArguments = 16

    /// The number of arguments for which an idle parser keeps memory: a connection may be idle for
    /// long.
    private static let keptSpanCount = 1_024

    /// Frees the memory that a command with many arguments needed.
    private mutating func shrink() {
        spans.deallocate()
        spanCapacity = 8
        spans = .allocate(capacity: spanCapacity)
    }

    mutating func appendSpan(_ span: Arguments.Span) {
        if spanCount == spanCapacity {
            let larger = UnsafeMutablePointer<Arguments.Span>.allocate(capacity: spanCapacity * 2)
            larger.moveInitialize(from: spans, count: spanCount)
            spans.deallocate()
            spans = larger
            spanCapacity *= 2
        }
        (spans + spanCount).initialize(to: span)
        spanCount += 1
    }

    /// The number of the length line at `start` and the index after it; nil if its end has not
    /// arrived yet.
    @inline(__always)
    private func number(
        _ input: Bytes,
        _ start: Int,
        or error: WireError
    ) throws(WireError)
        -> (Int, Int)?
    {
        // Most lengths have one digit or two, and something after them.
        guard start + 4 <= input.count else { return try longNumber(input, start, or: error) }
        let line = UInt32(
            littleEndian: input.loadUnaligned(fromByteOffset: start, as: UInt32.self)
        )
        let first = UInt8(truncatingIfNeeded: line) &- UInt8(ascii: "0")
        let lineEnd: UInt32 = 0x0A0D
        if line >> 8 & 0xFFFF == lineEnd {
            guard first <= 9 else { throw error }
            return (Int(first), start + 3)
        }
        let second = UInt8(truncatingIfNeeded: line >> 8) &- UInt8(ascii: "0")
        if line >> 16 == lineEnd, first <= 9, second <= 9 {
            return (Int(first) * 10 + Int(second), start + 4)
        }
        return try longNumber(input, start, or: error)
    }

    private func longNumber(
        _ input: Bytes,
        _ start: Int,
        or error: WireError
    ) throws(WireError)
        -> (Int, Int)?
    {
        var index = start
        var number = 0
        var isNegative = false
        if index < input.count, input[index] == UInt8(ascii: "-") {
            isNegative = true
            index += 1
        }
        let first = index
        while index < input.count {
            let byte = input[index]
            if byte == UInt8(ascii: "\r") {
                guard index > first else { throw error }
                guard index + 1 < input.count else { return nil }
                guard input[index + 1] == UInt8(ascii: "\n") else { throw error }
                return (isNegative ? -number : number, index + 2)
            }
            guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9"), index - first < 18 else {
                throw error
            }
            number = number * 10 + Int(byte - UInt8(ascii: "0"))
            index += 1
        }
        return nil
    }

    // MARK: Skipping

    private mutating func refuse(_ byteCount: Int, _ start: Int) -> Step {
        refusal = .tooBig(byteCount: byteCount, limit: limits.argumentByteCount)
        bytesToSkip = byteCount + 2
        spanCount += 1
        return .skip(start)
    }

    private mutating func passOver(_ input: Bytes) throws(WireError) -> Step {
        if bytesToSkip > 0 {
            let count = min(bytesToSkip, input.count)
            bytesToSkip -= count
            return count == 0 ? .more : .skip(count)
        }
        guard spanCount < argumentCount else {
            guard let refused = refusal else { return .more }
            refusal = nil
            isArray = false
            return .refused(refused)
        }
        guard input.count > 0 else { return .more }
        guard input[0] == UInt8(ascii: "$") else { throw .expectedBulk(input[0]) }
        guard let (count, end) = try number(input, 1, or: .invalidBulkLength) else { return .more }
        guard count >= 0, count <= 512 << 20 else { throw .invalidBulkLength }
        bytesToSkip = count + 2
        spanCount += 1
        return .skip(end)
    }
}
