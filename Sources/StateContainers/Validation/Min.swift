public import StateEngine

/// A value of at least the bound; a nil passes.
///
/// ```swift
/// @Min(0) var age: Int? = nil
/// ```
@propertyWrapper
public struct Min<Value: BoundedValue>: ValidatedWrapper {
    /// The value.
    public var wrappedValue: Value
    /// Nil if the value was decoded.
    private let bound: Value.Bound?

    /// Makes a wrapper of a value that must be at least `bound`.
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
        return ValidationCheck.minimum(bound, value)
    }
}

extension Min: RequirableValue where Value: RequirableValue {}
extension Min: TextValue where Value: TextValue {}
extension Min: BoundedValue {}
extension Min: Decodable where Value: Decodable {}
extension Min: Encodable where Value: Encodable {}
extension Min: Equatable where Value: Equatable {}
extension Min: Hashable where Value: Hashable {}
extension Min: Sendable where Value: Sendable {}
