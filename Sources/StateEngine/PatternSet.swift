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

    /// How many of them are globs.
    package var globCount: Int { patterns.count { $0.kind == .glob } }

    package func matches(_ key: Bytes) -> Bool { patterns.contains { $0.matches(key) } }

    /// Calls `body` for the matching records of `tree` after `bound`, in key order, until it says false.
    func forEach(in tree: borrowing RadixTree, after bound: Bytes?, _ body: (Record) -> Bool) {
        _ = forEach(in: tree, after: bound, comparing: .max, body)
    }

    /// The same, where about `byteCount` bytes of keys are compared at most.
    ///
    /// - Returns: The last key that was compared, where there may be more; nil where all were, or `body` has said false.
    func forEach(
        in tree: borrowing RadixTree,
        after bound: Bytes?,
        comparing byteCount: Int,
        _ body: (Record) -> Bool
    ) -> [UInt8]? {
        let matchesAll = patterns.count == 1 && patterns[0].kind == .prefix
        var left = byteCount
        var last: [UInt8]?
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
                        if matchesAll {
                            goesOn = body(record)
                            return goesOn
                        }
                        left -= patterns.count * (record.key.count + PatternSet.overheadByteCount)
                        if matches(record.key) { goesOn = body(record) }
                        guard goesOn, left <= 0 else { return goesOn }
                        last = Array(record.key)
                        goesOn = false
                        return false
                    }
                }
            }
            guard goesOn else { return last }
        }
        return nil
    }

    /// As how many bytes of a key it counts that the key is compared with a pattern at all.
    private static let overheadByteCount = 16
}
