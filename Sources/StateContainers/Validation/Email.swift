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

extension Email: RequirableValue where Value: RequirableValue {}
extension Email: TextValue {}
extension Email: BoundedValue where Value: BoundedValue {}
extension Email: Decodable where Value: Decodable {}
extension Email: Encodable where Value: Encodable {}
extension Email: Equatable where Value: Equatable {}
extension Email: Hashable where Value: Hashable {}
extension Email: Sendable where Value: Sendable {}
