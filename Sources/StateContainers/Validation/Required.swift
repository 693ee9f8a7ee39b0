public import StateEngine

/// A value that has to be there: no nil, no empty text or collection.
///
/// ```swift
/// @Required var name = ""
/// ```
@propertyWrapper
public struct Required<Value: RequirableValue>: ValidatedWrapper {
    /// The value.
    public var wrappedValue: Value

    /// Makes a wrapper.
    public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }

    /// Makes a wrapper, whose rule needs nothing to be known.
    public init(unruled value: Value) { wrappedValue = value }

    /// What is wrong with the value.
    public func issue(model: Self) -> ValidationIssue? {
        ValidationCheck.required(isMissing: wrappedValue.isMissing)
    }
}

extension Required: RequirableValue {
    /// Whether the value is missing.
    public var isMissing: Bool { wrappedValue.isMissing }
}

extension Required: TextValue where Value: TextValue {
    /// The text of the value.
    public var checkedText: String? { wrappedValue.checkedText }
}

extension Required: BoundedValue where Value: BoundedValue {
    /// What is compared of the value.
    public var checkedValue: Value.Bound? { wrappedValue.checkedValue }
}

extension Required: Decodable where Value: Decodable {
    /// Decodes the bare value.
    public init(from decoder: any Decoder) throws {
        self.init(unruled: try decoder.singleValueContainer().decode(Value.self))
    }
}

extension Required: Encodable where Value: Encodable {
    /// Encodes the bare value.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(wrappedValue)
    }
}

extension Required: Equatable where Value: Equatable {
    /// Whether the values are equal; rules are not compared.
    public static func == (left: Self, right: Self) -> Bool {
        left.wrappedValue == right.wrappedValue
    }
}

extension Required: Hashable where Value: Hashable {
    /// By the value.
    public func hash(into hasher: inout Hasher) { hasher.combine(wrappedValue) }
}

extension Required: Sendable where Value: Sendable {}
