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
    /// The place, with indices as in `tags[1]/name`, and the sentence.
    public var description: String { path.isEmpty ? message : "\(place): \(message)" }

    private var place: String {
        let steps = path.split(separator: "/", omittingEmptySubsequences: false)
        return steps.reduce(into: "") { place, step in
            // A member whose name is a number looks the same.
            let isIndex = !step.isEmpty && step.utf8.allSatisfy { $0 &- 0x30 < 10 }
            place += isIndex ? "[\(step)]" : place.isEmpty ? String(step) : "/\(step)"
        }
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
