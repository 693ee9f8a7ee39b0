package import StateEngine
package import StateJSON

/// A rule of the configuration for the keys of some patterns; an option that it does not set is nil.
package struct Rule: Sendable {
    /// Where it stands.
    package let place: RulePlace
    /// The file that it is in, an index of ``Configuration/Part``, and its index in there.
    package internal(set) var part = 0
    package internal(set) var indexInPart = 0
    /// The keys to which it applies; none if they could not be read.
    package internal(set) var keys: [Pattern] = []
    package var backing: KeyBacking?
    /// What the files look like, with `backing: "file"`; without the defaults.
    package var form = FileForm()
    /// What reads get while the copy of a cluster may be behind, and from when on it may be.
    package var staleness: Staleness?
    package var staleTime: Duration?
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
    /// What of a key is logged.
    package var audit: AuditLevel?
    package var access: [KeyAction: [Principal]] = [:]
    package var limits: [KeyLimit: Int64] = [:]
    /// Exceeding these is only logged.
    package var softLimits: [KeyLimit: Int64] = [:]
    /// What can be used, but is probably not meant.
    var warnings: [OptionFault] = []
    /// The JSON of the rule.
    var source = JSONValue.object([:])

    /// Without keys and options.
    init(at place: RulePlace) { self.place = place }

    /// Its index in the configuration, from 0.
    package var index: Int { place.index }

    /// Its path in its file.
    package var path: JSONPath { JSONPath().member("rules").element(indexInPart) }

    /// A fault of it, in its file.
    package func fault(_ path: JSONPath, _ message: String) -> OptionFault {
        OptionFault(path, message).located(in: part, after: index - indexInPart)
    }
}
