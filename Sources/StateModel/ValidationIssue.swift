/// A problem of a value, or of a part of it.
public struct ValidationIssue: Hashable, Sendable {
    /// The place in the value: names and indices, joined by `/`; empty for the value itself.
    public var path: String
    /// The broken rule, as it is written: `minimum 0`.
    public let rule: String
    /// One sentence with the value in it.
    public let message: String

    /// Makes an issue.
    public init(path: String = "", rule: String, message: String) {
        self.path = path
        self.rule = rule
        self.message = message
    }

    /// The same issue, of the part at `place`.
    public func within(_ place: String) -> ValidationIssue {
        let path = path.isEmpty ? place : "\(place)/\(path)"
        return ValidationIssue(path: path, rule: rule, message: message)
    }
}

extension ValidationIssue: CustomStringConvertible {
    /// The place and the sentence; a leading index as in `[1]/name`, so that it is not read as a number
    /// of the sentence.
    public var description: String { path.isEmpty ? message : "\(place): \(message)" }

    private var place: String {
        let first = path.prefix { $0 != "/" }
        // A member whose name is a number looks the same.
        let isIndex = !first.isEmpty && first.utf8.allSatisfy { $0 &- 0x30 < 10 }
        return isIndex ? "[\(first)]" + path[first.endIndex...] : path
    }
}

extension StateError {
    /// The refusal of a value that breaks rules: code ``StateError/Code/rejected``.
    public init(rejecting issues: [ValidationIssue]) {
        let shown = issues.prefix(Self.shownIssueCount).map(\.description).joined(separator: "; ")
        let rest = issues.count - Self.shownIssueCount
        self.init(.rejected, rest > 0 ? "\(shown); and \(rest) more" : shown, issues: issues)
    }

    /// How many issues the message of an error shows.
    private static let shownIssueCount = 5
}
