import StateEngine
import StateWire

/// What a parser finds in a stream.
enum Found: Equatable, CustomStringConvertible {
    /// A command of these arguments.
    case command([[UInt8]])
    /// A command that was passed over; the stream goes on.
    case refused(WireError)
    /// The stream has no known place any more.
    case failed(WireError)

    var description: String {
        switch self {
        case .command(let arguments):
            "\(arguments.map { String(decoding: $0, as: UTF8.self) })"
        case .refused(let error): "refused: \(error)"
        case .failed(let error): "failed: \(error)"
        }
    }
}

/// Feeds a stream to a parser in chunks, each time in other memory, as a connection does.
func cut(
    _ stream: [UInt8],
    chunkLength: Int,
    limits: FrameParser.Limits = FrameParser.Limits()
) -> [Found] {
    var parser = FrameParser(limits: limits)
    var found: [Found] = []
    var (start, end) = (0, 0)
    while end < stream.count {
        end = min(stream.count, end + chunkLength)
        let taken = Array(stream[start..<end]).withUnsafeBytes { bytes in
            take(from: bytes, &parser, &found)
        }
        if case .failed = found.last { return found }
        start += taken
    }
    return found
}

/// Everything that is whole; how many bytes it took.
private func take(
    from bytes: Bytes,
    _ parser: inout FrameParser,
    _ found: inout [Found]
) -> Int {
    var taken = 0
    while true {
        do throws(WireError) {
            switch try parser.next(bytes.slice(taken, bytes.count)) {
            case .more: return taken
            case .skip(let count): taken += count
            case .refused(let error): found.append(.refused(error))
            case .frame(let arguments, let byteCount):
                taken += byteCount
                found.append(.command((0..<arguments.count).map { Array(arguments[$0]) }))
            }
        } catch {
            found.append(.failed(error))
            return taken
        }
    }
}

/// What is found in a text.
func cut(_ text: String, chunkLength: Int = .max >> 1) -> [Found] {
    cut(Array(text.utf8), chunkLength: chunkLength)
}

/// A command of words.
func command(_ words: String...) -> Found { .command(words.map { Array($0.utf8) }) }
