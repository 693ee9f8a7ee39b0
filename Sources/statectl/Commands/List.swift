import StateClient
import StateContainers
import StateJSON
import StateModel

extension Statectl {
    /// `list [PATTERN]`: `key = value` lines in key order.
    static func list(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let forms = ["--keys", "--long", "--count"].filter { invocation.has($0) }
        guard forms.count <= 1 else { throw .usage("'list' takes one of --keys, --long, --count") }
        let pattern = try invocation.pattern()
        let revision = try invocation.number("--at", atLeast: 0)
        let client = try invocation.connect()
        guard !invocation.has("--count") else {
            let count = try attempt { () throws(StateError) in
                try client.count(of: pattern, at: revision)
            }
            try write(count: count, invocation, &output)
            return
        }
        let keysOnly = invocation.has("--keys")
        let isLong = invocation.has("--long")
        var pages = client.pages(of: pattern, keysOnly: keysOnly, isLong: isLong, at: revision)
        var users = UserNames()
        while let page = try attempt({ () throws(StateError) in try pages.next() }) {
            for entry in page {
                if invocation.has("--json") {
                    output.write(json(entry, &users))
                } else {
                    write(entry, &users, &output)
                }
                try output.flushIfLarge()
            }
        }
    }

    private static func write(
        count: Int64,
        _ invocation: Invocation,
        _ output: inout Output
    ) throws(Failure) {
        guard invocation.has("--json") else {
            output.write("\(count)\n")
            return
        }
        var object = JSONLine()
        object.add("count", number: count)
        output.write(object.line)
    }

    private static func write(
        _ entry: Client.ListedEntry,
        _ users: inout UserNames,
        _ output: inout Output
    ) {
        if let value = entry.value, let details = entry.details {
            output.write("\(entry.revision)\t")
            output.writeEscaped(entry.key)
            output.write("\t")
            output.writeEscaped(value)
            output.write("\t\(details.backing)\t\(details.type(of: value))\t")
            output.write(users.name(of: details.owner))
        } else if let value = entry.value {
            output.writeEscaped(key: entry.key)
            output.write(" = ")
            output.writeEscaped(value)
        } else {
            output.writeEscaped(entry.key)
        }
        output.write("\n")
    }

    private static func json(_ entry: Client.ListedEntry, _ users: inout UserNames) -> [UInt8] {
        var object = JSONLine()
        if entry.value != nil { object.add("revision", number: entry.revision) }
        object.add("key", bytes: entry.key)
        if let value = entry.value {
            object.add(value: value, named: "value", elseBase64: "base64")
            if let details = entry.details {
                object.add("backing", text: details.backing)
                object.add("type", text: details.type(of: value))
                object.add("owner", text: users.name(of: details.owner))
            }
        }
        return object.line
    }
}

extension Client.ListedEntry.Details {
    /// The type that the schema says; else what the value is in JSON, else `string`, or `bytes` where it is no text.
    fileprivate func type(of value: [UInt8]) -> String {
        if !schemaType.isEmpty { return schemaType }
        guard value.withUnsafeBytes({ UTF8Sequence.isValid($0) }) else { return "bytes" }
        switch try? JSONValue(parsing: value) {
        case .null?: return "null"
        case .bool?: return "boolean"
        case .number?: return "number"
        case .array?: return "array"
        case .object?: return "object"
        case .string?, nil: return "string"
        }
    }
}

extension Invocation {
    /// The pattern of a verb that takes one, or everything.
    func pattern() throws(Failure) -> Pattern {
        guard let text = operands.first else { return .everything }
        return try Self.pattern(text)
    }

    /// Reads a pattern.
    static func pattern(_ text: [UInt8]) throws(Failure) -> Pattern {
        try attempt { () throws(StateError) in
            try text.withUnsafeBufferPointer { (bytes) throws(StateError) in
                try Pattern(Bytes(bytes))
            }
        }
    }
}
