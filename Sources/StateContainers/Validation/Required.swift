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

extension Required: RequirableValue {}
extension Required: TextValue where Value: TextValue {}
extension Required: BoundedValue where Value: BoundedValue {}
extension Required: Decodable where Value: Decodable {}
extension Required: Encodable where Value: Encodable {}
extension Required: Equatable where Value: Equatable {}
extension Required: Hashable where Value: Hashable {}
extension Required: Sendable where Value: Sendable {}
