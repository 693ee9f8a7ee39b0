/// The number and size of all keys of one rule; under the keyspace's lock.
package final class KeyUsage: @unchecked Sendable {
    // Changed under the lock of the keyspace that uses the rules: the proof of `@unchecked
    // Sendable` and of `@exclusivity(unchecked)`.
    @exclusivity(unchecked) package internal(set) var keyCount: Int64 = 0
    /// Bytes of keys and values.
    @exclusivity(unchecked) package internal(set) var byteCount: Int64 = 0

    package init() {}

    func reset() { (keyCount, byteCount) = (0, 0) }
}

/// A limit on an amount or a rate.
package final class Quota: @unchecked Sendable {
    package let limit: KeyLimit
    package let most: Int64
    package let rule: RulePlace
    /// Whether a crossing is only logged.
    package let isSoft: Bool
    let usage: KeyUsage
    let rate: WriteRate
    /// Under the keyspace's lock: whether the current crossing was reported.
    private var isSaid = false

    package init(
        _ limit: KeyLimit,
        _ most: Int64,
        rule: RulePlace,
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
