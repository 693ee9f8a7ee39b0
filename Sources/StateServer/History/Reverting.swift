import StateEngine
import StateWire

/// Restores keys to their past state.
///
/// An administrator of a key need not be allowed to write it. A key that the user may not read does
/// not change, and a past value that the user may not read is not restored.
struct Reverting {
    private let core: KeyspaceCore
    private let subject: Subject?
    private let visibility: Visibility
    private let time: Int64

    init(_ context: borrowing CommandContext) {
        core = context.core
        subject = context.restriction
        visibility = context.core.visibility(of: context.connection.subject)
        time = context.time
    }

    /// Makes the changes, replies with them, and undoes them: a dry run is refused by what would
    /// refuse the real one.
    func rehearse(
        _ entries: [PastState.Changed],
        byteLimit: Int,
        _ context: inout CommandContext
    ) throws(StateError) {
        var done: (changes: [Change], revision: Int64)?
        do throws(StateError) {
            try context.write { (transaction) throws(StateError) -> Void in
                let revision = transaction.reachedRevision
                var changes: [Change] = []
                var byteCount = 0
                for entry in entries {
                    let before = value(of: entry.key, in: &transaction)
                    guard try bring(entry, &transaction) else { continue }
                    let after = value(of: entry.key, in: &transaction)
                    byteCount += entry.key.count + (before?.count ?? 0) + (after?.count ?? 0)
                    guard byteCount <= byteLimit else {
                        throw StateError(
                            .tooBig,
                            "the dry run has more than \(byteLimit) bytes; look at one pattern "
                                + "at a time"
                        )
                    }
                    changes.append(Change(key: entry.key, before: before, after: after))
                }
                done = (changes, revision)
                throw StateError(.err, "")
            }
        } catch {
            guard let done else { throw error }
            context.core.observeAll(&context.receipt)
            write(done.changes, done.revision, &context)
        }
    }

    /// A change that a dry run makes and undoes.
    private struct Change {
        let key: [UInt8]
        let before: [UInt8]?
        let after: [UInt8]?
    }

    private func value(of key: [UInt8], in transaction: inout Transaction) -> [UInt8]? {
        key.withUnsafeBytes { transaction.read($0, for: subject)?.value.map { Array($0) } }
    }

    private func write(
        _ changes: [Change],
        _ revision: Int64,
        _ context: inout CommandContext
    ) {
        context.output.writeMap(3, context.version)
        context.output.writeField("revision", revision)
        context.output.writeField("count", Int64(changes.count))
        context.output.writeBulk("changes")
        context.output.writeArray(changes.count)
        for change in changes {
            context.output.writeArray(3)
            context.output.writeBulk(change.key)
            for value in [change.before, change.after] {
                if let value {
                    context.output.writeBulk(value)
                } else {
                    context.output.writeNull(context.version)
                }
            }
        }
    }

    /// - Returns: Whether the key changed.
    func bring(
        _ entry: PastState.Changed,
        _ transaction: inout Transaction
    ) throws(StateError) -> Bool {
        try entry.key.withBorrowed { (key) throws(StateError) in
            // Keys in memory have no history.
            if core.isInMemory(key, core.rules?.rule(for: key)) { return false }
            let version = version(of: entry, key)
            let newest = transaction.read(key, for: subject)
            // A key that lives as long as somebody is nobody else's to change.
            if newest?.isHeld ?? false { return false }
            if newest == nil, subject != nil, transaction.read(key) != nil { return false }
            let isSame =
                version.map { version in
                    version.value.withUnsafeBytes { newest?.value?.isEqual(to: $0) ?? false }
                } ?? (newest == nil)
            guard !isSame else { return false }
            if let subject { try core.require(.admin, ofSeen: key, for: subject) }
            guard let version else {
                try transaction.restore(key, to: nil)
                return true
            }
            try version.value.withBorrowed { (value) throws(StateError) in
                let expiry = version.fields.expires.map { Expiry.at($0) } ?? unlimited(key)
                try transaction.restore(key, to: value, expiry)
            }
            return true
        }
    }

    /// When a value that had no time expires: it does not live as long as the connection of who
    /// restores it.
    private func unlimited(_ key: Bytes) -> Expiry {
        core.rules?.rule(for: key)?.settings.lifetime == nil ? .ruled : .never
    }

    /// The version to restore; nil if the key must be absent.
    private func version(of entry: PastState.Changed, _ key: Bytes) -> PastVersion? {
        entry.version.flatMap { version in
            // A value that has expired since, or that lived as long as somebody, is not restored.
            guard version.fields.lifetime == nil, version.fields.expires ?? .max > time else {
                return nil
            }
            let isSeen = visibility.mayReveal(.read, about: key, owner: version.fields.owner)
            return isSeen ? version : nil
        }
    }
}
