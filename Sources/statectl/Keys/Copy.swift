import StateClient
import StateModel

extension Statectl {
    /// `cp KEY NEWKEY`, or `cp PREFIX/ NEWPREFIX/`: in one commit; prints how many keys it set.
    static func copy(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        try copy(invocation, deletes: false, &output)
    }

    /// `mv KEY NEWKEY`, or `mv PREFIX/ NEWPREFIX/`: in one commit; prints how many keys it moved.
    static func move(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        try copy(invocation, deletes: true, &output)
    }

    private static func copy(
        _ invocation: Invocation,
        deletes: Bool,
        _ output: inout Output
    ) throws(Failure) {
        let names = try NewNames(invocation, deletes: deletes)
        let client = try invocation.connect()
        let isDryRun = invocation.has("--dry-run")
        let (changes, commit) = try KeyChanges.apply(client, isDryRun: isDryRun) {
            () throws(StateError) in try names.changes(client)
        }
        guard !changes.isEmpty else {
            Output.report("there is no key \(names.isPrefix ? "below" : "named") '\(names.old)'")
            throw .negative
        }
        guard !isDryRun, let commit else {
            return try changes.write(nil, isDryRun: true, isJSON: invocation.isJSON, &output)
        }
        let count = changes.changes.count { $0.after != nil }
        guard invocation.isJSON else { return output.write("\(count)\n") }
        output.write(json: [
            "revision": .number(commit.revision), "count": .number(Int64(count)),
        ])
    }
}

/// What a key, or each key below a prefix, is to be named.
private struct NewNames {
    /// The key, or the prefix with its `/`.
    let old: Pattern
    private let new: [UInt8]
    /// Whether the old names end.
    private let deletes: Bool
    /// Whether no key may have a new name already.
    private let ifAbsent: Bool

    var isPrefix: Bool { old.kind == .prefix }

    /// - Throws: ``Failure/usage(_:)`` for a key and a prefix, and for names inside each other:
    ///   some values would be replaced before they have their new name.
    init(_ invocation: Invocation, deletes: Bool) throws(Failure) {
        self.deletes = deletes
        ifAbsent = invocation.has("--if-absent")
        let verb = deletes ? "mv" : "cp"
        let (from, to) = (invocation.operands[0], invocation.operands[1])
        old = try attempt(try Invocation.literal(from))
        new = to
        let slash = UInt8(ascii: "/")
        guard (from.last == slash) == (to.last == slash) else {
            throw .usage(
                "\(verb): give two keys, or two prefixes that end in /, not '\(Self.shown(from))' and '\(Self.shown(to))'"
            )
        }
        guard from != to, !isPrefix || !(from.starts(with: to) || to.starts(with: from)) else {
            throw .usage(
                "\(verb): '\(Self.shown(from))' and '\(Self.shown(to))' are the same, or one is inside the other"
            )
        }
    }

    private static func shown(_ name: [UInt8]) -> String {
        StateError.printable(String(decoding: name, as: UTF8.self))
    }

    /// What has to change now.
    ///
    /// - Throws: ``StateError/Code/conflict`` with `--if-absent` if a new name is taken;
    ///   ``StateError/Code/rejected`` for a value that ends with a client.
    func changes(_ client: Client) throws(StateError) -> KeyChanges {
        let keys = try oldKeys(client)
        let newKeys = try keys.map { key throws(StateError) in
            try Key(bytes: isPrefix ? new + key.bytes.dropFirst(old.literal.count) : new)
        }
        let entries = try client.entries(for: keys)
        let taken = try client.entries(for: newKeys)
        var changes: [KeyChanges.Change] = []
        var unchanged: [Client.Step] = []
        for (index, key) in keys.enumerated() {
            guard let entry = entries[index], !entry.isDefault else { continue }
            if let lifetime = entry.lifetime {
                throw StateError(
                    .rejected,
                    "'\(key)' ends with its \(lifetime.rawValue): its value cannot get another name"
                )
            }
            let before = taken[index].flatMap { $0.isDefault ? nil : $0 }
            if ifAbsent, let before {
                throw StateError(
                    .conflict,
                    "'\(newKeys[index])' is there already, at revision \(before.revision)"
                )
            }
            changes.append(
                KeyChanges.Change(
                    key: newKeys[index],
                    before: before?.value,
                    after: entry.value,
                    revision: before?.revision ?? 0,
                    expires: entry.expires
                )
            )
            guard deletes else {
                unchanged.append(.check(key, revision: entry.revision))
                continue
            }
            changes.append(
                KeyChanges.Change(
                    key: key,
                    before: entry.value,
                    after: nil,
                    revision: entry.revision
                )
            )
        }
        return KeyChanges(changes, unchanged: unchanged)
    }

    private func oldKeys(_ client: Client) throws(StateError) -> [Key] {
        guard isPrefix else { return [try Key(bytes: old.literal)] }
        var keys: [Key] = []
        var pages = client.pages(of: old, keysOnly: true)
        while let page = try pages.next() {
            for entry in page { keys.append(try Key(bytes: entry.key)) }
            guard keys.count <= Self.keyLimit else {
                throw StateError(
                    .tooBig,
                    "more than \(Self.keyLimit) keys are below '\(old)': rename smaller prefixes"
                )
            }
        }
        return keys
    }

    /// More than one commit can hold.
    private static let keyLimit = 200_000
}
