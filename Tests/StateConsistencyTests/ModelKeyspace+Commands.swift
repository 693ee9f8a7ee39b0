import StateEngine
import StateWire

extension ModelKeyspace {
    /// Carries a command out.
    ///
    /// - Returns: An answer to each of its requests, maps as flat arrays.
    mutating func answers(to command: ModelCommand) -> [Reply] {
        guard case .transaction(let commands) = command else { return [answer(to: command)] }
        let queued = commands.map { _ in Reply.simple("QUEUED") }
        return [.simple("OK")] + queued + [execute(commands)]
    }

    private mutating func answer(to command: ModelCommand) -> Reply {
        do throws(StateError) {
            return try commit { (model) throws(StateError) in try model.perform(command) }
        } catch {
            return .error(error)
        }
    }

    /// All of the commands, or none of them.
    private mutating func execute(_ commands: [ModelCommand]) -> Reply {
        do throws(StateError) {
            return try commit { (model) throws(StateError) in
                var replies: [Reply] = []
                for (index, command) in commands.enumerated() {
                    do throws(StateError) {
                        replies.append(try model.perform(command))
                    } catch {
                        let place = "command \(index + 1), '\(command.words[0].lowercased())'"
                        throw StateError(
                            .executionAborted,
                            "Transaction undone: \(place): \(error)"
                        )
                    }
                }
                return .array(replies)
            }
        } catch {
            return .error(error)
        }
    }

    private mutating func perform(_ command: ModelCommand) throws(StateError) -> Reply {
        switch command {
        case .get(let key): return value(key)
        case .multiGet(let keys): return .array(keys.map(value))
        case .exists(let keys): return .integer(Int64(keys.count { entries[$0] != nil }))
        case .length(let key): return .integer(Int64(entries[key]?.value.utf8.count ?? 0))
        case .keys(let glob): return .array(keys(redisGlob: glob).map(Reply.text))
        case .set(let key, let value, let presence, let returnsOld):
            return set(key, value, presence, returnsOld: returnsOld)
        case .multiSet(let pairs, let onlyIfAllAbsent):
            let isRefused = onlyIfAllAbsent && pairs.contains { entries[$0.key] != nil }
            if !isRefused { for (key, value) in pairs { set(key, value) } }
            return onlyIfAllAbsent ? .integer(isRefused ? 0 : 1) : .simple("OK")
        case .delete(let keys):
            var count: Int64 = 0
            for key in keys where delete(key) { count += 1 }
            return .integer(count)
        case .getDelete(let key):
            defer { delete(key) }
            return value(key)
        case .append(let key, let suffix):
            let value = (entries[key]?.value ?? "") + suffix
            set(key, value)
            return .integer(Int64(value.utf8.count))
        case .add(let key, let number): return try add(key, number)
        case .stateGet, .stateSet, .stateApply, .stateDelete, .stateList:
            return try performState(command)
        case .transaction: preconditionFailure("a transaction within a transaction")
        }
    }

    private func value(_ key: String) -> Reply { entries[key].map { .text($0.value) } ?? .null }

    private mutating func set(
        _ key: String,
        _ new: String,
        _ presence: ModelCommand.Presence?,
        returnsOld: Bool
    ) -> Reply {
        let old = value(key)
        let isAllowed = presence.map { ($0 == .present) == (old != .null) } ?? true
        if isAllowed { set(key, new) }
        if returnsOld { return old }
        return isAllowed ? .simple("OK") : .null
    }

    private mutating func add(_ key: String, _ number: Int64) throws(StateError) -> Reply {
        let text = entries[key]?.value ?? "0"
        // As in Redis, "07" is no number.
        guard let old = Int64(text), String(old) == text else {
            throw StateError(.err, "value is not an integer or out of range")
        }
        let (sum, overflows) = old.addingReportingOverflow(number)
        guard !overflows else { throw StateError(.err, "increment or decrement would overflow") }
        set(key, String(sum))
        return .integer(sum)
    }

    // MARK: STATE.*

    private mutating func performState(_ command: ModelCommand) throws(StateError) -> Reply {
        switch command {
        case .stateGet(let key): return entry(key)
        case .stateSet(let key, let value, let conditions):
            for condition in conditions { try check(key, condition) }
            set(key, value)
            return .fields(("revision", .integer(openRevision)), ("durability", .text("synced")))
        case .stateApply(let steps):
            var count = 0
            for step in steps where try perform(step) { count += 1 }
            return counted(count, at: deliveredRevision)
        case .stateDelete(let patterns, let isDryRun):
            let keys = keys(patterns)
            guard !isDryRun else { return counted(keys.count, at: revision) }
            for key in keys { delete(key) }
            return counted(keys.count, at: deliveredRevision)
        case .stateList(let pattern, let after, let limit, let form):
            return list(pattern, after, limit, form)
        default: preconditionFailure("'\(command)' is no command of ours")
        }
    }

    private func counted(_ count: Int, at revision: Int64) -> Reply {
        .fields(("revision", .integer(revision)), ("count", .integer(Int64(count))))
    }

    /// - Returns: Whether it changed something.
    private mutating func perform(_ step: ModelCommand.ApplyStep) throws(StateError) -> Bool {
        switch step {
        case .set(let key, let value, let expected):
            try check(key, expected)
            set(key, value)
            return true
        case .delete(let key, let expected):
            try check(key, expected)
            return delete(key)
        case .check(let key, let expected):
            try check(key, expected)
            return false
        }
    }

    /// STATE.GET without what the model does not know: when, and by whom.
    private func entry(_ key: String) -> Reply {
        guard let entry = entries[key] else { return .null }
        return .fields(
            ("value", .text(entry.value)),
            ("revision", .integer(entry.revision)),
            ("created", .integer(entry.created)),
            ("version", .integer(entry.version)),
            ("owner", .integer(entry.owner)),
            ("expires", .null),
            ("durability", .text("synced"))
        )
    }

    private func list(
        _ pattern: String,
        _ after: String?,
        _ limit: Int?,
        _ form: ModelCommand.ListForm
    ) -> Reply {
        let keys = keys([pattern])
            .filter { key in
                after.map { $0.utf8.lexicographicallyPrecedes(key.utf8) } ?? true
            }
            .prefix(limit ?? .max)
        switch form {
        case .count: return .integer(Int64(keys.count))
        case .keys: return .array(keys.map { .array([.text($0)]) })
        case .entries:
            return .array(
                keys.compactMap { key in
                    entries[key].map {
                        .array([.text(key), .text($0.value), .integer($0.revision)])
                    }
                }
            )
        }
    }
}

extension Reply {
    /// A bulk of text.
    static func text(_ text: String) -> Reply { .bulk(Array(text.utf8)) }

    /// A map as RESP2 sends it.
    static func fields(_ fields: (String, Reply)...) -> Reply {
        .array(fields.flatMap { [.text($0.0), $0.1] })
    }

    /// The same with each map as RESP2 sends it.
    var flattened: Reply {
        switch self {
        case .array(let elements): .array(elements.map(\.flattened))
        case .map(let pairs):
            .array(pairs.flatMap { [$0.key.flattened, $0.value.flattened] })
        default: self
        }
    }
}
