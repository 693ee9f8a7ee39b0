/// What holds for the keys that match the same rules: each option with the number of the rule that says it.
package final class KeyRule: Sendable {
    /// An option and where it comes from.
    package struct Setting<Value: Sendable>: Sendable {
        package var value: Value
        /// The place of the rule in the configuration, from 0.
        package var rule: Int

        package init(value: Value, rule: Int) {
            self.value = value
            self.rule = rule
        }
    }

    /// The options, each from the most specific rule that names it.
    package struct Settings: Sendable {
        package var backing: Setting<KeyBacking>?
        package var durability: Setting<Durability>?
        package var expiry: Setting<Duration>?
        package var schema: Setting<any ValueSchema>?
        package var standard: Setting<[UInt8]>?
        package var isReadOnly: Setting<Bool>?
        package var isWriteOnce: Setting<Bool>?
        package var access: [KeyAction: Setting<[Principal]>] = [:]
        package var limits: [KeyLimit: Setting<Int64>] = [:]
        package var softLimits: [KeyLimit: Setting<Int64>] = [:]

        /// Where no rule matches.
        package init() {}
    }

    package let settings: Settings

    // What is asked of each write, taken out of the settings once.
    /// The rule that lets nothing be changed.
    let readOnlyRule: Int?
    let writeOnceRule: Int?
    let schema: Setting<any ValueSchema>?
    /// What ``schema`` need not be asked about.
    let plainIntegers: ClosedRange<Int64>?
    /// The largest value in bytes.
    package let valueByteCount: Int
    /// As deep may arrays and objects of values under a schema be nested.
    package let depth: Int
    /// Whether no storage keeps the keys.
    package let isInMemory: Bool
    /// How safe a change is before its writer goes on, where he does not say.
    package let durability: Durability
    /// How long a value stays, in milliseconds; nil for ever.
    let lifetimeMilliseconds: Int64?
    /// Limits of keys and bytes, and of values those that are only said.
    let quotas: [Quota]
    /// Limits of writes in a second.
    let rates: [Quota]
    /// Where the keys are counted.
    let counted: [KeyUsage]

    // Who may, beside those whom no rule keeps out; nil for everybody.
    let readers: AccessList?
    let writers: AccessList?
    let watchers: AccessList?
    let creators: AccessList?
    let admins: AccessList?
    let isCreateNamed: Bool
    /// Where it is not, nobody else is an administrator.
    let isAdminNamed: Bool
    /// Whether it depends on the owner of an entry who may do what.
    let asksForOwner: Bool
    /// Whether anybody is kept from setting or deleting.
    let limitsWriting: Bool
    /// Whether anybody is kept from reading.
    let limitsReading: Bool
    /// Whether anybody is kept from watching.
    package let limitsSight: Bool

    /// Values under a schema have at most so many bytes, unless a rule says otherwise.
    package static let schemaByteCount = 256 << 10
    /// The same for how deep their arrays and objects are nested.
    package static let schemaDepth = 64

    /// - Parameters:
    ///   - settings: The options.
    ///   - quotas: The limits of how much and how often among them.
    package init(_ settings: Settings, quotas: [Quota]) {
        self.settings = settings
        readOnlyRule = settings.isReadOnly.flatMap { $0.value ? $0.rule : nil }
        writeOnceRule = settings.isWriteOnce.flatMap { $0.value ? $0.rule : nil }
        schema = settings.schema
        plainIntegers = settings.schema?.value.plainIntegers
        valueByteCount =
            settings.limits[.valueBytes].map { Int(clamping: $0.value) }
            ?? (settings.schema == nil ? Int.max : KeyRule.schemaByteCount)
        depth = settings.limits[.depth].map { Int(clamping: $0.value) } ?? KeyRule.schemaDepth
        isInMemory = settings.backing?.value == .memory
        durability = settings.durability?.value ?? .synced
        lifetimeMilliseconds = settings.expiry.map { Int64($0.value / .milliseconds(1)) }
        self.quotas = quotas.filter { quota in
            [.keys, .bytes].contains(quota.limit) || quota.limit == .valueBytes && quota.isSoft
        }
        rates = quotas.filter { $0.limit == .writesPerSecond }
        var counted: [KeyUsage] = []
        for quota in self.quotas
        where quota.limit != .valueBytes && !counted.contains(where: { $0 === quota.usage }) {
            counted.append(quota.usage)
        }
        self.counted = counted
        readers = AccessList(settings.access[.read])
        writers = AccessList(settings.access[.write])
        watchers = AccessList(settings.access[.watch])
        creators = AccessList(settings.access[.create])
        admins = AccessList(settings.access[.admin])
        isCreateNamed = settings.access[.create] != nil
        isAdminNamed = settings.access[.admin] != nil
        asksForOwner = [readers, writers, watchers, admins].contains { $0?.namesOwner ?? false }
        limitsReading = readers != nil
        limitsSight = readers != nil || watchers != nil
        limitsWriting = writers != nil || creators != nil
    }
}
