import StateClient
import StateModel

extension Statectl {
    /// `get KEY`: the value and a newline.
    static func get(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let bytes = invocation.operands[0]
        let key = try attempt { () throws(StateError) in try Key(bytes: bytes) }
        let revision = try invocation.number("--at", atLeast: 0)
        let client = try invocation.connect()
        if invocation.has("--json") || invocation.has("--long") {
            let found = try attempt { () throws(StateError) in
                try client.entry(for: key, at: revision)
            }
            guard let entry = found else { throw .negative }
            if invocation.has("--json") {
                output.write(json(entry, key))
            } else {
                writeLong(entry, key, &output)
            }
            return
        }
        let found = try attempt { () throws(StateError) in
            revision == nil
                ? try client.value(for: key) : try client.entry(for: key, at: revision)?.value
        }
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
        if entry.isDefault { object.add("default", number: 1) }
        return object.line
    }

    private static func writeLong(_ entry: Client.Entry, _ key: Key, _ output: inout Output) {
        if entry.isDefault {
            // Nobody has set it: there is no more to say.
            return writeAligned(
                [("key", key.bytes), ("value", entry.value), ("default", Array("yes".utf8))],
                &output
            )
        }
        let fields: [(String, [UInt8])] = [
            ("key", key.bytes),
            ("value", entry.value),
            ("revision", Array(String(entry.revision).utf8)),
            ("created", Array(String(entry.created).utf8)),
            ("version", Array(String(entry.version).utf8)),
            ("time", Array(Timestamp.universal(entry.time).utf8)),
            ("owner", Array(String(entry.owner).utf8)),
            ("by", Array(entry.writer.utf8)),
            ("expires", Array((entry.expires.map(Timestamp.universal) ?? "never").utf8)),
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
}
