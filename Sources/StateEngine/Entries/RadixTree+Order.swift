/// Records in key order.
extension RadixTree {
    /// Calls `body` for the records whose keys begin with `prefix` and come after `bound`, in key
    /// order, until it returns false.
    ///
    /// - Complexity: O(*m*) in the records visited, plus O(*n*) in the bytes of prefix and bound.
    package func forEach(prefix: Bytes, after bound: Bytes?, _ body: (Record) -> Bool) {
        var reference = root.pointee
        var depth = 0
        while !reference.isNone, reference.leaf == nil {
            let node = reference.node
            let next = depth + node.prefixByteCount
            guard next < prefix.count else { break }
            guard let child = node.child(prefix[next]) else { return }
            reference = child.pointee
            depth = next + 1
        }
        guard !reference.isNone else { return }
        let least = RadixTree.leastLeaf(below: reference).key
        guard least.hasPrefix(prefix) else { return }
        var bound = bound
        if let given = bound, !given.hasPrefix(prefix) {
            guard given.precedes(prefix) else { return }
            bound = nil
        }
        _ = RadixTree.visit(reference, depth, bound, body)
    }

    /// Visits what is below `reference`; with a bound, whose first `depth` bytes are those of the
    /// path, only what comes after it.
    private static func visit(
        _ reference: RadixReference,
        _ depth: Int,
        _ bound: Bytes?,
        _ body: (Record) -> Bool
    ) -> Bool {
        if let leaf = reference.leaf {
            if let bound, !bound.precedes(leaf.key) { return true }
            return body(leaf)
        }
        let node = reference.node
        guard let bound else {
            return node.forEachChild(from: 0) { _, child in visit(child, 0, nil, body) }
        }
        let end = depth + node.prefixByteCount
        if node.prefixByteCount > 0 {
            let path = leastLeaf(below: reference).key.slice(depth, end)
            let rest = bound.slice(min(depth, bound.count), min(end, bound.count))
            let order = path.order(to: rest)
            if order < 0 { return true }
            if order > 0 { return visit(reference, 0, nil, body) }
        }
        let edge = byte(bound, end)
        return node.forEachChild(from: edge) { byte, child in
            visit(child, end + 1, byte == edge ? bound : nil, body)
        }
    }

    /// One of the records, each with some probability; nil if there are none.
    ///
    /// - Complexity: O(*n*) in the depth of the tree.
    package func randomRecord(_ random: inout some RandomNumberGenerator) -> Record? {
        var reference = root.pointee
        while !reference.isNone {
            if let leaf = reference.leaf { return leaf }
            var place = Int.random(in: 0..<reference.node.childCount, using: &random)
            var chosen = RadixReference.none
            _ = reference.node.forEachChild(from: 0) { _, child in
                chosen = child
                place -= 1
                return place >= 0
            }
            reference = chosen
        }
        return nil
    }

    static func leastLeaf(below reference: RadixReference) -> Record {
        var reference = reference
        while true {
            if let leaf = reference.leaf { return leaf }
            reference = reference.node.firstChild
        }
    }
}

extension RadixNode {
    /// Calls `body` for each edge byte of at least `start` and its child, in order, until it
    /// returns false.
    ///
    /// - Returns: False if `body` returned false.
    func forEachChild(from start: UInt8, _ body: (UInt8, RadixReference) -> Bool) -> Bool {
        switch kind {
        case .small, .digits, .medium:
            for index in 0..<childCount where edges[index] >= start {
                guard body(edges[index], children[index]) else { return false }
            }
        case .large:
            for byte in Int(start)..<256 where edges[byte] != 0 {
                guard body(UInt8(byte), children[Int(edges[byte]) - 1]) else { return false }
            }
        case .full:
            for byte in Int(start)..<256 where !children[byte].isNone {
                guard body(UInt8(byte), children[byte]) else { return false }
            }
        }
        return true
    }

    /// The child with the least edge byte.
    var firstChild: RadixReference {
        var found = RadixReference.none
        _ = forEachChild(from: 0) { _, child in
            found = child
            return false
        }
        return found
    }
}
