import StateEngine
import StateJSON

/// What a value may be, in the words of JSON Schema draft 2020-12.
///
/// https://json-schema.org/draft/2020-12/json-schema-validation
package struct Schema: ValueSchema {
    /// A schema of parts.
    indirect enum Parts: Sendable {
        case anything
        case matching(Schema)
    }

    /// A list of values, one of which it has to be; with the text of the rule.
    struct Choice: Sendable {
        let values: [JSONValue]
        let rule: String
    }

    /// A bound, and the rule as it is written.
    struct Bound: Sendable {
        enum Kind: String, CaseIterable {
            case minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf
        }

        let kind: Kind
        let number: ExactNumber
        let digits: String
    }

    /// `false`: there is no such value.
    var isNever = false
    /// Nil where it may be of any.
    var types: SchemaTypes?
    var choices: [Choice] = []
    var bounds: [Bound] = []
    var minimumLength: Int?
    var maximumLength: Int?
    var pattern: RegularExpression?
    var format: SchemaFormat?
    var required: [String] = []
    /// By the bytes of their names: of two texts that look the same, one may be none of these.
    var properties: [[UInt8]: Schema] = [:]
    /// Of the members that `properties` does not name.
    var rest = Parts.anything
    var items = Parts.anything
    var minimumItems: Int?
    var maximumItems: Int?

    package var typeName: String? {
        types.flatMap { types in SchemaTypes.names.first { $0.type == types }?.name }
    }
}
