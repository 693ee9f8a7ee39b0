public import StateEngine

/// An address of electronic mail, as browsers check it; a nil passes, an empty text does not.
///
/// ```swift
/// @Email var mail: String? = nil
/// ```
@propertyWrapper
public struct Email<Value: TextValue>: ValidatedWrapper {
    /// The value.
    public var wrappedValue: Value

    /// Makes a wrapper.
    public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }

    /// Makes a wrapper, whose rule needs nothing to be known.
    public init(unruled value: Value) { wrappedValue = value }

    /// What is wrong with the value.
    public func issue(model: Self) -> ValidationIssue? {
        wrappedValue.checkedText.flatMap(ValidationCheck.email)
    }
}

extension Email: RequirableValue where Value: RequirableValue {
    /// Whether the value is missing.
    public var isMissing: Bool { wrappedValue.isMissing }
}

extension Email: TextValue {
    /// The text of the value.
    public var checkedText: String? { wrappedValue.checkedText }
}

extension Email: BoundedValue where Value: BoundedValue {
    /// What is compared of the value.
    public var checkedValue: Value.Bound? { wrappedValue.checkedValue }
}

extension Email: Decodable where Value: Decodable {
    /// Decodes the bare value.
    public init(from decoder: any Decoder) throws {
        self.init(unruled: try decoder.singleValueContainer().decode(Value.self))
    }
}

extension Email: Encodable where Value: Encodable {
    /// Encodes the bare value.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(wrappedValue)
    }
}

extension Email: Equatable where Value: Equatable {
    /// Whether the values are equal; rules are not compared.
    public static func == (left: Self, right: Self) -> Bool {
        left.wrappedValue == right.wrappedValue
    }
}

extension Email: Hashable where Value: Hashable {
    /// By the value.
    public func hash(into hasher: inout Hasher) { hasher.combine(wrappedValue) }
}

extension Email: Sendable where Value: Sendable {}
