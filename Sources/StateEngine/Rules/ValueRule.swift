/// The options of a rule on values.
package struct ValueRule: ~Copyable, Sendable {
    /// The rule that forbids changes.
    private let readOnlyRule: Int?
    private let writeOnceRule: Int?
    private let schema: KeyRule.Setting<any ValueSchema>?
    /// Values that are known to be valid for `schema`.
    private let plainIntegers: ClosedRange<Int64>?
    /// The largest value in bytes.
    package let byteCount: Int
    private let byteCountRule: Int?
    /// The largest nesting depth of arrays and objects of values under a schema.
    package let depth: Int
    private let depthRule: Int?

    /// The largest value under a schema, in bytes, unless a rule sets another limit.
    package static let schemaByteCount = 256 << 10
    /// The largest nesting depth of its arrays and objects, unless a rule sets another limit.
    package static let schemaDepth = 64

    init(_ settings: KeyRule.Settings) {
        readOnlyRule = settings.isReadOnly.flatMap { $0.value ? $0.rule : nil }
        writeOnceRule = settings.isWriteOnce.flatMap { $0.value ? $0.rule : nil }
        schema = settings.schema
        plainIntegers = settings.schema?.value.plainIntegers
        byteCount =
            settings.limits[.valueBytes].map { Int(clamping: $0.value) }
            ?? (settings.schema == nil ? Int.max : ValueRule.schemaByteCount)
        byteCountRule = settings.limits[.valueBytes]?.rule
        depth = settings.limits[.depth].map { Int(clamping: $0.value) } ?? ValueRule.schemaDepth
        depthRule = settings.limits[.depth]?.rule
    }

    /// Checks whether `key` may be set to `value`, followed by `suffix` if there is one.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - value: The bytes.
    ///   - suffix: Bytes to append.
    ///   - isPresent: Whether the key has a value.
    /// - Throws: ``StateError/Code/rejected`` or ``StateError/Code/tooBig``, naming the key, the
    ///   rule and the value.
    func checkSet(
        _ key: Bytes,
        to value: Bytes,
        appending suffix: Bytes?,
        isPresent: Bool
    ) throws(StateError) {
        if let readOnlyRule {
            throw refused(key, readOnlyRule, "readonly", "it is read-only")
        }
        if isPresent { try checkOverwriting(key) }
        try checkValue(key, value, appending: suffix)
    }

    /// Checks whether `key`, which has a value, may get another.
    ///
    /// - Throws: ``StateError/Code/rejected``, naming the key and the rule.
    func checkOverwriting(_ key: Bytes) throws(StateError) {
        guard let writeOnceRule else { return }
        throw refused(
            key,
            writeOnceRule,
            "writeOnce",
            "it can be set only once, and is set already"
        )
    }

    /// Checks whether `value`, followed by `suffix` if there is one, is valid for `key`, whoever
    /// writes it.
    ///
    /// - Throws: ``StateError/Code/rejected`` or ``StateError/Code/tooBig``, naming the key, the
    ///   rule and the value.
    package func checkValue(
        _ key: Bytes,
        _ value: Bytes,
        appending suffix: Bytes? = nil
    ) throws(StateError) {
        let count = value.count + (suffix?.count ?? 0)
        if count > byteCount { throw tooBig(count, key) }
        if let plainIntegers, suffix == nil, let number = plainInteger(value),
            plainIntegers.contains(number)
        {
            return
        }
        guard let schema else { return }
        var issues: [ValidationIssue]
        if let suffix {
            issues = (Array(value) + Array(suffix)).withUnsafeBytes {
                schema.value.issues(of: $0, depthLimit: depth)
            }
        } else {
            issues = schema.value.issues(of: value, depthLimit: depth)
        }
        guard issues.isEmpty else { throw rejected(key, issues, schema.rule) }
    }

    /// Checks whether `key`, which has a value, may be deleted.
    ///
    /// - Throws: ``StateError/Code/rejected``, naming the key and the rule.
    func checkDelete(_ key: Bytes) throws(StateError) {
        if let readOnlyRule {
            throw refused(key, readOnlyRule, "readonly", "it is read-only")
        }
        if let writeOnceRule {
            throw refused(key, writeOnceRule, "writeOnce", "it cannot be deleted")
        }
    }

    private func rejected(_ key: Bytes, _ issues: [ValidationIssue], _ rule: Int) -> StateError {
        let wrong = issues.prefix(5).map(\.description).joined(separator: "; ")
        var source = "rule \(rule + 1), schema"
        if let depthRule,
            issues.contains(where: { $0.rule == "depth \(depth)" })
        {
            source = "rule \(depthRule + 1), limits.depth"
        }
        return StateError(
            .rejected,
            "key \(StateError.quoted(key)): \(wrong) (\(source))",
            issues: issues
        )
    }

    private func tooBig(_ count: Int, _ key: Bytes) -> StateError {
        let rule = byteCountRule ?? schema?.rule ?? 0
        return StateError(
            .tooBig,
            "the value of key \(StateError.quoted(key)) has \(count) bytes; the limit is "
                + "\(byteCount) (rule \(rule + 1), limits.valueBytes)"
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

/// The whole number in `bytes`, if it is written as in JSON with at most 15 digits, which every
/// reader represents exactly; otherwise nil.
@inline(__always)
private func plainInteger(_ bytes: Bytes) -> Int64? {
    let isNegative = bytes.first == UInt8(ascii: "-")
    let start = isNegative ? 1 : 0
    let count = bytes.count - start
    guard 1...15 ~= count, count == 1 || bytes[start] != UInt8(ascii: "0") else { return nil }
    var number: Int64 = 0
    for byte in bytes[start...] {
        let digit = byte &- UInt8(ascii: "0")
        guard digit < 10 else { return nil }
        number = number &* 10 &+ Int64(digit)
    }
    return isNegative ? -number : number
}
