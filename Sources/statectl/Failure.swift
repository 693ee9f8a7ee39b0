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
    /// A file cannot be read or written.
    case file(String)
    /// The output cannot be written; what the command does was done.
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

    /// 0 done, 1 absent, 2 usage, 3 no daemon, 4 refused, 5 storage, 6 outcome unknown.
    var exitCode: Int32 {
        switch self {
        case .brokenPipe: 0
        case .negative: 1
        case .found: 4
        case .condition(let code): code
        case .usage, .file: 2
        case .output: 5
        case .refused(let error): Self.exitCode(for: error.code)
        }
    }

    private static func exitCode(for code: StateError.Code) -> Int32 {
        switch code {
        case .unreachable: 3
        case .conflict, .noPermission, .rejected, .tooBig, .limit, .executionAborted, .stale: 4
        case .noSpace, .readOnly, .compacted, .corrupt, .newerFormat, .storage, .locked, .away: 5
        case .outcomeUnknown: 6
        default: 2
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
