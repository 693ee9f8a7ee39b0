package import StateEngine
import Synchronization

/// The rules of a configuration about values, as the keyspace asks them.
package final class ValueRules: WriteRules {
    /// Values under a schema have at most so many bytes, unless a rule says otherwise.
    private static let schemaByteCount: Int64 = 256 << 10
    /// The same for how deep their arrays and objects are nested.
    private static let schemaDepth: Int64 = 64

    private let table: RuleTable
    /// What holds for the keys that match the same rules: there are few such sets.
    private let known = Mutex<[[Int]: ResolvedRule]>([:])

    package init(_ table: RuleTable) { self.table = table }

    /// What holds for a key.
    ///
    /// - Complexity: O(*n*) in the bytes of the key, but for the rules that begin as it does.
    package func rule(for key: Bytes) -> ResolvedRule {
        let matching = table.matching(key)
        return known.withLock { known in
            if let rule = known[matching] { return rule }
            let rule = ResolvedRule(table.rules, matching: matching)
            known[matching] = rule
            return rule
        }
    }

    package func checkSet(
        _ key: Bytes,
        to value: Bytes,
        appending suffix: Bytes?,
        isPresent: Bool
    ) throws(StateError) {
        let rule = rule(for: key)
        try checkReadOnly(rule, key)
        if isPresent, let once = rule.isWriteOnce, once.value {
            throw refused(key, once.rule, "writeOnce", "it is set already")
        }
        let byteCount = Int64(value.count + (suffix?.count ?? 0))
        try checkSize(byteCount, rule, key)
        guard let schema = rule.schema else { return }
        let depth = Int(clamping: rule.limits[.depth]?.value ?? Self.schemaDepth)
        var issues: [ValidationIssue]
        if let suffix {
            issues = (Array(value) + Array(suffix)).withUnsafeBytes {
                schema.value.issues(of: $0, depthLimit: depth)
            }
        } else {
            issues = schema.value.issues(of: value, depthLimit: depth)
        }
        guard !issues.isEmpty else { return }
        let wrong = issues.prefix(5).map(\.description).joined(separator: "; ")
        throw StateError(
            .rejected,
            "key \(StateError.quoted(key)): \(wrong) (rule \(schema.rule + 1), schema)",
            issues: issues
        )
    }

    package func checkDelete(_ key: Bytes) throws(StateError) {
        let rule = rule(for: key)
        try checkReadOnly(rule, key)
        if let once = rule.isWriteOnce, once.value {
            throw refused(key, once.rule, "writeOnce", "it stays")
        }
    }

    private func checkReadOnly(_ rule: ResolvedRule, _ key: Bytes) throws(StateError) {
        if let readOnly = rule.isReadOnly, readOnly.value {
            throw refused(key, readOnly.rule, "readonly", "it may not be changed")
        }
    }

    private func checkSize(
        _ byteCount: Int64,
        _ rule: ResolvedRule,
        _ key: Bytes
    ) throws(StateError) {
        let limit = rule.limits[.valueBytes]
        let most = limit?.value ?? (rule.schema == nil ? .max : Self.schemaByteCount)
        guard byteCount > most else { return }
        let index = limit?.rule ?? rule.schema?.rule ?? 0
        throw StateError(
            .tooBig,
            "the value of key \(StateError.quoted(key)) has \(byteCount) bytes; the limit is \(most) "
                + "(rule \(index + 1), limits.valueBytes)"
        )
    }

    private func refused(
        _ key: Bytes,
        _ rule: Int,
        _ option: String,
        _ sentence: String
    ) -> StateError {
        StateError(
            .rejected,
            "key \(StateError.quoted(key)): \(sentence) (rule \(rule + 1), \(option))"
        )
    }
}
