import Glibc
import StateClient
import StateEngine

extension Statectl {
    /// `get KEY`: the value and a newline.
    static func get(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let bytes = invocation.operands[0]
        let key = try attempt { () throws(StateError) in try Key(bytes: bytes) }
        let client = try invocation.connect()
        if invocation.has("--json") || invocation.has("--long") {
            let found = try attempt { () throws(StateError) in try client.entry(for: key) }
            guard let entry = found else { throw .negative }
            if invocation.has("--json") {
                output.write(json(entry, key))
            } else {
                writeLong(entry, key, &output)
            }
            return
        }
        let found = try attempt { () throws(StateError) in try client.value(for: key) }
        guard let value = found else { throw .negative }
        if invocation.has("--raw") {
            output.write(value)
        } else {
            if output.isTerminal { output.writeEscaped(value) } else { output.write(value) }
            output.write("\n")
        }
    }

    private static func json(_ entry: Client.Entry, _ key: Key) -> [UInt8] {
        var object = JSONLine()
        object.add("revision", number: entry.revision)
        object.add("key", bytes: key.bytes)
        object.add(value: entry.value, named: "value", elseBase64: "base64")
        object.add("created", number: entry.created)
        object.add("version", number: entry.version)
        object.add("time", number: entry.time)
        object.add("owner", number: Int64(entry.owner))
        object.add("by", text: entry.writer)
        if let expires = entry.expires {
            object.add("expires", number: expires)
        } else {
            object.add(nullNamed: "expires")
        }
        object.add("durability", text: entry.durability)
        return object.line
    }

    private static func writeLong(_ entry: Client.Entry, _ key: Key, _ output: inout Output) {
        let fields: [(String, [UInt8])] = [
            ("key", key.bytes),
            ("value", entry.value),
            ("revision", Array(String(entry.revision).utf8)),
            ("created", Array(String(entry.created).utf8)),
            ("version", Array(String(entry.version).utf8)),
            ("time", Array(timestamp(entry.time).utf8)),
            ("owner", Array(String(entry.owner).utf8)),
            ("by", Array(entry.writer.utf8)),
            ("expires", Array((entry.expires.map(timestamp) ?? "never").utf8)),
            ("durability", Array(entry.durability.utf8)),
        ]
        writeAligned(fields, &output)
    }

    /// Writes `name: value` lines whose values stand below each other, escaped.
    static func writeAligned(_ fields: [(name: String, value: [UInt8])], _ output: inout Output) {
        let width = fields.map(\.name.utf8.count).max() ?? 0
        for (name, value) in fields {
            output.write(name + ":")
            output.write(String(repeating: " ", count: width - name.utf8.count + 1))
            output.writeEscaped(value)
            output.write("\n")
        }
    }

    /// Wall time as `2026-01-31T12:34:56.789Z`.
    static func timestamp(_ milliseconds: Int64) -> String {
        var seconds = time_t(milliseconds / 1_000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func padded(_ number: Int32, _ width: Int) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
        }
        let date = [
            padded(parts.tm_year + 1_900, 4), padded(parts.tm_mon + 1, 2), padded(parts.tm_mday, 2),
        ].joined(separator: "-")
        let time = [padded(parts.tm_hour, 2), padded(parts.tm_min, 2), padded(parts.tm_sec, 2)]
            .joined(separator: ":")
        return "\(date)T\(time).\(padded(Int32(milliseconds % 1_000), 3))Z"
    }
}
