/// Several patterns as one: the keys that at least one of them means, each once and in key order.
package struct PatternSet: Sendable {
    package let patterns: [Pattern]
    /// Where the keys lie, in key order and disjoint.
    private let ranges: [Range]

    private struct Range {
        let bytes: [UInt8]
        /// One key, not what begins with it.
        let isOneKey: Bool
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

    package func matches(_ key: Bytes) -> Bool { patterns.contains { $0.matches(key) } }

    /// Calls `body` for the matching records of `tree` after `bound`, in key order, until it says false.
    func forEach(in tree: borrowing RadixTree, after bound: Bytes?, _ body: (Record) -> Bool) {
        let matchesAll = patterns.count == 1 && patterns[0].kind == .prefix
        for range in ranges {
            var goesOn = true
            range.bytes.withUnsafeBytes { bytes in
                if range.isOneKey {
                    guard let record = tree.record(for: bytes),
                        bound.map({ $0.precedes(bytes) }) ?? true
                    else { return }
                    goesOn = body(record)
                } else {
                    tree.forEach(prefix: bytes, after: bound) { record in
                        guard matchesAll || matches(record.key) else { return true }
                        goesOn = body(record)
                        return goesOn
                    }
                }
            }
            guard goesOn else { return }
        }
    }
}
