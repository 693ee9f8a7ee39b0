extension RadixTree {
    /// Checks every node; for tests.
    ///
    /// Every node has at least two children and no more than its kind holds. Its kind is no larger
    /// than shrinking leaves it. Its edge bytes ascend and lead to what look-ups find. Its prefix
    /// and the path to it are those of every key below. The count is correct.
    ///
    /// - Returns: The faults, a sentence each; empty if there are none.
    /// - Complexity: O(*n*) in the bytes of all keys, times the depth of the tree.
    package func checkInvariants() -> [String] {
        var faults: [String] = []
        let found = RadixTree.check(root.pointee, path: [], &faults)
        if found != count { faults.append("\(found) records, but the count is \(count)") }
        return faults
    }

    /// Checks everything below `reference`, to which the edge and prefix bytes of `path` lead, and
    /// counts its records.
    private static func check(
        _ reference: RadixReference,
        path: [UInt8],
        _ faults: inout [String]
    ) -> Int {
        if reference.isNone { return 0 }
        if let leaf = reference.leaf {
            let ended = Array(leaf.key) + [0]
            if !ended.starts(with: path) {
                faults.append("\(StateError.quoted(leaf.key)) lies below the path \(path)")
            }
            return 1
        }
        let node = reference.node
        checkSize(node, path, &faults)
        let path = path + checkedPrefix(node, path, &faults)
        var records = 0
        var edges: [UInt8] = []
        _ = node.forEachChild(from: 0) { edge, child in
            edges.append(edge)
            if node.child(edge)?.pointee != child {
                faults.append("no child behind \(edge) at \(path)")
            }
            if edge == 0, child.leaf == nil { faults.append("a node behind the end of \(path)") }
            records += check(child, path: path + [edge], &faults)
            return true
        }
        if edges != Set(edges).sorted() { faults.append("edges \(edges) at \(path)") }
        if edges.count != node.childCount {
            faults.append("\(edges.count) children, but the count is \(node.childCount) at \(path)")
        }
        for edge in UInt8.min...UInt8.max where node.child(edge) != nil && !edges.contains(edge) {
            faults.append("a child behind \(edge) at \(path), which is not an edge")
        }
        return records
    }

    private static func checkSize(_ node: RadixNode, _ path: [UInt8], _ faults: inout [String]) {
        let least =
            switch node.kind {
            case .small: 2
            case .digits: 4
            case .medium: 10
            case .large: 13
            case .full: 37
            }
        if node.childCount < least || node.childCount > node.kind.capacity {
            faults.append("a \(node.kind) node with \(node.childCount) children at \(path)")
        }
    }

    /// The complete prefix of a node, as a key below it has it.
    private static func checkedPrefix(
        _ node: RadixNode,
        _ path: [UInt8],
        _ faults: inout [String]
    ) -> [UInt8] {
        let key = leastLeaf(below: RadixReference(node)).key
        let end = path.count + node.prefixByteCount
        guard end <= key.count else {
            faults.append(
                "a prefix of \(node.prefixByteCount) bytes at \(path) is longer than a key"
            )
            return []
        }
        let prefix = key.slice(path.count, end)
        if !prefix.hasPrefix(node.inlinePrefix) {
            faults.append("prefix \(Array(node.inlinePrefix)) at \(path), not \(Array(prefix))")
        }
        return Array(prefix)
    }
}
