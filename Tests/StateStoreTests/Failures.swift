import StateEngine
import Testing

/// What `body` throws where no test of Swift Testing runs: a detached task is none.
func failure(_ body: @escaping @Sendable () async throws -> Void) async -> String {
    await Task.detached {
        do {
            try await body()
            return "nothing was thrown"
        } catch {
            return "\(error)"
        }
    }.value
}

/// An issue as the runner reports it.
struct Found: Hashable, Sendable {
    let line: Int?
    let text: String
}

/// The issues that `body` makes of the test that it would be.
func issues(
    isolation: isolated (any Actor)? = #isolation,
    in body: () async throws -> Void
) async throws -> [Found] {
    let found = StateLock<[Found]>([])
    try await withKnownIssue(isolation: isolation) {
        try await body()
    } matching: { issue in
        let text = issue.comments.map(\.rawValue).joined(separator: "\n")
        found.withLock { $0.append(Found(line: issue.sourceLocation?.line, text: text)) }
        return true
    }
    return found.withLock { $0 }
}
