import StateEngine
import StateJSON

/// A schema, or a part of one.
final class SchemaNode: Sendable {
    let keywords: SchemaKeywords

    init(_ keywords: SchemaKeywords) { self.keywords = keywords }

    /// The schema `false`.
    static let never: SchemaNode = {
        var keywords = SchemaKeywords()
        keywords.isNever = true
        return SchemaNode(keywords)
    }()

    /// Whether it is `false`: no value is valid.
    var isNever: Bool { keywords.isNever }
}

/// The keywords of one schema.
struct SchemaKeywords: Sendable {
    /// A list of allowed values, with the text of the rule.
    struct Choice: Sendable {
        let values: [JSONValue]
        let rule: String
        /// What a refused value is, in a sentence.
        let complaint: String
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
    var properties: [[UInt8]: SchemaNode] = [:]
    /// The schema of members that neither `properties` nor `patternProperties` names.
    var rest: SchemaNode?
    /// The schema of elements behind those of `prefixItems`.
    var items: SchemaNode?
    var minimumItems: Int?
    var maximumItems: Int?
    /// Nil if there are none, so that usual schemas do not pay for them.
    private(set) var more: RarerKeywords?

    mutating func setMore(_ values: RarerKeywords.Values) { more = RarerKeywords(values) }
}

/// The keywords that few schemas have.
final class RarerKeywords: Sendable {
    struct Condition: Sendable {
        let test: SchemaNode
        let then: SchemaNode?
        let otherwise: SchemaNode?
    }

    struct PatternMember: Sendable {
        let pattern: RegularExpression
        let schema: SchemaNode
    }

    struct Contained: Sendable {
        let schema: SchemaNode
        let least: Int
        let most: Int?
    }

    struct Values: Sendable {
        /// `$ref`: an index in the table.
        var reference: Int?
        var all: [SchemaNode] = []
        var any: [SchemaNode] = []
        var one: [SchemaNode] = []
        var forbidden: SchemaNode?
        var condition: Condition?
        var first: [SchemaNode] = []
        var contained: Contained?
        var areItemsUnique = false
        var patterns: [PatternMember] = []
        var names: SchemaNode?
        var minimumMembers: Int?
        var maximumMembers: Int?
        var dependentNames: [(name: String, required: [String])] = []
        var dependentSchemas: [(name: String, schema: SchemaNode)] = []
        var unevaluatedMembers: SchemaNode?
        var unevaluatedItems: SchemaNode?

        /// Those that are checked with the same value.
        var inPlace: [SchemaNode] {
            all + any + one + dependentSchemas.map(\.schema)
                + [forbidden, condition?.test, condition?.then, condition?.otherwise]
                .compactMap(\.self)
        }

        /// Those that are checked with members or elements of the value.
        var inside: [SchemaNode] {
            first + patterns.map(\.schema)
                + [contained?.schema, names, unevaluatedMembers, unevaluatedItems].compactMap(
                    \.self
                )
        }

        var isEmpty: Bool {
            reference == nil && inPlace.isEmpty && inside.isEmpty && !areItemsUnique
                && minimumMembers == nil && maximumMembers == nil && dependentNames.isEmpty
        }
    }

    let values: Values

    /// Nil if `values` is empty.
    init?(_ values: Values) {
        guard !values.isEmpty else { return nil }
        self.values = values
    }
}
