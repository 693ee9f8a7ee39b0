import StateClient
import StateModel

extension Statectl {
    /// `set KEY=VALUE…`: all in one commit.
    static func setPairs(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let exclusive = ["--if-absent", "--if-present", "--if-revision", "--if-value"]
        if let option = (exclusive + ["--durability", "--raw"]).first(where: invocation.has) {
            throw .usage("set: \(option) is for one KEY VALUE, not for KEY=VALUE; use txn")
        }
        let time = try invocation.text("--ttl").map { text throws(Failure) in
            try Invocation.lifetime(text, of: "--ttl")
        }
        let pairs = try invocation.operands.map { text throws(Failure) in try pair(text) }
        let client = try invocation.connect()
        let commit = try attempt(try client.set(pairs, expiresAfter: time))
        if invocation.isJSON { output.write(commit, isJSON: true) }
    }

    private static func pair(_ text: [UInt8]) throws(Failure) -> (key: Key, value: [UInt8]) {
        guard let equals = text.firstIndex(of: UInt8(ascii: "=")) else {
            let shown = StateError.printable(String(decoding: text, as: UTF8.self))
            throw .usage(
                "set: '\(shown)' has no =, but the operand before has: give KEY=VALUE for all, or one KEY and VALUE; --literal if = belongs to the key"
            )
        }
        return (try attempt(try Key(bytes: Array(text[..<equals]))), Array(text[(equals + 1)...]))
    }

    /// `get KEY KEY…`: a line `key = value` for each that is present, of one moment.
    static func getSeveral(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        if let option = ["--long", "--at", "--raw"].first(where: invocation.has) {
            throw .usage("get: \(option) is for one key")
        }
        let keys = try invocation.operands.map { text throws(Failure) in
            try attempt(try Key(bytes: text))
        }
        let client = try connectForReading(invocation)
        let values = try attempt(try client.values(for: keys))
        for (key, value) in zip(keys, values) {
            guard let value else { continue }
            if invocation.isJSON {
                output.write(json: ["key": .bytes(key.bytes), "value": .value(value)])
            } else {
                output.writePair(key.bytes, value)
            }
        }
        if values.contains(where: { $0 == nil }) { throw .negative }
    }

    /// `exists KEY|PREFIX/…`: prints nothing without `--json`.
    static func exists(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let patterns = try invocation.operands.map { text throws(Failure) in
            try attempt(try Invocation.literal(text))
        }
        let client = try invocation.connect()
        var count: Int64 = 0
        for pattern in patterns where try attempt(try client.count(of: pattern)) > 0 { count += 1 }
        if invocation.isJSON { output.write(json: ["count": .number(count)]) }
        guard count == patterns.count else { throw .negative }
    }

    /// `incr KEY [N]`: prints the sum.
    static func increment(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let key = try invocation.key()
        var number: Int64 = 1
        if invocation.operands.count > 1 {
            let text = String(decoding: invocation.operands[1], as: UTF8.self)
            guard let parsed = Int64(text) else {
                throw .usage("incr: N is a whole number such as 5 or -5, not '\(text)'")
            }
            number = parsed
        }
        let client = try invocation.connect()
        let sum = try attempt(try client.add(number, to: key))
        guard invocation.isJSON else { return output.write("\(sum)\n") }
        output.write(json: ["key": .bytes(key.bytes), "value": .number(sum)])
    }

    /// `ping`: whether the daemon answers.
    static func ping(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let client = try invocation.connect()
        try attempt(try client.ping())
        guard invocation.isJSON else { return output.write("PONG\n") }
        output.write(json: ["socket": .text(client.socketPath), "reply": .text("PONG")])
    }
}
