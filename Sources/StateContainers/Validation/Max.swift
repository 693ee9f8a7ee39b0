public import StateEngine

/// A value of at most the bound; a nil passes.
///
/// ```swift
/// @Max(150) var age: Int? = nil
/// ```
@propertyWrapper
public struct Max<Value: BoundedValue>: ValidatedWrapper {
    /// The value.
    public var wrappedValue: Value
    /// Nil if the value was decoded.
    private let bound: Value.Bound?

    /// Makes a wrapper of a value that must be at most `bound`.
    public init(wrappedValue: Value, _ bound: Value.Bound) {
        self.wrappedValue = wrappedValue
        self.bound = bound
    }

    /// Makes a wrapper without a bound.
    public init(unruled value: Value) { (wrappedValue, bound) = (value, nil) }

    /// The issue of the value, if there is one.
    public func issue(model: Self) -> ValidationIssue? {
        guard let bound = bound ?? model.bound, let value = wrappedValue.checkedValue else {
            return nil
        }
        return ValidationCheck.maximum(bound, value)
    }
}

extension Max: RequirableValue where Value: RequirableValue {}
extension Max: TextValue where Value: TextValue {}
extension Max: BoundedValue {}
extension Max: Decodable where Value: Decodable {}
extension Max: Encodable where Value: Encodable {}
extension Max: Equatable where Value: Equatable {}
extension Max: Hashable where Value: Hashable {}
extension Max: Sendable where Value: Sendable {}
