import CLinux
import StateEngine

/// Access rights.
extension CommandContext {
    /// Refuses patterns if one is a key of which the connection may see nothing.
    ///
    /// Of wider patterns it sees the keys that it may see.
    func requireSight(_ action: KeyAction, of patterns: [Pattern]) throws(StateError) {
        guard let subject = restriction else { return }
        for pattern in patterns where pattern.kind == .key {
            try pattern.literal.withBorrowed { (key) throws(StateError) in
                try core.requireAny(action, of: key, for: subject)
            }
        }
    }

    /// Refuses an operation that needs admin rights for all keys.
    ///
    /// - Parameter what: The operation, for the message.
    /// - Throws: ``StateError/Code/noPermission``, naming it and the rule.
    func requireAdmin(_ what: String) throws(StateError) {
        guard let denial = core.adminDenial(of: connection.subject) else { return }
        core.admission.lastDenial = denial
        throw StateError(
            .noPermission,
            "\(what) needs admin rights, which \(connection.subject.name) does not have "
                + "(\(denial.place), admin)"
        )
    }

    /// Whether the connection may see what others do.
    var isAdmin: Bool { core.adminDenial(of: connection.subject) == nil }

    /// Whether the connection may see another one: of its own user, or as an administrator.
    func maySee(_ other: Connection) -> Bool { connection.isOfSameUser(as: other) || isAdmin }

    /// Whether the connection may see what another one's pattern says.
    func mayName(_ pattern: Pattern) -> Bool {
        core.visibility(of: connection.subject).mayReveal(patternOf: pattern)
    }

    /// Whether sums over all keys reveal no hidden keys to the connection.
    var showsEverything: Bool { core.visibility(of: connection.subject).showsEverything }

    // MARK: STATE.REVERT

    /// Refuses at once a user without any admin rights, or without those for the one key of the
    /// pattern.
    func requireRevert(_ patterns: PatternSet) throws(StateError) {
        let subject = connection.subject
        guard !subject.isPrivileged else { return }
        guard let rules = core.rules, rules.namesAdministrator(subject) else {
            return try requireAdmin("STATE.REVERT")
        }
        for pattern in patterns.patterns where pattern.kind == .key {
            try pattern.literal.withBorrowed { (key) throws(StateError) in
                // Errors reveal values.
                try core.require(.admin, ofSeen: key, for: subject)
            }
        }
    }
}

extension Connection {
    /// Whether both belong to one user.
    func isOfSameUser(as other: Connection) -> Bool {
        self === other || subject.isUser(other.peer.uid)
    }

    /// Refuses what belongs to a user, if nobody knows who it is.
    ///
    /// - Throws: ``StateError/Code/noPermission``, naming `what`.
    func requireUser(_ what: String) throws(StateError) {
        guard !subject.isMapped else { return }
        throw StateError(.noPermission, "\(what) would belong to \(subject.name) and is refused")
    }
}
