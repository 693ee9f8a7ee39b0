public import StateEngine

/// An e-mail address, by the rule of HTML forms in browsers.
///
/// A nil passes; an empty text does not.
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

    /// Makes a wrapper; its rule has no parameters.
    public init(unruled value: Value) { wrappedValue = value }

    /// The issue of the value, if there is one.
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
