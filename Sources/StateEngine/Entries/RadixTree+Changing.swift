import StatePlatform

/// Insertion and removal.
extension RadixTree {
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
}

extension RadixNode {
    static func make(_ kind: Kind) -> RadixNode {
        let size = kind.childrenOffset + kind.capacity * 8
        guard let address = calloc(1, size) else { noMemory(for: size) }
        address.storeBytes(of: kind.rawValue, as: UInt8.self)
        return RadixNode(address: address)
    }

    func deallocate() { free(address) }

    /// Sets `prefix` as the prefix of all keys below; its bytes may be the node's own.
    func setPrefix(_ prefix: Bytes) {
        address.storeBytes(of: UInt16(prefix.count), toByteOffset: 4, as: UInt16.self)
        let kept = min(prefix.count, RadixNode.inlinePrefixByteCount)
        if kept > 0, let base = prefix.baseAddress { memmove(address + 6, base, kept) }
    }

    /// Adds a child behind a byte that has none.
    ///
    /// Returns the node, which is a new one if this was full.
    func adding(_ child: RadixReference, behind byte: UInt8) -> RadixNode {
        guard childCount < kind.capacity else {
            return copied(into: kind.next).adding(child, behind: byte)
        }
        let count = childCount
        switch kind {
        case .small, .digits, .medium:
            var index = 0
            while index < count, edges[index] < byte { index += 1 }
            memmove(edges + index + 1, edges + index, count - index)
            memmove(children + index + 1, children + index, (count - index) * 8)
            edges[index] = byte
            children[index] = child
        case .large:
            var place = 0
            while !children[place].isNone { place += 1 }
            children[place] = child
            edges[Int(byte)] = UInt8(place + 1)
        case .full:
            children[Int(byte)] = child
        }
        childCount = count + 1
        return self
    }

    /// Removes the child behind `byte`.
    ///
    /// Returns the node, which is a smaller one if few children are left.
    func removing(_ byte: UInt8) -> RadixNode {
        let count = childCount
        switch kind {
        case .small, .digits, .medium:
            var index = 0
            while edges[index] != byte { index += 1 }
            memmove(edges + index, edges + index + 1, count - index - 1)
            memmove(children + index, children + index + 1, (count - index - 1) * 8)
        case .large:
            children[Int(edges[Int(byte)]) - 1] = .none
            edges[Int(byte)] = 0
        case .full:
            children[Int(byte)] = .none
        }
        childCount = count - 1
        // Well below the capacity of the smaller size, so that a key that comes and goes does not
        // copy each time.
        switch kind {
        case .digits where childCount <= 3: return copied(into: .small)
        case .medium where childCount <= 9: return copied(into: .digits)
        case .large where childCount <= 12: return copied(into: .medium)
        case .full where childCount <= 36: return copied(into: .large)
        default: return self
        }
    }

    private func copied(into kind: Kind) -> RadixNode {
        var copy = RadixNode.make(kind)
        memcpy(copy.address + 4, address + 4, 12)
        _ = forEachChild(from: 0) { byte, child in
            copy = copy.adding(child, behind: byte)
            return true
        }
        deallocate()
        return copy
    }
}
