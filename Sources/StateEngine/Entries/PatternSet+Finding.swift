import StateModel

extension PatternSet {
    /// Calls `body` for the matching records of `tree` after `bound`, in key order, until it
    /// returns false.
    func forEach(in tree: borrowing RadixTree, after bound: Bytes?, _ body: (Record) -> Bool) {
        var budget = Int.max
        _ = forEach(in: tree, after: bound, comparing: &budget, body)
    }

    /// The same, but compares at most about `budget` bytes of keys, or takes as many steps of a glob;
    /// it becomes what is left of that.
    ///
    /// - Returns: The last key that was compared, if there may be more; nil if all were compared,
    ///   or `body` returned false.
    func forEach(
        in tree: borrowing RadixTree,
        after bound: Bytes?,
        comparing budget: inout Int,
        _ body: (Record) -> Bool
    ) -> [UInt8]? {
        let matchesAll = patterns.count == 1 && patterns[0].kind == .prefix
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
                        if matches(record.key, counting: &budget) { goesOn = body(record) }
                        guard goesOn, budget <= 0 else { return goesOn }
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

    private func matches(_ key: Bytes, counting budget: inout Int) -> Bool {
        for pattern in patterns {
            budget -= key.count + PatternSet.overheadByteCount
            if pattern.matches(key, counting: &budget) { return true }
        }
        return false
    }

    /// How many bytes of a key one comparison with a pattern counts as, besides the key's own.
    private static let overheadByteCount = 16
}
