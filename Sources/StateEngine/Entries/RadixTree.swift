import CLinux

/// Records by key, in key order: an adaptive radix tree with compressed paths.
///
/// The tree provides both look-ups whose cost does not depend on the number of keys, and listings
/// in order. A hash table beside an ordered index was rejected: it takes 5 more bytes per entry,
/// and every overwrite would have to find its place in the index again.
///
/// In the tree, the byte 0 ends each key; keys have no control characters, so no key contains it.
/// The tree owns its nodes, never the records.
package struct RadixTree: ~Copyable {
    private(set) var root = UnsafeMutablePointer<RadixReference>.allocate(capacity: 1)
    package private(set) var count = 0

    package init() { root.initialize(to: .none) }

    deinit {
        RadixTree.deallocate(root.pointee)
        root.deallocate()
    }

    private static func deallocate(_ reference: RadixReference) {
        guard !reference.isNone, reference.leaf == nil else { return }
        _ = reference.node.forEachChild(from: 0) { _, child in
            deallocate(child)
            return true
        }
        reference.node.deallocate()
    }

    /// The record of `key`.
    ///
    /// - Complexity: O(*n*) in the bytes of the key.
    package func record(for key: Bytes) -> Record? { slot(for: key)?.pointee.leaf }

    /// Replaces the record with the same key, which must be there, by `record`.
    ///
    /// - Returns: The replaced record.
    /// - Complexity: O(*n*) in the bytes of the key.
    package mutating func replace(with record: Record) -> Record {
        guard let slot = slot(for: record.key), let old = slot.pointee.leaf else {
            preconditionFailure("no record to replace under \(StateError.quoted(record.key))")
        }
        slot.pointee = RadixReference(record)
        return old
    }

    /// The slot of the leaf of `key`.
    ///
    /// Valid until the next insertion or removal. Prefixes are skipped, not compared: the leaf has
    /// the complete key.
    @inline(__always)
    func slot(for key: Bytes) -> UnsafeMutablePointer<RadixReference>? {
        var slot = root
        var depth = 0
        while !slot.pointee.isNone {
            // Prefetches the cache lines of a node or a record at once, not one after the other.
            clinux_prefetch(slot.pointee.address)
            if let leaf = slot.pointee.leaf { return leaf.key.isEqual(to: key) ? slot : nil }
            let node = slot.pointee.node
            depth += node.prefixByteCount
            guard depth <= key.count, let next = node.child(RadixTree.byte(key, depth)) else {
                return nil
            }
            slot = next
            depth += 1
        }
        return nil
    }

    @inline(__always)
    private static func byte(_ key: Bytes, _ depth: Int) -> UInt8 {
        depth < key.count ? key[depth] : 0
    }

    // MARK: Insertion

    /// Adds a record whose key is not in the tree.
    ///
    /// - Complexity: O(*n*) in the bytes of the key.
    package mutating func insert(_ record: Record) {
        let key = record.key
        count += 1
        var slot = root
        var depth = 0
        while !slot.pointee.isNone {
            if let leaf = slot.pointee.leaf {
                slot.pointee = RadixTree.fork(leaf, record, depth)
                return
            }
            let node = slot.pointee.node
            let shared = RadixTree.sharedPrefix(node, key, depth)
            if shared < node.prefixByteCount {
                slot.pointee = RadixTree.split(node, record, depth, shared)
                return
            }
            depth += shared
            let edge = RadixTree.byte(key, depth)
            guard let next = node.child(edge) else {
                slot.pointee = RadixReference(node.adding(RadixReference(record), behind: edge))
                return
            }
            slot = next
            depth += 1
        }
        slot.pointee = RadixReference(record)
    }

    /// A node over two leaves whose keys agree before `depth`.
    private static func fork(_ left: Record, _ right: Record, _ depth: Int) -> RadixReference {
        let (leftKey, rightKey) = (left.key, right.key)
        var end = depth
        while byte(leftKey, end) == byte(rightKey, end) {
            precondition(end < leftKey.count, "a key that is there is inserted")
            end += 1
        }
        let node = RadixNode.make(.small)
        node.setPrefix(rightKey.slice(depth, end))
        return RadixReference(
            node.adding(RadixReference(left), behind: byte(leftKey, end))
                .adding(RadixReference(right), behind: byte(rightKey, end))
        )
    }

    /// A node over the record and `node`, whose prefix has only its first `shared` bytes in common
    /// with the record's key.
    private static func split(
        _ node: RadixNode,
        _ record: Record,
        _ depth: Int,
        _ shared: Int
    )
        -> RadixReference
    {
        let below = leastLeaf(below: RadixReference(node)).key
        let end = depth + shared
        let parent = RadixNode.make(.small)
        parent.setPrefix(below.slice(depth, end))
        node.setPrefix(below.slice(end + 1, depth + node.prefixByteCount))
        return RadixReference(
            parent.adding(RadixReference(node), behind: below[end])
                .adding(RadixReference(record), behind: byte(record.key, end))
        )
    }

    /// How many bytes of the node's prefix are equal to those of `key` from `depth` on.
    private static func sharedPrefix(_ node: RadixNode, _ key: Bytes, _ depth: Int) -> Int {
        let length = node.prefixByteCount
        guard length > 0 else { return 0 }
        let kept = node.inlinePrefix
        var index = 0
        while index < kept.count {
            if byte(key, depth + index) != kept[index] { return index }
            index += 1
        }
        guard length > kept.count else { return length }
        let below = leastLeaf(below: RadixReference(node)).key
        while index < length, byte(key, depth + index) == below[depth + index] { index += 1 }
        return index
    }

    static func leastLeaf(below reference: RadixReference) -> Record {
        var reference = reference
        while true {
            if let leaf = reference.leaf { return leaf }
            reference = reference.node.firstChild
        }
    }

    // MARK: Removal

    /// Removes the record of `key`, which must be there.
    ///
    /// - Complexity: O(*n*) in the bytes of the key.
    package mutating func remove(_ key: Bytes) {
        var parent: (slot: UnsafeMutablePointer<RadixReference>, edge: UInt8, depth: Int)?
        var slot = root
        var depth = 0
        while slot.pointee.leaf == nil {
            precondition(!slot.pointee.isNone, "a key that is not there is removed")
            let node = slot.pointee.node
            let start = depth
            depth += node.prefixByteCount
            let edge = RadixTree.byte(key, depth)
            guard let next = node.child(edge) else {
                preconditionFailure("a key that is not there is removed")
            }
            parent = (slot, edge, start)
            slot = next
            depth += 1
        }
        precondition(
            slot.pointee.leaf.map { $0.key.isEqual(to: key) } ?? false,
            "a key that is not there is removed"
        )
        count -= 1
        guard let parent else {
            root.pointee = .none
            return
        }
        let node = parent.slot.pointee.node.removing(parent.edge)
        parent.slot.pointee =
            node.childCount == 1
            ? RadixTree.collapse(node, at: parent.depth) : RadixReference(node)
    }

    /// The only child of `node`, with the path of both; frees `node`.
    private static func collapse(_ node: RadixNode, at depth: Int) -> RadixReference {
        let child = node.firstChild
        if child.leaf == nil {
            let length = node.prefixByteCount + 1 + child.node.prefixByteCount
            child.node.setPrefix(leastLeaf(below: child).key.slice(depth, depth + length))
        }
        node.deallocate()
        return child
    }

    // MARK: In order

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
}
