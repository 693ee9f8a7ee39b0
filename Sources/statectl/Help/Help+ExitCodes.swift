// The exit codes, as the help lists them; docs/guide.md has the same words.
extension ExitCode {
    static var table: String {
        allCases.map { "  \($0.rawValue)  \($0.meaning)\n" }.joined()
    }

    private var meaning: String {
        switch self {
        case .done: "done"
        case .absent: "absent, or not in time"
        case .usage: "usage, an illegal key or pattern, or a file that cannot be read"
        case .unreachable: "no daemon, no answer in time, or no permission to connect"
        case .refused: "refused by a condition, a rule or a limit"
        case .storage: "storage; or the output, or a file that the verb makes, cannot be written"
        case .unknown:
            "outcome unknown: connection lost, or no answer in time, after a write was sent"
        }
    }
}
