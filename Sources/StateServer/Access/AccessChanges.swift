import StateEngine

/// The access rules in force, the revision since which they are, and the history that they let a
/// connection see.
///
/// Used only by the loop thread, under the keyspace's lock.
final class AccessChanges {
    private unowned let core: KeyspaceCore
    /// Their text; see ``KeyRules/accessText``.
    private var text = ""
    /// Whether they may name units of systemd.
    var namesUnits: Bool { text.split(separator: " ").contains { $0.hasPrefix("unit:") } }
    /// The revision since which the text is the same; 0 if it has always been.
    private var revision: Int64 = 0
    /// That of the commit which tells the store; nil if it failed, 0 if none was necessary.
    private var recordRevision: Int64? = 0
    /// When it is tried again at the earliest, on the monotonic clock in milliseconds.
    private var nextAttempt: Int64 = 0
    /// How often they have changed while this process runs.
    private(set) var count = 0
    /// A copy of the rules for the history thread, and its source: each look-up of a rule may
    /// change the rule's table, so threads cannot share it.
    private var copy: (source: KeyRules, rules: KeyRules)?

    init(_ core: KeyspaceCore) { self.core = core }

    /// Takes over new rules.
    ///
    /// - Returns: Whether the access rules changed.
    func take(at time: Int64) -> Bool {
        guard core.rules?.access.text ?? "" != text else { return false }
        count += 1
        resolve(at: time)
        return true
    }

    /// Finds the revision since which the access rules are the same; the store keeps it over
    /// restarts.
    func resolve(at time: Int64) {
        text = core.rules?.access.text ?? ""
        // If those in force up to now were not recorded, the recorded ones say nothing.
        if recordRevision != nil {
            var receipt = core.makeReceipt()
            let known = core.metadataText(AccessDigest.metadataName, &receipt).flatMap(
                AccessDigest.read
            )
            if let known, known.digest == AccessDigest(text) {
                revision = known.revision
                return
            }
            if known == nil, text.isEmpty { return }
        }
        // Whatever anybody has seen, early replies included, is older.
        revision = core.revisions.next
        record(at: time)
    }

    private func record(at time: Int64) {
        recordRevision = nil
        // A separate commit is not possible inside a transaction.
        guard core.transaction.revision == 0 else { return }
        // No client waits for this commit.
        var receipt = core.makeReceipt()
        let cause = core.retainCause(.thisProcess)
        defer { core.release(cause) }
        core.begin(cause, at: time)
        do throws(StateError) {
            let text = AccessDigest(text).text(revision)
            try core.setMetadata(AccessDigest.metadataName, to: text)
            recordRevision = core.finish(&receipt)
        } catch {
            core.rollBack()
        }
    }

    /// A commit failed; it may have contained the record of a change of access.
    func noteFailure(from revision: Int64) {
        if let recordRevision, recordRevision >= revision { self.recordRevision = nil }
    }

    /// Records a change of access whose record has failed, because a commit may succeed now.
    ///
    /// Until then a restart would not know of it, and who asks for what came after the newest commit
    /// gets a gap again and again.
    func recordAgain(at time: Int64) {
        guard recordRevision == nil else { return }
        let now = SystemClock.monotonicMilliseconds()
        // Otherwise a store that fails, opens and fails again would be kept busy by this.
        guard now >= nextAttempt else { return }
        nextAttempt = now + 1_000
        record(at: time)
    }

    /// Whether other access rules were in force at a revision, so that what a connection knows of
    /// it may differ from what it may see now.
    ///
    /// At revision 0 there was nothing to know: a copy that begins there needs only the changes
    /// that the connection may see now.
    func isBefore(_ revision: Int64, _ connection: Connection) -> Bool {
        revision > 0 && revision < self.revision && !connection.subject.isPrivileged
    }

    /// Whether the access rules changed since a read for a connection began.
    func isStale(_ count: Int, _ connection: Connection) -> Bool {
        count != self.count && !connection.subject.isPrivileged
    }

    /// Refuses a result that was read while the access rules changed.
    func requireSame(_ connection: Connection) throws(StateError) {
        guard isStale(connection.session.accessCount, connection) else { return }
        throw StateError(
            .noPermission,
            "the access rules changed while this was read; try again"
        )
    }

    /// What the history thread may show to a connection.
    ///
    /// A job that is running when the rules change keeps the rules with which it began.
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

/// The digest of the access rules in the store: the FNV-1a hash of their text, to notice a change.
struct AccessDigest: Equatable {
    /// The prefix of all metadata that a store accepts; in a handler's name a uid follows it.
    static let metadataName = "handler:access"
    private let hash: UInt64

    init(_ text: String) {
        hash = text.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    private init(hash: UInt64) { self.hash = hash }

    /// The metadata text: the digest, and the revision since which the rules are in force.
    func text(_ revision: Int64) -> String { "\(revision) \(String(hash, radix: 16))" }

    /// Parses such a text; nil if it is invalid.
    static func read(_ text: String) -> (digest: AccessDigest, revision: Int64)? {
        let parts = text.split(separator: " ")
        guard parts.count == 2, let revision = Int64(parts[0]),
            let hash = UInt64(parts[1], radix: 16)
        else { return nil }
        return (AccessDigest(hash: hash), revision)
    }
}
