import StateClient
import StateContainers
import StateJSON
import StateModel

extension Statectl {
    /// `list [PATTERN]`: `key = value` lines in key order.
    static func list(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        if invocation.has("--children") { return try listChildren(invocation, &output) }
        let forms = ["--keys", "--long", "--count"].filter { invocation.has($0) }
        guard forms.count <= 1 else {
            throw .usage("list: give only one of --keys, --long, --count")
        }
        let pattern = try invocation.pattern()
        let revision = try invocation.number("--at", atLeast: 0)
        let client = try invocation.connect()
        guard !invocation.has("--count") else {
            let count = try attempt(try client.count(of: pattern, at: revision))
            guard invocation.isJSON else { return output.write("\(count)\n") }
            return output.write(json: ["count": .number(count)])
        }
        let keysOnly = invocation.has("--keys")
        let isLong = invocation.has("--long")
        var pages = client.pages(of: pattern, keysOnly: keysOnly, isLong: isLong, at: revision)
        var users = UserNames()
        while let page = try attempt(try pages.next()) {
            for entry in page {
                if invocation.isJSON {
                    output.write(json: json(entry, &users))
                } else {
                    write(entry, &users, &output)
                }
                try output.flushIfLarge()
            }
        }
    }

    private static func write(
        _ entry: Client.ListedEntry,
        _ users: inout UserNames,
        _ output: inout Output
    ) {
        guard let value = entry.value else { return output.writeFields([entry.key]) }
        guard let details = entry.details else { return output.writePair(entry.key, value) }
        output.writeFields([
            "\(entry.revision)".bytes,
            entry.key,
            value,
            details.backing.bytes,
            details.type(of: value).bytes,
            users.name(of: details.owner).bytes,
        ])
    }

    private static func json(_ entry: Client.ListedEntry, _ users: inout UserNames) -> JSONLine {
        guard let value = entry.value else { return ["key": .bytes(entry.key)] }
        var object: JSONLine = [
            "revision": .number(entry.revision), "key": .bytes(entry.key), "value": .value(value),
        ]
        guard let details = entry.details else { return object }
        object.add("backing", .text(details.backing))
        object.add("type", .text(details.type(of: value)))
        object.add("owner", .text(users.name(of: details.owner)))
        return object
    }
}

extension Client.ListedEntry.Details {
    /// The type in the schema; else the JSON type of the value; else `string`, or `bytes` if it is
    /// not UTF-8.
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
