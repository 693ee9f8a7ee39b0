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
        let moment = try invocation.moment("--at")
        let limit = try invocation.number("--limit", atLeast: 1) ?? .max
        let client = try invocation.connect()
        let revision = try moment.flatMap { moment throws(Failure) in
            try attempt(try moment.revision(client))
        }
        guard !invocation.has("--count") else {
            let count = try attempt(try client.count(of: pattern, at: revision))
            guard invocation.isJSON else { return output.write("\(count)\n") }
            return output.write(json: ["count": .number(count)])
        }
        let keysOnly = invocation.has("--keys")
        let isLong = invocation.has("--long")
        var pages = client.pages(of: pattern, keysOnly: keysOnly, isLong: isLong, at: revision)
        var users = UserNames()
        var count: Int64 = 0
        if !invocation.has("--no-pager") { output.usePager() }
        while count < limit, let page = try attempt(try pages.next()) {
            for entry in page where count < limit {
                count += 1
                if invocation.isJSON {
                    output.write(json: json(entry, &users))
                } else {
                    write(entry, &users, &output)
                }
                try output.flushIfLarge()
            }
        }
        if count == 0, revision == nil { try hintAtPrefix(invocation, client) }
    }

    /// Says on standard error that there are keys below a name that is no key.
    private static func hintAtPrefix(
        _ invocation: Invocation,
        _ client: Client
    ) throws(Failure) {
        guard let name = invocation.operands.first, let last = name.last,
            last != UInt8(ascii: "/"), !name.contains(where: { "*?[".utf8.contains($0) }),
            try attempt(try client.count(of: Invocation.literal(name + "/".bytes))) > 0
        else { return }
        let shown = String(decoding: name, as: UTF8.self)
        Output.report("'\(shown)' is no key, but there are keys below it: statectl list \(shown)/")
    }

    private static func write(
        _ entry: Client.ListedEntry,
        _ users: inout UserNames,
        _ output: inout Output
    ) {
        guard let value = entry.value else { return output.writeFields([entry.key]) }
        guard let details = entry.details else {
            return output.writePair(entry.key, value, in: .bold)
        }
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
