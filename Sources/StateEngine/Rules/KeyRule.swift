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
    /// The largest value in bytes.
    let valueByteCount: Int
    let depth: Int

    /// Values under a schema have at most so many bytes, unless a rule says otherwise.
    package static let schemaByteCount = 256 << 10
    /// The same for how deep their arrays and objects are nested.
    package static let schemaDepth = 64

    package init(_ settings: Settings) {
        self.settings = settings
        readOnlyRule = settings.isReadOnly.flatMap { $0.value ? $0.rule : nil }
        writeOnceRule = settings.isWriteOnce.flatMap { $0.value ? $0.rule : nil }
        schema = settings.schema
        valueByteCount =
            settings.limits[.valueBytes].map { Int(clamping: $0.value) }
            ?? (settings.schema == nil ? Int.max : KeyRule.schemaByteCount)
        depth = settings.limits[.depth].map { Int(clamping: $0.value) } ?? KeyRule.schemaDepth
    }
}
