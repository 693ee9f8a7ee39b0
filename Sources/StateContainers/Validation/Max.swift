public import StateEngine

/// A value that is the bound or less; a nil passes.
///
/// ```swift
/// @Max(150) var age: Int? = nil
/// ```
@propertyWrapper
public struct Max<Value: BoundedValue>: ValidatedWrapper {
    /// The value.
    public var wrappedValue: Value
    /// Nil where the value was decoded.
    private let bound: Value.Bound?

    /// Makes a wrapper of a value that is to be `bound` or less.
    public init(wrappedValue: Value, _ bound: Value.Bound) {
        self.wrappedValue = wrappedValue
        self.bound = bound
    }

    /// Makes a wrapper without a bound.
    public init(unruled value: Value) { (wrappedValue, bound) = (value, nil) }

    /// What is wrong with the value.
    public func issue(model: Self) -> ValidationIssue? {
        guard let bound = bound ?? model.bound, let value = wrappedValue.checkedValue else {
            return nil
        }
        return ValidationCheck.maximum(bound, value)
    }
}

extension Max: RequirableValue where Value: RequirableValue {
    /// Whether the value is missing.
    public var isMissing: Bool { wrappedValue.isMissing }
}

extension Max: TextValue where Value: TextValue {
    /// The text of the value.
    public var checkedText: String? { wrappedValue.checkedText }
}

extension Max: BoundedValue {
    /// What is compared of the value.
    public var checkedValue: Value.Bound? { wrappedValue.checkedValue }
}

extension Max: Decodable where Value: Decodable {
    /// Decodes the bare value.
    public init(from decoder: any Decoder) throws {
        self.init(unruled: try decoder.singleValueContainer().decode(Value.self))
    }
}

extension Max: Encodable where Value: Encodable {
    /// Encodes the bare value.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(wrappedValue)
    }
}

extension Max: Equatable where Value: Equatable {
    /// Whether the values are equal; rules are not compared.
    public static func == (left: Self, right: Self) -> Bool {
        left.wrappedValue == right.wrappedValue
    }
}

extension Max: Hashable where Value: Hashable {
    /// By the value.
    public func hash(into hasher: inout Hasher) { hasher.combine(wrappedValue) }
}

extension Max: Sendable where Value: Sendable {}
