import StateClient
import StateModel

extension Statectl {
    /// `get KEY`: the value and a newline; for several keys, a line each.
    static func get(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        guard !invocation.has("--prefix") else { return try getPrefix(invocation, &output) }
        guard invocation.operands.count == 1 else { return try getSeveral(invocation, &output) }
        if invocation.has("--raw"), invocation.has("--long") || invocation.isJSON {
            throw .usage("get: --raw prints only the value; leave out --long and --json, or --raw")
        }
        let key = try invocation.key()
        let moment = try invocation.moment("--at")
        if invocation.has("--fresh"), moment != nil {
            throw .usage("get: --fresh is about the newest value; leave out --at, or --fresh")
        }
        let client = try connectForReading(invocation)
        let revision = try moment.flatMap { moment throws(Failure) in
            try attempt(try moment.revision(client))
        }
        if invocation.isJSON || invocation.has("--long") {
            guard let entry = try attempt(try client.entry(for: key, at: revision)) else {
                throw absent(key, output)
            }
            if invocation.isJSON {
                output.write(json: json(entry, key))
            } else {
                output.writeAligned(fields(of: entry, key))
            }
            return
        }
        let found = try attempt(
            revision == nil
                ? try client.value(for: key) : try client.entry(for: key, at: revision)?.value
        )
        guard let value = found else { throw absent(key, output) }
        if output.isTerminal, !invocation.has("--raw") {
            output.writeEscaped(value)
        } else {
            output.write(value)
        }
        if !invocation.has("--raw") { output.write("\n") }
    }

    /// `get --prefix PREFIX/` is what other programs call a list.
    private static func getPrefix(
        _ invocation: Invocation,
        _ output: inout Output
    ) throws(Failure) {
        guard invocation.operands.count == 1, !invocation.has("--raw"), !invocation.has("--fresh")
        else { throw .usage("get: --prefix is for one prefix, without --raw and --fresh") }
        try list(invocation, &output)
    }

    /// With `--fresh`, everything that the cluster of the keys had is there.
    static func connectForReading(_ invocation: Invocation) throws(Failure) -> Client {
        let client = try invocation.connect()
        if invocation.has("--fresh") { _ = try attempt(try client.sync()) }
        return client
    }

    /// Says it on a terminal; a script has the exit code.
    private static func absent(_ key: Key, _ output: Output) -> Failure {
        if output.isTerminal { Output.report("there is no key '\(key)'") }
        return .negative
    }

    private static func expiry(of entry: Client.Entry) -> String {
        if let lifetime = entry.lifetime { return "with its \(lifetime.rawValue)" }
        return entry.expires.map(Timestamp.text) ?? "never"
    }

    /// How current the copy of a cluster is that the key belongs to.
    private static func currency(of entry: Client.Entry) -> [(String, String)] {
        guard let isCurrent = entry.isCurrent, let age = entry.age else { return [] }
        let seen = age < 0 ? "not seen complete since the start" : "complete \(age) ms ago"
        return [("current", "\(isCurrent ? "yes" : "no"), \(seen)")]
    }

    private static func json(_ entry: Client.Entry, _ key: Key) -> JSONLine {
        [
            "revision": .number(entry.revision), "key": .bytes(key.bytes),
            "value": .value(entry.value), "created": .number(entry.created),
            "version": .number(entry.version), "time": .number(entry.time),
            "owner": .number(Int64(entry.owner)), "by": .text(entry.writer),
            "expires": .number(entry.expires), "durability": .text(entry.durability),
            "lifetime": entry.lifetime.map { .text($0.rawValue) },
            "default": entry.isDefault ? .number(1) : nil,
            "origin": entry.isDefault ? .text(entry.origin) : nil,
            "current": entry.isCurrent.map { .number($0 ? 1 : 0) },
            "age": entry.age.map { .number($0) },
        ]
    }

    private static func fields(
        of entry: Client.Entry,
        _ key: Key
    ) -> [(name: String, value: [UInt8])] {
        // A default has no revision, time or writer.
        let rest: [(String, String)] =
            entry.isDefault
            ? [("default", "yes"), ("origin", "default from \(entry.origin)")]
            : [
                ("revision", "\(entry.revision)"),
                ("created", "\(entry.created)"),
                ("version", "\(entry.version)"),
                ("time", Timestamp.text(entry.time)),
                ("owner", "\(entry.owner)"),
                ("by", entry.writer),
                ("expires", expiry(of: entry)),
                ("durability", entry.durability),
            ] + currency(of: entry)
        return [("key", key.bytes), ("value", entry.value)] + rest.map { ($0.0, $0.1.bytes) }
    }
}
