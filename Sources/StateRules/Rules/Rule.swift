package import StateEngine
import StateJSON

/// A rule of the configuration for the keys of one pattern; an option that it does not set is nil.
package struct Rule: Sendable {
    /// Its index in the configuration, from 0.
    package let index: Int
    /// The keys to which it applies.
    package let keys: Pattern
    package var backing: KeyBacking?
    package var durability: Durability?
    /// Within which time storage must have a change, with durability `interval`.
    package var commitInterval: Duration?
    /// A value is deleted so long after it was set.
    package var expiry: Duration?
    /// A value is deleted when its writer's connection or process ends.
    package var lifetime: Lifetime?
    /// How much of the history of each key is kept.
    package var history: KeyRetention?
    package var schema: Schema?
    /// The value that readers get for an absent key; only in a rule for one key.
    package var standard: [UInt8]?
    /// Whether nothing may change the keys.
    package var isReadOnly: Bool?
    /// Whether a key may be set only while it is absent, and never deleted.
    package var isWriteOnce: Bool?
    package var access: [KeyAction: [Principal]] = [:]
    package var limits: [KeyLimit: Int64] = [:]
    /// Exceeding these is only logged.
    package var softLimits: [KeyLimit: Int64] = [:]
    /// The JSON of the rule.
    let source: JSONValue
}
