package import StateEngine
import StateJSON

/// What the configuration says of the keys of one pattern; an option that it does not name is nil.
package struct Rule: Sendable {
    /// Where it stands in the configuration, from 0.
    package let index: Int
    /// The keys that it is about.
    package let keys: Pattern
    package var backing: KeyBacking?
    package var durability: Durability?
    /// A value is dropped so long after it was set.
    package var expiry: Duration?
    package var schema: Schema?
    /// What an absent key is answered with; in a rule for one key only.
    package var standard: [UInt8]?
    /// Whether nothing may change the keys.
    package var isReadOnly: Bool?
    /// Whether a key may be set only while it is absent, and not deleted.
    package var isWriteOnce: Bool?
    package var access: [KeyAction: [Principal]] = [:]
    package var limits: [KeyLimit: Int64] = [:]
    /// Beyond these it is only logged.
    package var softLimits: [KeyLimit: Int64] = [:]
    /// As it was read.
    let source: JSONValue
}
