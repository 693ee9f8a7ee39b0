import CLinux
import StateEngine
import StateWire

/// Who may do what.
extension CommandContext {
    /// Refuses patterns among which is a key of which the connection may see nothing; of wider ones it is shown what it may see.
    func requireSight(_ action: KeyAction, of patterns: [Pattern]) throws(StateError) {
        guard let subject = restriction else { return }
        for pattern in patterns where pattern.kind == .key {
            try pattern.literal.withBorrowed { (key) throws(StateError) in
                try core.requireAny(action, of: key, for: subject)
            }
        }
    }

    /// Refuses what is for administrators: of all keys, if it is about no key.
    ///
    /// - Parameter what: What is asked for, as a message names it.
    /// - Throws: ``StateError/Code/noPermission``, naming it and the rule.
    func requireAdmin(_ what: String) throws(StateError) {
        guard let denial = core.adminDenial(of: connection.subject) else { return }
        core.admission.lastDenial = denial
        let place = denial.rule.map { "rule \($0 + 1)" } ?? "no rule"
        throw StateError(
            .noPermission,
            "\(what) is for administrators, and uid \(connection.peer.uid) is none (\(place), admin)"
        )
    }

    /// Whether the connection is shown what others do.
    var isAdmin: Bool { core.adminDenial(of: connection.subject) == nil }

    /// Whether the connection is told of another: of its own user's, or as an administrator.
    func maySee(_ other: Connection) -> Bool { other.peer.uid == connection.peer.uid || isAdmin }

    /// Whether sums over all keys tell the connection of none that are hidden from it.
    var showsEverything: Bool { core.visibility(of: connection.subject).showsEverything }

    // MARK: STATE.REVERT

    /// Refuses at once who is no administrator of anything, or not of the one key that is meant.
    func requireRevert(_ patterns: PatternSet) throws(StateError) {
        let subject = connection.subject
        guard !subject.isPrivileged else { return }
        guard let rules = core.rules, rules.namesAdministrator(subject) else {
            return try requireAdmin("STATE.REVERT")
        }
        for pattern in patterns.patterns where pattern.kind == .key {
            try pattern.literal.withBorrowed { (key) throws(StateError) in
                // Errors tell of values.
                try core.require(.admin, ofSeen: key, for: subject)
            }
        }
    }
}

extension KeyspaceCore {
    /// Why a subject is no administrator of all keys; nil if it is one.
    func adminDenial(of subject: Subject) -> AccessDenial? {
        guard !subject.isPrivileged else { return nil }
        guard let rule = rules?.ruleOfAll else { return AccessDenial(action: .admin, rule: nil) }
        return rule.access.denial(.admin, subject, .unowned)
    }
}
