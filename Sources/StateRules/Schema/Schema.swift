import StateEngine
import StateJSON

/// The valid values of a key, in the terms of JSON Schema draft 2020-12.
///
/// https://json-schema.org/draft/2020-12/json-schema-validation
package struct Schema: ValueSchema {
    /// The schema of members or elements.
    indirect enum Parts: Sendable {
        case anything
        case matching(Schema)
    }

    /// A list of allowed values, with the text of the rule.
    struct Choice: Sendable {
        let values: [JSONValue]
        let rule: String
    }

    /// A bound, and its digits as written.
    struct Bound: Sendable {
        enum Kind: String, CaseIterable {
            case minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf
        }

        let kind: Kind
        let number: ExactNumber
        let digits: String
    }

    /// The schema `false`: no value is valid.
    var isNever = false
    /// Nil for any type.
    var types: SchemaTypes?
    var choices: [Choice] = []
    var bounds: [Bound] = []
    var minimumLength: Int?
    var maximumLength: Int?
    var pattern: RegularExpression?
    var format: SchemaFormat?
    var required: [String] = []
    /// By the bytes of their names: two names that look the same may differ.
    var properties: [[UInt8]: Schema] = [:]
    /// The schema of members that `properties` does not name.
    var rest = Parts.anything
    var items = Parts.anything
    var minimumItems: Int?
    var maximumItems: Int?

    package var typeName: String? {
        types.flatMap { types in SchemaTypes.names.first { $0.type == types }?.name }
    }
}
