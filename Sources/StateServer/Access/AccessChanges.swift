import StateEngine

/// The rules of access that hold, since when they do, and what they let a connection see of the past.
///
/// Everything belongs to the loop thread, under the keyspace's lock.
final class AccessChanges {
    private unowned let core: KeyspaceCore
    /// What they say; see ``KeyRules/accessText``.
    private var text = ""
    /// The commit since which they say it; 0 if they always have.
    private var revision: Int64 = 0
    /// How often they have changed while this process runs.
    private(set) var count = 0
    /// The rules as the history thread uses them, and what they were copied from: every look-up of a rule may change its table.
    private var copy: (source: KeyRules, rules: KeyRules)?

    init(_ core: KeyspaceCore) { self.core = core }

    /// Takes over that the rules were exchanged.
    ///
    /// - Returns: Whether they say other things of access than before.
    func take(at time: Int64) -> Bool {
        guard core.rules?.accessText ?? "" != text else { return false }
        count += 1
        note(at: time)
        return true
    }

    /// Finds out since when the rules of access are as they are; the store remembers it over restarts.
    func note(at time: Int64) {
        text = core.rules?.accessText ?? ""
        let mark = AccessDigest(text)
        // Nobody is answered.
        var receipt = core.makeReceipt()
        if let known = core.metadataText(AccessDigest.metadataName, &receipt).flatMap(
            AccessDigest.read
        ) {
            revision = known.revision
            if known.mark == mark { return }
        } else if text.isEmpty {
            return
        }
        guard core.transaction.revision == 0 else {
            // Nothing of its own can be committed inside of a transaction.
            revision = core.revisions.durable
            return
        }
        let cause = core.retainCause(.thisProcess)
        defer { core.release(cause) }
        core.begin(cause, at: time)
        do throws(StateError) {
            let text = mark.note(core.transaction.revision)
            try core.setMetadata(AccessDigest.metadataName, to: text)
            revision = core.finish(&receipt)
        } catch {
            // It is known as long as this process runs.
            core.rollBack()
            revision = core.revisions.durable
        }
    }

    /// A commit failed, and with it perhaps what noted a change of access.
    func noteFailure(from revision: Int64) {
        if self.revision >= revision { self.revision = core.revisions.durable }
    }

    /// Whether the rules of access were others at a revision, so that what a connection knows of it is not what it may see.
    func isBefore(_ revision: Int64, _ connection: Connection) -> Bool {
        revision < self.revision && !connection.subject.isPrivileged
    }

    /// Whether they were when what is being read for a connection was begun.
    func isStale(_ count: Int, _ connection: Connection) -> Bool {
        count != self.count && !connection.subject.isPrivileged
    }

    /// Refuses what was read while the rules of access changed.
    func requireSame(_ connection: Connection) throws(StateError) {
        guard isStale(connection.session.accessCount, connection) else { return }
        throw StateError(
            .noPermission,
            "the rules of who may read what have changed while this was read; ask again"
        )
    }

    /// What a connection may be told by the history thread.
    ///
    /// Jobs that are under way when the rules change keep those that they began with.
    func visibility(of connection: Connection) -> Visibility {
        guard let subject = core.restriction(of: connection.subject), let rules = core.rules else {
            return .everything
        }
        if let copy, copy.source === rules { return Visibility(subject, copy.rules) }
        let new = KeyRules(copying: rules)
        copy = (rules, new)
        return Visibility(subject, new)
    }
}

/// What the store remembers of the rules of access: FNV-1a of what they say, so that another text is seen to be another.
struct AccessDigest: Equatable {
    /// Begins as every note does that a store knows as one; a handler's has a uid behind that.
    static let metadataName = "handler:access"
    private let hash: UInt64

    init(_ text: String) {
        hash = text.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    private init(hash: UInt64) { self.hash = hash }

    /// The note of it, with the commit that it is of.
    func note(_ revision: Int64) -> String { "\(revision) \(String(hash, radix: 16))" }

    /// Reads that; nil for what is none.
    static func read(_ text: String) -> (mark: AccessDigest, revision: Int64)? {
        let parts = text.split(separator: " ")
        guard parts.count == 2, let revision = Int64(parts[0]),
            let hash = UInt64(parts[1], radix: 16)
        else { return nil }
        return (AccessDigest(hash: hash), revision)
    }
}
