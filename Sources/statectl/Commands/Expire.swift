import StateClient
import StateModel

extension Statectl {
    /// `expire KEY TIME`: prints nothing without `--json`.
    static func expire(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let key = try invocation.key()
        let text = String(decoding: invocation.operands[1], as: UTF8.self)
        let lifetime = try Invocation.lifetime(text, of: "expire")
        let client = try invocation.connect()
        guard try attempt(try client.expire(key, after: lifetime)) else { throw .negative }
        guard invocation.isJSON else { return }
        try write(try attempt(try client.lifetime(of: key)), of: key, invocation, &output)
    }

    /// `persist KEY`: prints nothing without `--json`.
    static func persist(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let key = try invocation.key()
        let client = try invocation.connect()
        _ = try attempt(try client.persist(key))
        let lifetime = try attempt(try client.lifetime(of: key))
        guard lifetime != nil else { throw .negative }
        if invocation.isJSON { try write(lifetime, of: key, invocation, &output) }
    }

    /// `ttl KEY`: the time that is left, such as `1m30s`.
    static func timeLeft(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let key = try invocation.key()
        let client = try invocation.connect()
        try write(try attempt(try client.lifetime(of: key)), of: key, invocation, &output)
    }

    private static func write(
        _ lifetime: Client.Lifetime?,
        of key: Key,
        _ invocation: Invocation,
        _ output: inout Output
    ) throws(Failure) {
        guard let lifetime else { throw .negative }
        var left: Int64?
        if case .limited(let time) = lifetime { left = Int64(time / .milliseconds(1)) }
        if invocation.isJSON {
            output.write(json: ["key": .bytes(key.bytes), "ttl": .number(left)])
        } else {
            output.write((left.map(text) ?? "never") + "\n")
        }
    }

    /// A time in days, hours, minutes and seconds, rounded up; below a second in milliseconds.
    private static func text(_ milliseconds: Int64) -> String {
        guard milliseconds > 999 else { return "\(milliseconds)ms" }
        var seconds = milliseconds / 1_000 + (milliseconds % 1_000 == 0 ? 0 : 1)
        var text = ""
        for (unit, factor): (String, Int64) in [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)]
        where seconds >= factor {
            text += "\(seconds / factor)\(unit)"
            seconds %= factor
        }
        return text
    }
}

extension Invocation {
    /// A lifetime above 0, with its unit.
    static func lifetime(_ text: String, of name: String) throws(Failure) -> Duration {
        guard let time = try? Quantity.duration(text), time > .zero else {
            throw .usage(
                "\(name) takes a time above 0 with its unit, such as 30s, 5m, 1h30m or 7d, not '\(text)'"
            )
        }
        return time
    }
}
