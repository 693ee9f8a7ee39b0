import StateClient
import StateModel

extension Statectl {
    /// The most that is read from standard input: more than any value that a daemon accepts.
    private static let inputByteLimit = 64 << 20

    /// `set KEY VALUE|-`, or `set KEY=VALUE…`: prints nothing without `--json`.
    ///
    /// The first operand decides: with a `=`, all are KEY=VALUE.
    static func set(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        if invocation.operands[0].contains(UInt8(ascii: "=")), !invocation.has("--literal") {
            return try setPairs(invocation, &output)
        }
        guard invocation.operands.count == 2 else {
            throw .usage("set: expected KEY VALUE, or KEY=VALUE for each of several keys")
        }
        let key = try invocation.key()
        let condition = try condition(invocation)
        let durability = try durability(invocation)
        let lifetime = try invocation.text("--ttl").map { text throws(Failure) in
            try Invocation.lifetime(text, of: "--ttl")
        }
        let value = try value(invocation)
        let client = try invocation.connect()
        let commit = try attempt(
            try client.set(
                value,
                for: key,
                if: condition,
                durability: durability,
                expiresAfter: lifetime
            )
        )
        guard invocation.isJSON else { return }
        output.write(json: [
            "revision": .number(commit.revision), "durability": .text(commit.durability),
        ])
    }

    private static func condition(
        _ invocation: Invocation
    ) throws(Failure) -> Client.Condition? {
        var conditions: [Client.Condition] = []
        if invocation.has("--if-absent") { conditions.append(.absent) }
        if invocation.has("--if-present") { conditions.append(.present) }
        if let revision = try invocation.number("--if-revision", atLeast: 0) {
            conditions.append(.revision(revision))
        }
        if let value = invocation.value("--if-value") { conditions.append(.value(value)) }
        guard conditions.count <= 1 else { throw .usage("set: give only one --if-… option") }
        return conditions.first
    }

    private static func durability(_ invocation: Invocation) throws(Failure) -> Durability? {
        guard let word = invocation.text("--durability") else { return nil }
        guard let level = Durability(word) else {
            throw .usage("--durability takes memory, interval or synced, not '\(word)'")
        }
        return level
    }

    private static func value(_ invocation: Invocation) throws(Failure) -> [UInt8] {
        guard invocation.operands[1] == [UInt8(ascii: "-")] else { return invocation.operands[1] }
        var input = Input()
        var value = try input.readAll(limit: inputByteLimit)
        guard value.count <= inputByteLimit else {
            throw .refused(
                StateError(
                    .tooBig,
                    "standard input has more than \(inputByteLimit) bytes, the limit"
                )
            )
        }
        if !invocation.has("--raw"), value.last == UInt8(ascii: "\n") { value.removeLast() }
        return value
    }
}
