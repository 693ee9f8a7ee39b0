public import StateEngine

/// A property wrapper of a ``Validatable`` value: a value and its rule.
///
/// It encodes as the bare value, and equals another by the value. Decoded it has no rule: those of the type's `init()`
/// hold. Wrappers stand before one another where each can judge what the other wraps.
public protocol ValidatedWrapper<Value> {
    /// What is wrapped: a bare value, or another wrapper.
    associatedtype Value

    /// What is wrapped.
    var wrappedValue: Value { get set }

    /// Makes a wrapper without a rule.
    init(unruled value: Value)

    /// What breaks this wrapper's rule; of `model` where it has none.
    func issue(model: Self) -> ValidationIssue?
}

extension ValidatedWrapper {
    /// What breaks the rules of this wrapper, of those in it, and of what they wrap.
    func issues(model: Any?) -> [ValidationIssue] {
        let model = model as? Self ?? self
        let mine = issue(model: model).map { [$0] } ?? []
        guard let inner = wrappedValue as? any ValidatedWrapper else {
            return mine + nestedIssues(wrappedValue)
        }
        return mine + inner.issues(model: model.wrappedValue)
    }
}

// What a wrapper is where its value is it.

extension ValidatedWrapper where Value: RequirableValue {
    /// Whether the value is missing.
    public var isMissing: Bool { wrappedValue.isMissing }
}

extension ValidatedWrapper where Value: TextValue {
    /// The text of the value.
    public var checkedText: String? { wrappedValue.checkedText }
}

extension ValidatedWrapper where Value: BoundedValue {
    /// What is compared of the value.
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
    /// By the value.
    public func hash(into hasher: inout Hasher) { hasher.combine(wrappedValue) }
}

/// Something that may be missing: an empty text or collection, a nil.
public protocol RequirableValue {
    /// Whether it is missing.
    var isMissing: Bool { get }
}

/// A text, or an Optional of one, which passes every check of texts when it is nil.
public protocol TextValue {
    /// The text; nil where there is none.
    var checkedText: String? { get }
}

/// Something that has an order, or an Optional of it, which passes every bound when it is nil.
public protocol BoundedValue {
    /// What it is compared with.
    associatedtype Bound: Comparable & Sendable
    /// What is compared; nil where there is nothing.
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
    /// A number is there.
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
    /// A Boolean is there.
    public var isMissing: Bool { false }
}

extension Optional: RequirableValue where Wrapped: RequirableValue {
    /// Whether it is nil, or what is in it is missing.
    public var isMissing: Bool { self?.isMissing ?? true }
}
extension Optional: TextValue where Wrapped: TextValue {
    /// The text in it.
    public var checkedText: String? { self?.checkedText }
}
extension Optional: BoundedValue where Wrapped: BoundedValue {
    /// What is in it.
    public var checkedValue: Wrapped.Bound? { self?.checkedValue }
}
