import StateEngine
import StateJSON

/// The valid values of a key, in the terms of JSON Schema draft 2020-12.
///
/// https://json-schema.org/draft/2020-12/json-schema-validation
package struct Schema: ValueSchema {
    let root: SchemaNode
    /// What `$ref` names, in ``root`` and in the table itself.
    let table: SchemaTable
    /// The types that decide how bytes are read.
    let possibleTypes: SchemaTypes
    /// Whether `type` names them, at the top or in what is combined there.
    let namesTypes: Bool
    /// What contradicts itself or has no effect, with its place.
    package let warnings: [OptionFault]

    package var typeName: String? {
        guard namesTypes else { return nil }
        return SchemaTypes.names.first { $0.type == possibleTypes }?.name
    }
}

/// The schemas that `$ref` names, in the rules of one configuration and the files beside it.
///
/// A reference is an index, because schemas may refer to themselves.
final class SchemaTable: @unchecked Sendable {
    // Changed only while the configuration is read, by one thread, before anything is checked: the
    // proof of `@unchecked Sendable`.
    private(set) var nodes: [SchemaNode] = []

    /// Reserves an index for a schema that is read later.
    func reserve() -> Int {
        nodes.append(.never)
        return nodes.count - 1
    }

    func set(_ index: Int, to node: SchemaNode) { nodes[index] = node }
}
