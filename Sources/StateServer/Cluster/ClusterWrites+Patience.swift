import StateEngine
import StateWire

/// Commands that are answered without a decision.
extension ClusterWrites {
    /// Those who have waited too long get an answer.
    func expire(_ core: KeyspaceCore) {
        let now = SystemClock.monotonicMilliseconds()
        let limit = now - ClusterWrites.patience
        for write in batch?.writes ?? [] where !write.isAnswered && write.since <= limit {
            doubt(write, core)
        }
        let late = waiting.filter { $0.since <= limit }
        waiting.removeAll { $0.since <= limit }
        for write in late { fail(write, mirror.tookTooLong, core) }
        let next = (waiting + (batch?.writes.filter { !$0.isAnswered } ?? [])).map(\.since).min()
        if let next { gate.timers.advance(.cluster, to: next + ClusterWrites.patience) }
    }

    /// The cluster is cut off: what was not sent is refused.
    func refuseWaiting(_ error: StateError, _ core: KeyspaceCore) {
        let refused = waiting
        waiting = []
        for write in refused { fail(write, error, core) }
    }

    /// A client has left: what was not sent is dropped.
    func forget(_ connection: Connection) { waiting.removeAll { $0.connection === connection } }

    /// The daemon stops: nobody decides any more.
    func stop(_ core: KeyspaceCore) {
        pause()
        refuseWaiting(StateError(.away, "the daemon stops, and nothing was changed"), core)
        for write in batch?.writes ?? [] where !write.isAnswered { doubt(write, core) }
    }

    func doubt(_ write: ClusterWrite, _ core: KeyspaceCore) {
        // What only asks for the newest state changes nothing.
        let isChange = !write.attempt.changes.isEmpty
        if isChange { doubts.asked += 1 }
        fail(write, isChange ? mirror.outcomeUnknown : mirror.tookTooLong, core)
        write.isAnswered = true
    }

    func settleDoubt(_ write: ClusterWrite, isCommitted: Bool) {
        guard !write.attempt.changes.isEmpty else { return }
        if isCommitted { doubts.committed += 1 } else { doubts.notCommitted += 1 }
        let name = String(decoding: write.attempt.cause, as: UTF8.self)
        let key = write.attempt.changes.first?.key ?? []
        gate.settings.options.log(
            .notice,
            .clusterSettled,
            "the write of \(StateError.printable(name)) to key "
                + "\(key.withUnsafeBytes { StateError.quoted($0) }), whose outcome was unknown, was "
                + (isCommitted ? "committed" : "not committed")
        )
    }

    func fail(_ write: ClusterWrite, _ error: StateError, _ core: KeyspaceCore) {
        answer(write, core) { $0.output.writeError(error) }
    }

    func answer(
        _ write: ClusterWrite,
        _ core: KeyspaceCore,
        _ body: (inout CommandContext) -> Void
    ) {
        guard write.isAwaited else { return }
        endWaiting(write.connection)
        gate.answer(write.connection, core) { body(&$0) }
    }

    static let cannotRepeat = StateError(
        .rejected,
        "this command cannot change keys of a cluster; set or delete them by name"
    )

    /// Storage here has failed; the cluster has the change.
    static func isNotStored(_ error: StateError) -> StateError {
        StateError(
            .outcomeUnknown,
            "the cluster has the change, but it could not be stored here yet: \(error.message)"
        )
    }
}
