/// Several patterns as one: the keys that match at least one of them, each once and in key order.
package struct PatternSet: Sendable {
    package let patterns: [Pattern]
    /// The ranges of the keys, in key order and disjoint.
    package let ranges: [Range]

    package struct Range: Sendable {
        package let bytes: [UInt8]
        /// Whether it is one key, without the keys that begin with it.
        package let isOneKey: Bool
    }

    package init(_ patterns: [Pattern]) {
        self.patterns = patterns
        let sorted = patterns.map { Range(bytes: $0.literal, isOneKey: $0.kind == .key) }
            .sorted { left, right in
                left.bytes == right.bytes
                    ? !left.isOneKey && right.isOneKey
                    : left.bytes.lexicographicallyPrecedes(right.bytes)
            }
        // Prefixes are nested or disjoint, so what a kept one covers comes right after it.
        var kept: [Range] = []
        var cover: [UInt8]?
        for range in sorted {
            if let cover, range.bytes.starts(with: cover) { continue }
            if let last = kept.last, last.isOneKey, last.bytes == range.bytes { continue }
            kept.append(range)
            if !range.isOneKey { cover = range.bytes }
        }
        ranges = kept
    }

    /// How many globs they count as.
    package var globCount: Int { patterns.reduce(0) { $0 + $1.globCount } }

    package func matches(_ key: Bytes) -> Bool { patterns.contains { $0.matches(key) } }
}
