/// The value that readers get for a key that nobody has set, and where it is from.
package struct StandardValue: Hashable, Sendable {
    package let value: [UInt8]
    /// The value as JSON, as it is written.
    package let json: String
    /// The file of defaults, or the rule: for people.
    package let origin: String
    /// Whether it is from a rule.
    package let isRuled: Bool

    package init(value: [UInt8], json: String, origin: String, isRuled: Bool) {
        (self.value, self.json, self.origin) = (value, json, origin)
        self.isRuled = isRuled
    }
}

/// The defaults of all keys that have one; immutable.
package struct StandardValues: Sendable {
    private let values: [[UInt8]: StandardValue]
    /// In their order.
    private let keys: [[UInt8]]

    package init(_ values: [[UInt8]: StandardValue] = [:]) {
        self.values = values
        keys = values.keys.sorted { $0.lexicographicallyPrecedes($1) }
    }

    package var isEmpty: Bool { values.isEmpty }

    package subscript(key: Bytes) -> StandardValue? {
        values.isEmpty ? nil : values[Array(key)]
    }

    /// The defaults of the keys that match, in key order.
    ///
    /// - Complexity: O(*n*) in the number of defaults.
    package func matching(_ pattern: Pattern) -> [(key: [UInt8], value: StandardValue)] {
        keys.compactMap { key in
            guard key.withUnsafeBytes({ pattern.matches($0) }) else { return nil }
            return values[key].map { (key, $0) }
        }
    }

    /// Those that differ in `next`, in key order, as JSON.
    package func changes(
        to next: StandardValues
    ) -> [(key: [UInt8], old: String?, new: String?)] {
        let keys = Set(values.keys).union(next.values.keys)
        return keys.sorted { $0.lexicographicallyPrecedes($1) }.compactMap { key in
            let (old, new) = (values[key], next.values[key])
            // A change of a rule is reported as such.
            let isRuled = (old?.isRuled ?? true) && (new?.isRuled ?? true)
            return isRuled || old?.json == new?.json ? nil : (key, old?.json, new?.json)
        }
    }
}
