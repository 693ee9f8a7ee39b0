import StateEngine
import StateJSON

extension SchemaReader {
    /// How many schemas may apply to one value through each other.
    private static let chainLimit = 64

    /// Refuses schemas that refer to themselves without going into the value, and long chains.
    func checkProgress(_ node: SchemaNode) throws(OptionFault) {
        var chains = SchemaChains(library.table)
        let targets = finished.map { library.table.nodes[$0.index] }
        var seen: Set<ObjectIdentifier> = []
        var waiting = [node] + targets
        var longest: (node: SchemaNode, height: Int)?
        while let next = waiting.popLast() {
            guard seen.insert(ObjectIdentifier(next)).inserted else { continue }
            waiting += next.children
            guard let height = chains.height(of: next) else {
                throw OptionFault(
                    path(of: chains.cycle),
                    "it refers to itself without going into the value"
                )
            }
            if height > longest?.height ?? SchemaReader.chainLimit { longest = (next, height) }
        }
        guard let longest else { return }
        throw OptionFault(
            path(of: longest.node.keywords.more?.values.reference),
            "\(longest.height) schemas refer to each other in a row; the limit is "
                + "\(SchemaReader.chainLimit)"
        )
    }

    /// Where the schema of an index in the table stands in the configuration.
    private func path(of index: Int?) -> JSONPath {
        guard let place = finished.first(where: { $0.index == index })?.place else {
            return root.path
        }
        return library.documents[place.document].file?.origin ?? place.path
    }
}

/// How many schemas in a row apply to the same value.
private struct SchemaChains {
    /// A schema whose chain is being counted.
    private struct Step {
        let node: SchemaNode
        /// The reference that led to it.
        var reference: Int?
        /// What it applies to the same value and was not counted yet.
        var rest: [(node: SchemaNode, reference: Int?)]
        /// The most in a row behind it.
        var most = 0
    }

    private let table: SchemaTable
    private var heights: [ObjectIdentifier: Int] = [:]
    /// The reference at which a chain came back to itself.
    private(set) var cycle: Int?

    init(_ table: SchemaTable) { self.table = table }

    /// How many schemas in a row begin with this one; nil if it comes back to itself.
    ///
    /// Not recursive: a chain is as long as the configuration.
    ///
    /// - Complexity: O(*n*) in the schemas, for all calls together.
    mutating func height(of node: SchemaNode) -> Int? {
        if let known = heights[ObjectIdentifier(node)] { return known }
        var steps = [step(node, nil)]
        var active: Set<ObjectIdentifier> = [ObjectIdentifier(node)]
        var height = 0
        while let last = steps.indices.last {
            if let next = steps[last].rest.popLast() {
                let id = ObjectIdentifier(next.node)
                if let known = heights[id] {
                    steps[last].most = max(steps[last].most, known)
                } else if active.insert(id).inserted {
                    steps.append(step(next.node, next.reference))
                } else {
                    cycle = next.reference ?? steps.lazy.compactMap(\.reference).last
                    return nil
                }
                continue
            }
            let done = steps.removeLast()
            height = done.node.keywords.more == nil ? 0 : done.most + 1
            let id = ObjectIdentifier(done.node)
            heights[id] = height
            active.remove(id)
            if let outer = steps.indices.last { steps[outer].most = max(steps[outer].most, height) }
        }
        return height
    }

    private func step(_ node: SchemaNode, _ reference: Int?) -> Step {
        let more = node.keywords.more?.values
        var rest: [(node: SchemaNode, reference: Int?)] =
            more?.inPlace.map { (node: $0, reference: nil) } ?? []
        if let target = more?.reference { rest.append((table.nodes[target], target)) }
        return Step(node: node, reference: reference, rest: rest)
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
