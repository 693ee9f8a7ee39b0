public import StateEngine

/// A property wrapper of a ``Validatable`` value: a value and its rule.
///
/// It encodes as the bare value, and equality compares the value. A decoded wrapper has no rule:
/// those of the type's `init()` apply. Wrappers can be nested if each can check what the other
/// wraps.
public protocol ValidatedWrapper<Value> {
    /// The wrapped type: a bare value, or another wrapper.
    associatedtype Value

    /// The wrapped value.
    var wrappedValue: Value { get set }

    /// Makes a wrapper without a rule.
    init(unruled value: Value)

    /// The violation of this wrapper's rule, or of the rule of `model` if this one has none.
    func issue(model: Self) -> ValidationIssue?
}

extension ValidatedWrapper {
    /// The violations of this wrapper's rule, of those in it, and of what they wrap.
    func issues(model: Any?) -> [ValidationIssue] {
        let model = model as? Self ?? self
        let mine = issue(model: model).map { [$0] } ?? []
        guard let inner = wrappedValue as? any ValidatedWrapper else {
            return mine + nestedIssues(wrappedValue)
        }
        return mine + inner.issues(model: model.wrappedValue)
    }
}

// A wrapper conforms to what its value conforms to.

extension ValidatedWrapper where Value: RequirableValue {
    /// Whether the value is missing.
    public var isMissing: Bool { wrappedValue.isMissing }
}

extension ValidatedWrapper where Value: TextValue {
    /// The text of the value.
    public var checkedText: String? { wrappedValue.checkedText }
}

extension ValidatedWrapper where Value: BoundedValue {
    /// The value to compare.
    public var checkedValue: Value.Bound? { wrappedValue.checkedValue }
}

extension ValidatedWrapper where Value: Decodable {
    /// Decodes the bare value.
    public init(from decoder: any Decoder) throws {
        self.init(unruled: try decoder.singleValueContainer().decode(Value.self))
    }
}

extension ValidatedWrapper where Value: Encodable {
    /// Encodes the bare value.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(wrappedValue)
    }
}

extension ValidatedWrapper where Value: Equatable {
    /// Whether the values are equal; rules are not compared.
    public static func == (left: Self, right: Self) -> Bool {
        left.wrappedValue == right.wrappedValue
    }
}

extension ValidatedWrapper where Value: Hashable {
    /// Hashes the value.
    public func hash(into hasher: inout Hasher) { hasher.combine(wrappedValue) }
}

/// A value that may be missing: an empty text or collection, or a nil.
public protocol RequirableValue {
    /// Whether it is missing.
    var isMissing: Bool { get }
}

/// A text, or an Optional of one; a nil passes every check of texts.
public protocol TextValue {
    /// The text, or nil.
    var checkedText: String? { get }
}

/// A value with an order, or an Optional of one; a nil passes every bound.
public protocol BoundedValue {
    /// The type of its bounds.
    associatedtype Bound: Comparable & Sendable
    /// The value to compare, or nil.
    var checkedValue: Bound? { get }
}

extension BoundedValue where Self: Comparable & Sendable {
    /// The value itself.
    public var checkedValue: Self? { self }
}

extension RequirableValue where Self: Collection {
    /// Whether it is empty.
    public var isMissing: Bool { isEmpty }
}

extension RequirableValue where Self: Numeric {
    /// Never: a number is always present.
    public var isMissing: Bool { false }
}

extension String: RequirableValue, TextValue, BoundedValue {
    /// The text.
    public var checkedText: String? { self }
}
extension Array: RequirableValue {}
extension Dictionary: RequirableValue {}
extension Set: RequirableValue {}
extension Int: RequirableValue, BoundedValue {}
extension Int8: RequirableValue, BoundedValue {}
extension Int16: RequirableValue, BoundedValue {}
extension Int32: RequirableValue, BoundedValue {}
extension Int64: RequirableValue, BoundedValue {}
extension UInt: RequirableValue, BoundedValue {}
extension UInt8: RequirableValue, BoundedValue {}
extension UInt16: RequirableValue, BoundedValue {}
extension UInt32: RequirableValue, BoundedValue {}
extension UInt64: RequirableValue, BoundedValue {}
extension Double: RequirableValue, BoundedValue {}
extension Float: RequirableValue, BoundedValue {}
extension Bool: RequirableValue {
    /// Never: a Boolean is always present.
    public var isMissing: Bool { false }
}

extension Optional: RequirableValue where Wrapped: RequirableValue {
    /// Whether it is nil, or its value is missing.
    public var isMissing: Bool { self?.isMissing ?? true }
}
extension Optional: TextValue where Wrapped: TextValue {
    /// The text, or nil.
    public var checkedText: String? { self?.checkedText }
}
extension Optional: BoundedValue where Wrapped: BoundedValue {
    /// The value to compare, or nil.
    public var checkedValue: Wrapped.Bound? { self?.checkedValue }
}
