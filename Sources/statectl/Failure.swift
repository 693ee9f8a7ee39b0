import StateModel

/// Why a verb ended early.
enum Failure: Error {
    /// The arguments make no sense.
    case usage(String)
    /// The key is absent, or fewer changes came than were asked for: an answer, not a fault.
    case negative
    /// The problems that the verb looks for were found and printed.
    case found
    /// What was asked about was printed; the exit code says what it is.
    case condition(Int32)
    /// The daemon refused, or does not answer.
    case refused(StateError)
    /// A file that was named cannot be read, or another program cannot be run.
    case file(String)
    /// Standard output, or a file that the verb makes, cannot be written.
    case output(String)
    /// Nobody reads the output any more.
    case brokenPipe

    /// The text for standard error; nil for nothing.
    var message: String? {
        switch self {
        case .usage(let sentence), .file(let sentence), .output(let sentence): sentence
        case .negative, .found, .condition, .brokenPipe: nil
        case .refused(let error): Self.message(for: error)
        }
    }

    /// The sentence, after the code of the wire if that says more than "error".
    private static func message(for error: StateError) -> String {
        switch error.code {
        case .err, .unreachable, .outcomeUnknown: error.message
        default: error.description
        }
    }

    /// What the process ends with.
    var exitCode: Int32 {
        switch self {
        case .brokenPipe: ExitCode.done.rawValue
        case .negative: ExitCode.absent.rawValue
        case .found: ExitCode.refused.rawValue
        case .condition(let code): code
        case .usage, .file: ExitCode.usage.rawValue
        case .output: ExitCode.storage.rawValue
        case .refused(let error): ExitCode(for: error.code).rawValue
        }
    }
}

/// How `statectl` ends, for scripts; the help and docs/guide.md have the same table.
///
/// `health` has codes of its own, which monitoring expects.
enum ExitCode: Int32, CaseIterable {
    case done, absent, usage, unreachable, refused, storage, unknown

    init(for code: StateError.Code) {
        self =
            switch code {
            case .unreachable: .unreachable
            case .conflict, .noPermission, .rejected, .tooBig, .limit, .executionAborted, .stale:
                .refused
            case .noSpace, .readOnly, .compacted, .corrupt, .newerFormat, .storage, .locked, .away:
                .storage
            case .outcomeUnknown: .unknown
            default: .usage
            }
    }
}

/// Runs a request that the daemon may refuse.
func attempt<Result>(
    _ body: @autoclosure () throws(StateError) -> Result
) throws(Failure) -> Result {
    do throws(StateError) {
        return try body()
    } catch {
        throw .refused(error)
    }
}
