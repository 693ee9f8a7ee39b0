import StateClient
import StateModel

extension Statectl {
    /// `diff REV1 [REV2] [PATTERN]`: the keys that differ between two revisions.
    static func diff(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        if invocation.has("--defaults") { return try diffDefaults(invocation, &output) }
        var operands = invocation.operands[...]
        guard !operands.isEmpty else {
            throw .usage("diff: REV1 is missing; usage: \(try Verb.named("diff").usage)")
        }
        let first = try moment(operands.removeFirst())
        // What reads as a revision or a time is a pattern only if it is the third operand.
        let isMoment =
            operands.count == 2 || operands.first.map { Moment(text($0)) != nil } ?? false
        let second = isMoment ? try moment(operands.removeFirst()) : .now
        let pattern = try operands.first.map(Invocation.pattern)
        let client = try invocation.connect()
        guard let begin = try attempt(try first.revision(client)) else {
            throw .usage("diff: the earlier revision or time comes first; now is the last")
        }
        let end = try attempt(try second.revision(client))
        if let end, end < begin {
            throw .usage("diff: the earlier revision comes first: \(end) \(begin)")
        }
        let differences = try attempt(
            try Differences(of: pattern ?? .everything, from: begin, to: end, client)
        )
        try differences.write(isJSON: invocation.isJSON, &output)
    }

    /// `diff --defaults [PATTERN]`: the keys that somebody has set to something else than their
    /// default.
    private static func diffDefaults(
        _ invocation: Invocation,
        _ output: inout Output
    ) throws(Failure) {
        guard invocation.operands.count <= 1 else {
            throw .usage("diff: --defaults takes at most a PATTERN, and no revisions")
        }
        let pattern = try invocation.pattern()
        let client = try invocation.connect()
        let differences = try attempt(try Differences(ofDefaults: pattern, client))
        try differences.write(isJSON: invocation.isJSON, &output)
    }

    private static func text(_ operand: [UInt8]) -> String {
        String(decoding: operand, as: UTF8.self)
    }

    private static func moment(_ operand: [UInt8]) throws(Failure) -> Moment {
        guard let moment = Moment(text(operand)) else {
            throw .usage("diff: '\(text(operand))' is not a revision number or a time")
        }
        return moment
    }
}

/// The keys that differ between two revisions.
///
/// - Complexity: O(*n*) time in the changes between them; memory in the keys that they touch.
struct Differences {
    private struct Difference {
        let before: [UInt8]?
        var after: [UInt8]?
        /// The last change of the key.
        var revision: Int64
    }

    private var keys: [[UInt8]: Difference] = [:]

    /// Reads the changes from one revision to another; nil for the current one.
    init(
        of pattern: Pattern,
        from first: Int64,
        to last: Int64?,
        _ client: Client
    ) throws(StateError) {
        // Reports a bad revision; STATE.CHANGES would reply with the complete state instead.
        for revision in [first, last].compactMap({ $0 }) {
            _ = try client.entry(for: Differences.anyKey, at: revision)
        }
        // Without an end, this would not stop while others write.
        let end = if let last { last } else { try Differences.currentRevision(client) }
        var next = first
        while next < end {
            let page = try client.changes(since: next, of: [pattern], previous: true)
            guard case .commits(let commits, let reached) = page else {
                // The states are there, but not each change between them, as of keys in memory.
                try compare(pattern, first, end, client)
                return
            }
            for commit in commits where commit.first.map({ $0.revision <= end }) ?? false {
                for change in commit { note(change) }
            }
            next = reached
        }
    }

    /// Compares the states at two revisions.
    ///
    /// - Complexity: O(*n*) in the keys of both; memory for their values.
    private mutating func compare(
        _ pattern: Pattern,
        _ first: Int64,
        _ last: Int64,
        _ client: Client
    ) throws(StateError) {
        keys = [:]
        var pages = client.pages(of: pattern, keysOnly: false, isLong: false, at: first)
        while let page = try pages.next() {
            for entry in page {
                keys[entry.key] = Difference(before: entry.value, after: nil, revision: last)
            }
        }
        pages = client.pages(of: pattern, keysOnly: false, isLong: false, at: last)
        while let page = try pages.next() {
            for entry in page {
                let before = keys[entry.key]?.before
                keys[entry.key] = Difference(before: before, after: entry.value, revision: last)
            }
        }
    }

    /// What a revert changes.
    init(
        reverting pattern: Pattern,
        to revision: Int64,
        _ client: Client
    ) throws(StateError) {
        let found = try client.reversion(of: pattern, to: revision)
        for change in found.changes {
            keys[change.key] = Difference(
                before: change.before,
                after: change.after,
                revision: found.revision
            )
        }
    }

    /// The values that were set, against their defaults.
    init(ofDefaults pattern: Pattern, _ client: Client) throws(StateError) {
        let defaults = try client.defaults(of: pattern)
        let names = try defaults.map { value throws(StateError) in try Key(bytes: value.key) }
        for (standard, entry) in zip(defaults, try client.entries(for: names)) {
            guard let entry, !entry.isDefault else { continue }
            keys[standard.key] = Difference(
                before: standard.value,
                after: entry.value,
                revision: entry.revision
            )
        }
    }

    private static let anyKey: Key = "stated"

    private static func currentRevision(_ client: Client) throws(StateError) -> Int64 {
        for field in try client.status() where field.name == "revision" {
            if let number = field.number { return number }
        }
        return .max
    }

    private mutating func note(_ change: Client.Change) {
        var difference =
            keys[change.key]
            ?? Difference(before: change.previous, after: nil, revision: change.revision)
        difference.after = change.value
        difference.revision = change.revision
        keys[change.key] = difference
    }

    /// Prints `- key = old` and `+ key = new` for each key that differs, in key order.
    func write(isJSON: Bool, _ output: inout Output) throws(Failure) {
        let sorted = keys.filter { $0.value.before != $0.value.after }
            .sorted { $0.key.lexicographicallyPrecedes($1.key) }
        for (key, difference) in sorted {
            if isJSON {
                output.write(json: Self.json(key, difference))
            } else {
                for (sign, style, value) in [
                    ("- ", Style.red, difference.before), ("+ ", .green, difference.after),
                ] {
                    guard let value else { continue }
                    output.write(in: style) {
                        $0.write(sign)
                        $0.writePair(key, value)
                    }
                }
            }
            try output.flushIfLarge()
        }
    }

    private static func json(_ key: [UInt8], _ difference: Difference) -> JSONLine {
        [
            "revision": .number(difference.revision),
            "op": .text(difference.after == nil ? "delete" : "set"), "key": .bytes(key),
            "value": difference.after.map { .value($0) },
            "previous": difference.before.map { .value($0) } ?? .text(nil),
        ]
    }
}
