package import StateEngine
import StateServer

/// Exchanges the rules of a served keyspace on its loop thread, when its status is asked for.
///
/// `server` is set and used on the loop thread alone: the proof of `@unchecked Sendable`.
final class PendingRules: @unchecked Sendable {
    weak var server: Server?
    private let core: StateLock<KeyspaceCore?> = StateLock(nil)
    private let waiting = StateLock<[KeyRules?]>([])

    func put(_ rules: KeyRules?, in keyspace: LocalKeyspace) {
        let state = keyspace.withCore { $0 }
        core.withLock { $0 = state }
        waiting.withLock { $0.append(rules) }
    }

    /// Comes under the keyspace's lock.
    func takeRules() {
        let new = waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        guard let core = core.withLock({ $0 }), let server else { return }
        for rules in new {
            core.replace(rules: rules)
            server.rulesChanged()
        }
    }
}

extension ServedKeyspace {
    /// Has the server go by other rules from now on.
    package func exchangeRules(_ rules: KeyRules?) throws {
        pending.put(rules, in: keyspace)
        try askForStatus()
    }
}
