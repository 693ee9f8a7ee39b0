import StateModel

extension PatternSet {
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
