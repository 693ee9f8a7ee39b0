import StateEngine
import StateWire

/// Frames, commands and replies: bytes that come in pieces mean what they mean in one.
///
/// ```
/// 0  seed of the cuts
/// 1  the stream
/// ```
enum FrameTarget {
    private static let limits = {
        var limits = FrameParser.Limits()
        limits.argumentByteCount = 200
        limits.argumentCount = 40
        limits.commandByteCount = 2_000
        limits.inlineByteCount = 300
        return limits
    }()

    static func run(_ bytes: Bytes) throws {
        guard bytes.count > 1 else { return }
        let stream = bytes.slice(1, bytes.count)
        var pieces: [[UInt8]] = []
        cut(stream, seed: bytes[0]) { pieces.append(Array($0)) }
        for read in [commands, replies] {
            let (whole, inPieces) = (read([Array(stream)]), read(pieces))
            require(whole == inPieces, "in one: \(whole), in pieces: \(inPieces)")
        }
    }

    /// What a server finds in the pieces of a stream.
    private static func commands(_ pieces: [[UInt8]]) -> [String] {
        var parser = FrameParser(limits: limits)
        var found: [String] = []
        var input: [UInt8] = []
        for piece in pieces {
            input += piece
            do throws(WireError) {
                try input.withUnsafeBytes { (input) -> Result<Int, WireError> in
                    Result { () throws(WireError) in try take(input, &parser, &found) }
                }.map { input.removeFirst($0) }.get()
            } catch {
                return found + ["\(error.answer)"]
            }
        }
        return found
    }

    private static func take(
        _ input: Bytes,
        _ parser: inout FrameParser,
        _ found: inout [String]
    ) throws(WireError) -> Int {
        var taken = 0
        while true {
            switch try parser.next(input.slice(taken, input.count)) {
            case .more: return taken
            case .skip(let count): taken += count
            case .refused(let error): found.append("\(error.answer)")
            case .frame(let arguments, let byteCount):
                taken += byteCount
                found.append(description(of: arguments))
            }
        }
    }

    private static func description(of arguments: Arguments) -> String {
        let words = (0..<arguments.count).map { Array(arguments[$0]) }
        guard let verb = Verb.named(arguments[0]), verb.accepts(argumentCount: arguments.count)
        else { return "\(words)" }
        do throws(StateError) {
            _ = try Command(verb, arguments)
            return "\(verb.name) \(words)"
        } catch {
            return "\(verb.name) \(error)"
        }
    }

    /// What a client finds in them.
    private static func replies(_ pieces: [[UInt8]]) -> [String] {
        var parser = ReplyParser(byteLimit: 4_096)
        var found: [String] = []
        do throws(ReplyError) {
            for piece in pieces {
                piece.withUnsafeBytes { parser.append($0) }
                while let reply = try parser.next() { found.append("\(reply)") }
            }
        } catch {
            // Which of two things is wrong with a line that is too long depends on where it was cut.
            found.append("refused")
        }
        return found
    }
}
