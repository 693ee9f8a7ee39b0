import StateEngine
import StateWire

extension ReplyGate {
    /// Writes and sends a reply that comes later than its command.
    func answer(
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ body: (inout CommandContext) throws(StateError) -> Void
    ) {
        let start = connection.outbound.bytes.count
        var context = CommandContext(connection, in: core, at: turn.time)
        do throws(StateError) {
            try body(&context)
        } catch {
            refuse(error, from: start, context)
        }
        if let offer = context.takeOffer() {
            if let again = offer.again {
                connection.outbound.bytes.truncate(to: start)
                cluster?.take(offer, connection, core, again)
                return turn.note(&context)
            }
            // It was undone, and cannot be made again.
            refuse(ClusterWrites.cannotRepeat, from: start, context)
        }
        send(from: start, &context)
        turn.note(&context)
    }
}

extension HeldReplies {
    /// Replaces each reply that waits for or acknowledges `revision` or a later one by `error`.
    mutating func fail(from revision: Int64, _ error: StateError) {
        var answer = ByteBuffer()
        var decided = ByteBuffer()
        answer.writeError(error)
        decided.writeError(ClusterWrites.isNotStored(error))
        var kept = ByteBuffer()
        var start = 0
        for index in first..<holds.count {
            let end = start + holds[index].byteCount
            if !holds[index].isFinal, max(holds[index].revision, holds[index].reported) >= revision
            {
                let isDecided = holds[index].isDecided
                let count = isDecided ? decided.count : answer.count
                kept.append(isDecided ? decided.bytes : answer.bytes)
                holds[index] = Hold(revision: 0, byteCount: count)
            } else {
                kept.append(bytes.bytes.slice(start, end))
            }
            start = end
        }
        bytes = kept
    }
}
