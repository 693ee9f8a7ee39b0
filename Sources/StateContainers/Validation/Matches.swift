public import StateEngine

/// A text of which some part matches an ECMA 262 regular expression; a nil passes.
///
/// ```swift
/// @Matches("^[a-z]+$") var name = "a"
/// ```
@propertyWrapper
public struct Matches<Value: TextValue>: ValidatedWrapper {
    /// The value.
    public var wrappedValue: Value
    /// Nil if the value was decoded.
    private let expression: RegularExpression?

    /// Makes a wrapper of a text that must match `pattern`.
    ///
    /// `^` and `$` are the beginning and end of the text. Back-references and look-around are not
    /// supported. An invalid pattern ends the process with a message.
    ///
    /// - Complexity: O(*n*) in the text; times the pattern's length if many of its parts may match.
    ///   After 2,000,000 steps matching stops, and the text is refused.
    public init(wrappedValue: Value, _ pattern: String) {
        self.wrappedValue = wrappedValue
        do {
            expression = try RegularExpression(pattern)
        } catch {
            fatalError(error.message)
        }
    }

    /// Makes a wrapper without a pattern.
    public init(unruled value: Value) { (wrappedValue, expression) = (value, nil) }

    /// The issue of the text, if there is one.
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
