/// The checks of a value, each nil if the value passes: those of the daemon's rules and of the
/// wrappers of a `Validatable`.
package enum ValidationCheck {
    /// Whether there is a value: not nil, and not an empty text.
    package static func required(isMissing: Bool) -> ValidationIssue? {
        issue(!isMissing, "required", "a value is required")
    }

    /// Whether `value` is `bound` or more.
    package static func minimum<Bound: Comparable>(
        _ bound: Bound,
        _ value: Bound
    ) -> ValidationIssue? {
        // Not `value < bound`: NaN is not below anything, but must fail.
        issue(value >= bound, "minimum \(shown(bound))", "\(shown(value)) is below \(shown(bound))")
    }

    /// Whether `value` is `bound` or less.
    package static func maximum<Bound: Comparable>(
        _ bound: Bound,
        _ value: Bound
    ) -> ValidationIssue? {
        issue(value <= bound, "maximum \(shown(bound))", "\(shown(value)) is above \(shown(bound))")
    }

    /// Whether `text` has `count` code points or more.
    ///
    /// - Complexity: O(*n*)
    package static func minimumLength(_ count: Int, _ text: String) -> ValidationIssue? {
        let length = text.unicodeScalars.count
        let message = "\(quoted(text)) has \(length) characters, fewer than \(count)"
        return issue(length >= count, "minLength \(count)", message)
    }

    /// Whether `text` has `count` code points or fewer.
    ///
    /// - Complexity: O(*n*)
    package static func maximumLength(_ count: Int, _ text: String) -> ValidationIssue? {
        let length = text.unicodeScalars.count
        let message = "\(quoted(text)) has \(length) characters, more than \(count)"
        return issue(length <= count, "maxLength \(count)", message)
    }

    /// Whether a part of `text` matches `expression`, if that is found within `steps`.
    ///
    /// - Complexity: O(*n* · *m*), as ``RegularExpression/matches(_:within:)``.
    package static func pattern(
        _ expression: RegularExpression,
        _ text: String,
        within steps: inout Int
    ) -> ValidationIssue? {
        let pattern = expression.pattern
        guard let passes = expression.matches(text, within: &steps) else {
            let message =
                "comparing \(quoted(text)) with \(pattern) takes too long "
                + "(more than \(RegularExpression.stepLimit) steps for one value)"
            return issue(false, "pattern \(pattern)", message)
        }
        let message = "\(quoted(text)) does not match \(pattern)"
        return issue(passes, "pattern \(pattern)", message)
    }

    /// Whether `text` is an e-mail address, as browsers check it, within the lengths of RFC 5321.
    ///
    /// https://html.spec.whatwg.org/multipage/input.html#valid-e-mail-address
    package static func email(_ text: String) -> ValidationIssue? {
        issue(isEmail(Array(text.utf8)), "format email", "\(quoted(text)) is not an e-mail address")
    }

    private static func isEmail(_ bytes: [UInt8]) -> Bool {
        guard bytes.count <= 254, let at = bytes.lastIndex(of: UInt8(ascii: "@")) else {
            return false
        }
        let atoms = bytes[..<at].split(
            separator: UInt8(ascii: "."),
            omittingEmptySubsequences: false
        )
        let labels = bytes[(at + 1)...].split(
            separator: UInt8(ascii: "."),
            omittingEmptySubsequences: false
        )
        return at <= 64
            && atoms.allSatisfy {
                !$0.isEmpty && $0.allSatisfy { isAlphanumeric($0) || atomSigns.contains($0) }
            }
            && labels.allSatisfy(isLabel)
    }

    private static let atomSigns = Array("!#$%&'*+/=?^_`{|}~-".utf8)

    /// Whether it is a component of a host name.
    private static func isLabel(_ label: ArraySlice<UInt8>) -> Bool {
        let hyphen = UInt8(ascii: "-")
        return (1...63).contains(label.count) && label.first != hyphen && label.last != hyphen
            && label.allSatisfy { isAlphanumeric($0) || $0 == hyphen }
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: false
        }
    }

    private static func issue(
        _ passes: Bool,
        _ rule: @autoclosure () -> String,
        _ message: @autoclosure () -> String
    ) -> ValidationIssue? {
        passes ? nil : ValidationIssue(rule: rule(), message: message())
    }

    /// A number as it is stored: whole numbers without `.0`.
    private static func shown<Value>(_ value: Value) -> String {
        let text = "\(value)"
        return value is any FloatingPoint && text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    private static func quoted(_ text: String) -> String {
        Array(text.utf8).withUnsafeBytes { StateError.quoted($0) }
    }
}
