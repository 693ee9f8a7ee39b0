import StateEngine
import StateJSON

extension SchemaReader {
    /// How many schemas may apply to one value through each other.
    private static let chainLimit = 64

    /// Refuses schemas that refer to themselves without going into the value, and long chains.
    func checkProgress(_ node: SchemaNode) throws(OptionFault) {
        var heights: [ObjectIdentifier: Int] = [:]
        let places = Dictionary(finished.map { ($0.index, $0.place) }) { first, _ in first }
        var seen: Set<ObjectIdentifier> = []
        var waiting = [node] + finished.map { library.table.nodes[$0.index] }
        var index: Int?
        while let next = waiting.popLast() {
            guard seen.insert(ObjectIdentifier(next)).inserted else { continue }
            waiting += next.children
            guard height(next, 0, &heights, &index) == nil else { continue }
            let place = index.flatMap { places[$0] }
            let path = place.map { place in
                library.documents[place.document].file?.origin ?? place.path
            }
            throw OptionFault(
                path ?? root.path,
                "it refers to itself without going into the value, or more than "
                    + "\(SchemaReader.chainLimit) schemas refer to each other in a row"
            )
        }
    }

    /// How many schemas in a row apply to the same value; nil if there are too many.
    private func height(
        _ node: SchemaNode,
        _ depth: Int,
        _ heights: inout [ObjectIdentifier: Int],
        _ index: inout Int?
    ) -> Int? {
        if let known = heights[ObjectIdentifier(node)] { return known }
        guard depth < SchemaReader.chainLimit else { return nil }
        guard let more = node.keywords.more?.values else { return 0 }
        var most = 0
        if let reference = more.reference {
            index = reference
            let target = library.table.nodes[reference]
            guard let height = height(target, depth + 1, &heights, &index) else { return nil }
            most = height
        }
        for child in more.inPlace {
            guard let height = height(child, depth + 1, &heights, &index) else { return nil }
            most = max(most, height)
        }
        guard most < SchemaReader.chainLimit else { return nil }
        heights[ObjectIdentifier(node)] = most + 1
        return most + 1
    }
}

extension SchemaNode {
    /// All schemas in it, without those that it refers to.
    fileprivate var children: [SchemaNode] {
        let more = keywords.more?.values
        return Array(keywords.properties.values)
            + [keywords.rest, keywords.items].compactMap(\.self)
            + (more?.inPlace ?? []) + (more?.inside ?? [])
    }
}
