import CLinux

/// The options of a rule on values.
package struct ValueRule: ~Copyable, Sendable {
    /// The rule that forbids changes.
    private let readOnlyRule: RulePlace?
    let writeOnceRule: RulePlace?
    private let schema: KeyRule.Setting<any ValueSchema>?
    /// Values that are known to be valid for `schema`.
    private let plainIntegers: ClosedRange<Int64>?
    /// The largest value in bytes.
    package let byteCount: Int
    private let byteCountRule: RulePlace?
    /// The largest nesting depth of arrays and objects of values under a schema.
    package let depth: Int
    private let depthRule: RulePlace?
    /// Whether the keys live in files, which editors end with a line break.
    private let isInFiles: Bool

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
        isInFiles = if case .file? = settings.backing?.value { true } else { false }
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

    /// Checks whether `value`, followed by `suffix`, is valid for `key`, whoever writes it.
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
        if issues.isEmpty { return }
        if isInFiles, suffix == nil, let rest = FileForm.withoutFinalBreak(value) {
            if schema.value.issues(of: rest, depthLimit: depth).isEmpty { return }
        }
        throw rejected(key, issues, schema.rule)
    }

    /// Checks whether `key`, which has a value, may be deleted.
    ///
    /// - Throws: ``StateError/Code/rejected``, naming the key and the rule.
    func checkDelete(_ key: Bytes) throws(StateError) {
        if let readOnlyRule {
            throw refused(key, readOnlyRule, "readonly", "it is read-only")
        }
        if let writeOnceRule {
            throw refused(key, writeOnceRule, "writeOnce", "it may not be deleted")
        }
    }

    private func rejected(
        _ key: Bytes,
        _ issues: [ValidationIssue],
        _ rule: RulePlace
    ) -> StateError {
        let wrong = issues.prefix(5).map(\.description).joined(separator: "; ")
        var source = "\(rule), schema"
        if let depthRule,
            issues.contains(where: { $0.rule == "depth \(depth)" })
        {
            source = "\(depthRule), limits.depth"
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
                + "\(byteCount) (\(rule), limits.valueBytes)"
        )
    }

    private func refused(
        _ key: Bytes,
        _ rule: RulePlace,
        _ option: String,
        _ sentence: String
    ) -> StateError {
        StateError(
            .rejected,
            "key \(StateError.quoted(key)): \(sentence) (\(rule), \(option))"
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

/// Limits on amounts and rates of a rule's keys.
extension KeyspaceCore {
    /// Refuses a value with which a rule's keys would exceed a limit: ``StateError/Code/limit``.
    func checkQuota(
        _ rule: KeyRule,
        _ key: Bytes,
        _ byteCount: Int,
        superseding current: Record?
    ) throws(StateError) {
        for quota in rule.quotas.amounts {
            guard quota.limit != .valueBytes else {
                try refuse(quota, Int64(byteCount) > quota.most) {
                    "the value of key \(StateError.quoted(key)) has \(byteCount) bytes; "
                        + "the limit is \(quota.most)"
                }
                continue
            }
            let isOfKeys = quota.limit == .keys
            let growth =
                isOfKeys
                ? (current == nil ? 1 : 0)
                : Int64(key.count + byteCount - (current?.byteCount ?? 0))
            let used = isOfKeys ? quota.usage.keyCount : quota.usage.byteCount
            try refuse(quota, growth > 0 && used + growth > quota.most) {
                let unit = isOfKeys ? "keys" : "bytes"
                // A writer who may not read all of them must not learn the usage of others.
                let isShown =
                    quota.isSoft || visibility(of: transaction.subject).showsEverything
                let much =
                    !isShown
                    ? "would exceed its \(quota.most) \(unit)"
                    : isOfKeys && used == quota.most
                        ? "already has its \(used) \(used == 1 ? "key" : "keys")"
                        : "would have \(used + growth) \(unit); the limit is \(quota.most)"
                return "key \(StateError.quoted(key)): the rule \(much)"
            }
        }
    }

    /// Refuses a write of a uid that has written too often recently.
    ///
    /// - Throws: ``StateError/Code/limit``, naming the key, the number and the rule.
    func checkRate(_ rule: KeyRule, _ key: Bytes) throws(StateError) {
        for quota in rule.quotas.rates {
            // Of a command of a cluster its first attempt counts.
            guard let uid = transaction.cause?._withUnsafeGuaranteedRef({ $0.cause.uid }),
                !(transaction.cluster?.isRepeated ?? false)
            else { return }
            let isTaken = quota.rate.take(uid, most: quota.most)
            if isTaken { transaction.rates.append((quota.rate, uid)) }
            try refuse(quota, !isTaken) {
                let count = transaction.rates.count { $0.rate === quota.rate }
                let advice = count >= quota.most ? "one commit cannot write more" : "try again"
                let limit = "exceeds \(quota.most) writes per second"
                let end = quota.isSoft ? "" : "; \(advice)"
                return "key \(StateError.quoted(key)): uid \(uid) \(limit)\(end)"
            }
        }
    }

    private func refuse(
        _ quota: Quota,
        _ isExceeded: Bool,
        _ sentence: () -> String
    ) throws(StateError) {
        guard isExceeded || quota.isSoft else { return }
        let rule = "(\(quota.rule), \(quota.option))"
        guard quota.isSoft else { throw StateError(.limit, "\(sentence()) \(rule)") }
        if quota.says(isExceeded), admission.notices.count < 100 {
            admission.notices.append("\(sentence()) \(rule)")
        }
    }

    /// Counts a version that replaces `older`; with a `sign` of -1, uncounts it.
    func count(_ record: Record, superseding older: Record?, by sign: Int64) {
        guard let rule = rules?.rule(for: record.key), !rule.quotas.counted.isEmpty else { return }
        let old = older.flatMap { $0.isDeleted ? nil : $0 }
        let keys = (record.isDeleted ? 0 : 1) - (old == nil ? 0 : 1)
        let bytes = (record.isDeleted ? 0 : record.byteCount) - (old?.byteCount ?? 0)
        for usage in rule.quotas.counted {
            usage.keyCount += sign * Int64(keys)
            usage.byteCount += sign * Int64(bytes)
        }
    }
}

/// How often each uid has written recently; under the keyspace's lock.
package final class WriteRate: @unchecked Sendable {
    private struct Bucket {
        /// The number of writes that are allowed at once.
        var level: Double
        /// Monotonic nanoseconds.
        var time: Int64
    }

    // Changed under the lock of the keyspace that uses the rules: the proof of `@unchecked
    // Sendable`.
    private var buckets: [UInt32: Bucket] = [:]
    private static let uidLimit = 10_000

    package init() {}

    /// Takes one write of `uid`, if `most` per second are allowed.
    ///
    /// - Returns: Whether the write is allowed.
    func take(_ uid: UInt32, most: Int64) -> Bool {
        let now = clinux_monotonic_nanoseconds()
        var bucket = buckets[uid] ?? Bucket(level: Double(most), time: now)
        bucket.level = min(
            Double(most),
            bucket.level + Double(now - bucket.time) * Double(most) / 1e9
        )
        bucket.time = now
        let isAllowed = bucket.level >= 1
        if isAllowed { bucket.level -= 1 }
        buckets[uid] = bucket
        if buckets.count > WriteRate.uidLimit {
            buckets = buckets.filter { now - $0.value.time < 1_000_000_000 }
        }
        return isAllowed
    }

    /// Gives back a write that was not made.
    func giveBack(_ uid: UInt32) { buckets[uid]?.level += 1 }
}
