import CLinux
import StateEngine
import StateWire

/// Who may do what: the checks of commands, and what of them is logged.
extension Dispatcher {
    /// Whom the rules may keep out of something; nil for whom they do not.
    func restriction(_ connection: Connection, _ core: KeyspaceCore) -> Subject? {
        core.restriction(of: connection.subject)
    }

    /// Refuses patterns among which is a key of which the connection may see nothing; of wider ones it is shown what it may see.
    func requireSight(
        _ action: KeyAction,
        of patterns: [Pattern],
        _ connection: Connection,
        _ core: KeyspaceCore
    ) throws(StateError) {
        guard let subject = restriction(connection, core) else { return }
        for pattern in patterns where pattern.kind == .key {
            try pattern.literal.withBorrowed { (key) throws(StateError) in
                try core.requireAny(action, of: key, for: subject)
            }
        }
    }

    // MARK: Administrators

    /// Refuses what is for administrators: of all keys, where it is about no key.
    ///
    /// - Parameters:
    ///   - connection: Who asks.
    ///   - what: What is asked for, as a message names it.
    ///   - core: The keyspace, whose lock is held.
    /// - Throws: ``StateError/Code/noPermission``, naming it and the rule.
    func requireAdmin(
        _ connection: Connection,
        _ what: String,
        _ core: KeyspaceCore
    ) throws(StateError) {
        guard let denial = adminDenial(connection, core) else { return }
        core.lastDenial = denial
        let place = denial.rule.map { "rule \($0 + 1)" } ?? "no rule"
        throw StateError(
            .noPermission,
            "\(what) is for administrators, and uid \(connection.peer.uid) is none (\(place), admin)"
        )
    }

    /// Whether the connection is shown what others do.
    func isAdmin(_ connection: Connection, _ core: KeyspaceCore) -> Bool {
        adminDenial(connection, core) == nil
    }

    private func adminDenial(_ connection: Connection, _ core: KeyspaceCore) -> AccessDenial? {
        guard !connection.subject.isPrivileged else { return nil }
        guard let rule = core.rules?.ruleOfAll else {
            return AccessDenial(action: .admin, rule: nil)
        }
        return rule.denial(.admin, connection.subject, .unowned)
    }

    /// Whether a connection is told of another: of its own user's, or as an administrator.
    func maySee(_ other: Connection, _ connection: Connection, _ core: KeyspaceCore) -> Bool {
        other.peer.uid == connection.peer.uid || isAdmin(connection, core)
    }

    // MARK: The log

    /// Logs what the command at hand was refused by the rules: of each user and rule once a minute, then how often.
    func logDenial(_ connection: Connection, _ core: KeyspaceCore) {
        guard let denial = core.lastDenial else { return }
        core.lastDenial = nil
        let uid = connection.peer.uid
        let kind = RepeatedLines.Kind(subject: .denial(rule: denial.rule), uid: uid)
        repeated.write(kind, .notice, at: SystemClock.monotonicMilliseconds(), to: options.log) {
            let rule = denial.rule.map { "rule \($0 + 1)" } ?? "no rule"
            return "client \(connection.number) (uid \(uid), pid \(connection.peer.pid), "
                + "\(shownCommand(of: connection))) is refused: \(denial.action.rawValue), \(rule)"
        }
    }

    /// A process chooses its name: nothing in it may look like another line.
    private func shownCommand(of connection: Connection) -> String {
        var name = connection.peerCommand
        return name.withUTF8 { StateError.quoted(Bytes($0)) }
    }
}
