import StateClient
import StateModel

extension Statectl {
    /// The most steps of a transaction: as many as the daemon takes.
    private static let stepLimit = 1_000_000

    /// `txn FILE|-`: the lines of a file as one commit.
    static func transaction(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        var input = try Input(path: invocation.operands[0])
        var steps: [Client.Step] = []
        var number = 0
        while let line = try input.nextLine() {
            number += 1
            do throws(StateError) {
                if let step = try step(line) { steps.append(step) }
            } catch {
                throw .usage("line \(number): \(error.message) (nothing was stored)")
            }
            guard steps.count <= stepLimit else {
                throw .usage("line \(number): a transaction has at most \(stepLimit) steps")
            }
        }
        let client = try invocation.connect()
        let commit = try attempt(try client.apply(steps))
        output.write(commit, isJSON: invocation.isJSON)
    }

    /// The step in a line; nil for a comment or an empty line.
    private static func step(_ line: ArraySlice<UInt8>) throws(StateError) -> Client.Step? {
        let blank = UInt8(ascii: " ")
        let text = line.drop { $0 == blank }
        guard let first = text.first, first != UInt8(ascii: "#") else { return nil }
        let word = text.prefix { $0 != blank }
        let rest = text.dropFirst(word.count).drop { $0 == blank }
        switch String(decoding: word, as: UTF8.self) {
        case "set":
            let parsed = try rest.withUnsafeBufferPointer { (rest) throws(StateError) in
                try ImportLine(Bytes(rest))
            }
            guard let parsed else { throw StateError(.err, "expected 'set KEY = VALUE'") }
            return .set(try Key(bytes: parsed.key), parsed.value)
        case "delete":
            return .delete(try key(rest))
        case "check":
            guard let end = rest.lastIndex(of: blank) else {
                throw StateError(.err, "expected 'check KEY REVISION' or 'check KEY absent'")
            }
            let condition = String(decoding: rest[(end + 1)...], as: UTF8.self)
            let revision = condition == "absent" ? 0 : Int64(condition)
            guard let revision, revision >= 0 else {
                throw StateError(
                    .err,
                    "expected a revision or 'absent' at the end, not '\(StateError.printable(condition))'"
                )
            }
            return .check(try key(rest[..<end]), revision: revision)
        case let other:
            throw StateError(
                .err,
                "expected set, delete or check, not '\(StateError.printable(other))'"
            )
        }
    }

    /// A key as `list` writes it.
    private static func key(_ text: ArraySlice<UInt8>) throws(StateError) -> Key {
        let bytes = try text.withUnsafeBufferPointer { (text) throws(StateError) in
            try ImportLine.key(Bytes(text))
        }
        return try Key(bytes: bytes)
    }
}
