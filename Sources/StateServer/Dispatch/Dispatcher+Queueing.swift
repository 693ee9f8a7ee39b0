import StateEngine
import StateWire

extension Dispatcher {
    /// Adds a command to the open transaction of its connection.
    @inline(never)
    func queue(
        _ verb: Verb,
        _ arguments: Arguments,
        byteCount: Int,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        guard let open = context.connection.session.transaction else { return }
        let files = context.core.files
        try transactions.queue(verb, arguments, byteCount: byteCount, in: open, files)
        context.output.append("+QUEUED\r\n")
    }
}
