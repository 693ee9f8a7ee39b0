import StateEngine
import StateWire

/// Verbs that look back.
extension Dispatcher {
    func stateHistory(
        _ key: Bytes,
        _ limit: Int,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) throws(StateError) {
        try checkHistory(core)
        read(
            KeyHistoryJob(
                from: core.durablePlace(of: key),
                limit: limit,
                for: connection,
                byteLimit: options.replyByteCount
            )
        )
    }

    /// Refuses where nothing is kept of what was, and inside of a transaction, which cannot wait for the disk.
    private func checkHistory(_ core: KeyspaceCore) throws(StateError) {
        guard registry.hasHistory else {
            throw StateError(.compacted, "values in memory have no history")
        }
        guard !isExecuting else {
            throw StateError(.err, "the history cannot be read inside of MULTI")
        }
    }
}
