package import StateModel

/// Why bytes are not a command.
///
/// After all errors but `.tooBig` the position in the stream is unknown, and the connection ends.
package enum WireError: Error, Equatable {
    case invalidArrayLength
    case invalidBulkLength
    case expectedBulk(UInt8)
    case expectedLineEnd
    case inlineTooLong(limit: Int)
    case unbalancedQuotes
    case commandTooLong(limit: Int)
    /// An argument above the limit; its command was skipped, and the connection continues.
    case tooBig(byteCount: Int, limit: Int)

    /// The reply to the client.
    package var answer: StateError {
        switch self {
        case .invalidArrayLength: protocolError("invalid multibulk length")
        case .invalidBulkLength: protocolError("invalid bulk length")
        case .expectedBulk(let byte):
            protocolError(
                "expected '$', got \(withUnsafeBytes(of: byte) { StateError.quoted($0) })"
            )
        case .expectedLineEnd: protocolError("expected CR LF after a bulk string")
        case .inlineTooLong(let limit):
            protocolError("too big inline request; the limit is \(limit) bytes")
        case .unbalancedQuotes: protocolError("unbalanced quotes in request")
        case .commandTooLong(let limit):
            protocolError("a command of more than \(limit) bytes")
        case .tooBig(let byteCount, let limit):
            StateError(.tooBig, "an argument has \(byteCount) bytes; the limit is \(limit)")
        }
    }

    private func protocolError(_ what: String) -> StateError {
        StateError(.err, "Protocol error: \(what)")
    }
}
