public import StateEngine

/// A text of which a part matches a regular expression of ECMA 262; a nil passes.
///
/// ```swift
/// @Matches("^[a-z]+$") var name = "a"
/// ```
@propertyWrapper
public struct Matches<Value: TextValue>: ValidatedWrapper {
    /// The value.
    public var wrappedValue: Value
    /// Nil where the value was decoded.
    private let expression: RegularExpression?

    /// Makes a wrapper of a text that is to match `pattern`.
    ///
    /// `^` and `$` are the text's beginning and end; there are no back-references and no look-around. A pattern that is
    /// none ends the process and says why. Matching takes time in proportion to the text, times the pattern where many
    /// parts of that may match: beyond 2,000,000 steps it ends, and the text is refused.
    public init(wrappedValue: Value, _ pattern: String) {
        self.wrappedValue = wrappedValue
        do {
            expression = try RegularExpression(pattern)
        } catch {
            preconditionFailure(error.message)
        }
    }

    /// Makes a wrapper without a pattern.
    public init(unruled value: Value) { (wrappedValue, expression) = (value, nil) }

    /// What is wrong with the text.
    public func issue(model: Self) -> ValidationIssue? {
        guard let expression = expression ?? model.expression, let text = wrappedValue.checkedText
        else { return nil }
        var steps = RegularExpression.stepLimit
        return ValidationCheck.pattern(expression, text, within: &steps)
    }
}

extension Matches: RequirableValue where Value: RequirableValue {}
extension Matches: TextValue {}
extension Matches: BoundedValue where Value: BoundedValue {}
extension Matches: Decodable where Value: Decodable {}
extension Matches: Encodable where Value: Encodable {}
extension Matches: Equatable where Value: Equatable {}
extension Matches: Hashable where Value: Hashable {}
extension Matches: Sendable where Value: Sendable {}
