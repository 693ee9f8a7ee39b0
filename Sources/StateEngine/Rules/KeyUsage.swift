import CLinux

/// The number and size of all keys of one rule; under the keyspace's lock.
package final class KeyUsage: @unchecked Sendable {
    // Changed under the lock of the keyspace that uses the rules: the proof of `@unchecked
    // Sendable`.
    package internal(set) var keyCount: Int64 = 0
    /// Bytes of keys and values.
    package internal(set) var byteCount: Int64 = 0

    package init() {}

    func reset() { (keyCount, byteCount) = (0, 0) }
}

/// How often each uid has written recently; under the keyspace's lock.
package final class WriteRate: @unchecked Sendable {
    private struct Bucket {
        /// The number of writes that are allowed at once.
        var level: Double
        /// Monotonic nanoseconds.
        var time: Int64
    }

    // As above.
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

/// A limit on an amount or a rate.
package final class Quota: @unchecked Sendable {
    package let limit: KeyLimit
    package let most: Int64
    /// The index of the rule in the configuration, from 0.
    package let rule: Int
    /// Whether a crossing is only logged.
    package let isSoft: Bool
    let usage: KeyUsage
    let rate: WriteRate
    /// Under the keyspace's lock: whether the current crossing was reported.
    private var isSaid = false

    package init(
        _ limit: KeyLimit,
        _ most: Int64,
        rule: Int,
        isSoft: Bool,
        usage: KeyUsage,
        rate: WriteRate
    ) {
        self.limit = limit
        self.most = most
        self.rule = rule
        self.isSoft = isSoft
        self.usage = usage
        self.rate = rate
    }

    /// Returns true once per crossing of the limit.
    func says(_ isExceeded: Bool) -> Bool {
        defer { isSaid = isExceeded }
        return isExceeded && !isSaid
    }

    /// The name of the option as it is written.
    var option: String { "\(isSoft ? "softLimits" : "limits").\(limit.rawValue)" }
}

/// The limits of a rule on amounts and rates.
struct QuotaRule: ~Copyable, Sendable {
    /// Limits on keys and bytes, and soft limits on values.
    let amounts: [Quota]
    /// Limits on writes per second.
    let rates: [Quota]
    /// The usages that count the keys.
    let counted: [KeyUsage]

    init(_ quotas: [Quota]) {
        amounts = quotas.filter { quota in
            [.keys, .bytes].contains(quota.limit) || quota.limit == .valueBytes && quota.isSoft
        }
        rates = quotas.filter { $0.limit == .writesPerSecond }
        var counted: [KeyUsage] = []
        for quota in amounts
        where quota.limit != .valueBytes && !counted.contains(where: { $0 === quota.usage }) {
            counted.append(quota.usage)
        }
        self.counted = counted
    }
}

/// Limits on amounts and rates of a rule's keys.
extension KeyspaceCore {
    /// Refuses a value with which a rule's keys would exceed a limit.
    ///
    /// - Throws: ``StateError/Code/limit``, naming the key, the number and the rule.
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
                let much =
                    quota.isSoft || visibility(of: transaction.subject).showsEverything
                    ? "would have \(used + growth) \(unit); the limit is \(quota.most)"
                    : "would exceed \(quota.most) \(unit)"
                return "key \(StateError.quoted(key)): the keys of the rule \(much)"
            }
        }
    }

    /// Refuses a write of a uid that has written too often recently.
    ///
    /// - Throws: ``StateError/Code/limit``, naming the key, the number and the rule.
    func checkRate(_ rule: KeyRule, _ key: Bytes) throws(StateError) {
        for quota in rule.quotas.rates {
            guard let uid = transaction.cause?._withUnsafeGuaranteedRef({ $0.cause.uid }) else {
                return
            }
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
        let rule = "(rule \(quota.rule + 1), \(quota.option))"
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

    /// Counts all keys anew for new rules.
    func recount() {
        let usages = rules?.usages ?? []
        admission.countsUsage = !usages.isEmpty
        guard admission.countsUsage else { return }
        for usage in usages { usage.reset() }
        entries.live.forEach(prefix: Bytes(start: nil, count: 0), after: nil) { head in
            count(head, superseding: nil, by: 1)
            return true
        }
    }
}
