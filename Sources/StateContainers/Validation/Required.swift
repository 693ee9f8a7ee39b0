public import StateEngine

/// A value that must be present: not nil, and not an empty text or collection.
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

    /// Makes a wrapper; its rule has no parameters.
    public init(unruled value: Value) { wrappedValue = value }

    /// The issue of the value, if there is one.
    public func issue(model: Self) -> ValidationIssue? {
        ValidationCheck.required(isMissing: wrappedValue.isMissing)
    }
}

extension Required: RequirableValue {}
extension Required: TextValue where Value: TextValue {}
extension Required: BoundedValue where Value: BoundedValue {}
extension Required: Decodable where Value: Decodable {}
extension Required: Encodable where Value: Encodable {}
extension Required: Equatable where Value: Equatable {}
extension Required: Hashable where Value: Hashable {}
extension Required: Sendable where Value: Sendable {}
