import StateClient
import StateModel

/// What has to change so that keys are what was asked for, in key order.
struct KeyChanges {
    /// A key that changes, with what it had when that was determined.
    struct Change {
        let key: Key
        let before: [UInt8]?
        /// Nil if the key is deleted.
        let after: [UInt8]?
        /// The last change of the key; 0 if it is absent.
        let revision: Int64
        /// What readers get once it is deleted.
        var standard: [UInt8]?
        /// Wall time in milliseconds at which the value expires; nil: as the rule of the key says.
        var expires: Int64?
        /// What readers get then.
        var seen: [UInt8]? { after ?? standard }
    }

    private(set) var changes: [Change] = []
    /// The keys that are as asked for already, with their last changes.
    private var equals: [Client.Step] = []

    var isEmpty: Bool { changes.isEmpty }

    /// Compares a file with what the daemon has; keys below `prefixes` are deleted if the file lacks
    /// them.
    init(
        to desired: DesiredState,
        pruning prefixes: [Pattern],
        _ client: Client
    ) throws(StateError) {
        let keys = Array(desired.values.keys)
        for (key, entry) in zip(keys, try client.entries(for: keys)) {
            let entry = entry.flatMap { $0.isDefault ? nil : $0 }
            let after: [UInt8]? = desired.values[key] ?? nil
            if entry?.value == after, try !Self.ends(entry, of: key, client) {
                equals.append(.check(key, revision: entry?.revision ?? 0))
            } else {
                note(key, entry?.value, after, entry?.revision ?? 0)
            }
        }
        for prefix in prefixes {
            var pages = client.pages(of: prefix)
            while let page = try pages.next() {
                for entry in page {
                    let key = try Key(bytes: entry.key)
                    guard desired.values[key] == nil else { continue }
                    note(key, entry.value, nil, entry.revision)
                }
            }
        }
        sort()
    }

    private mutating func sort() {
        changes.sort { $0.key.bytes.lexicographicallyPrecedes($1.key.bytes) }
    }

    /// Makes changes that are known, if the conditions on keys that stay as they are hold.
    init(_ changes: [Change], unchanged: [Client.Step] = []) {
        self.changes = changes
        equals = unchanged
        sort()
    }

    /// Deletes keys, of which some then have their defaults again.
    init(
        resetting entries: [(key: Key, value: [UInt8], revision: Int64)],
        to defaults: [Client.DefaultValue]
    ) {
        let standards = Dictionary(uniqueKeysWithValues: defaults.map { ($0.key, $0.value) })
        changes = entries.map { key, value, revision in
            let standard = standards[key.bytes]
            return Change(
                key: key,
                before: value,
                after: nil,
                revision: revision,
                standard: standard
            )
        }
    }

    private mutating func note(
        _ key: Key,
        _ before: [UInt8]?,
        _ after: [UInt8]?,
        _ revision: Int64
    ) {
        changes.append(Change(key: key, before: before, after: after, revision: revision))
    }

    /// Whether a value is deleted although the rules of its key do not say so.
    private static func ends(
        _ entry: Client.Entry?,
        of key: Key,
        _ client: Client
    ) throws(StateError) -> Bool {
        guard let entry, entry.expires != nil || entry.lifetime != nil else { return false }
        let option = entry.expires != nil ? "expire" : "lifetime"
        return try !client.explain(key).contains { $0.name == option && $0.rule > 0 }
    }

    /// The steps that make them, unless somebody changes a key of the file before, or a deleted one.
    ///
    /// A dry run has no such conditions: it changes nothing that they could protect. Keys that
    /// are as asked for have conditions as far as the request has room for them.
    func steps(isDryRun: Bool) -> [Client.Step] {
        let steps = changes.map { change -> Client.Step in
            change.after.map { .set(change.key, $0, expiresAfter: change.timeLeft) }
                ?? .delete(change.key)
        }
        guard !isDryRun else { return steps }
        let conditional = zip(changes, steps).flatMap { change, step -> [Client.Step] in
            [.check(change.key, revision: change.revision), step]
        }
        // STATE.APPLY and its number; SET key value IFREV r; CHECK key r.
        let room = (Client.argumentLimit - 2 - changes.count * 5) / 3
        return Array(equals.prefix(max(0, room))) + conditional
    }

    /// How often changes are determined anew because somebody else has changed one of the keys.
    private static let attemptCount = 10

    /// Commits what `determine` says has to change; again if somebody else changes one of the keys
    /// meanwhile.
    ///
    /// - Returns: The changes, and their commit; nil if there were none to make.
    static func apply(
        _ client: Client,
        isDryRun: Bool,
        _ determine: () throws(StateError) -> KeyChanges
    ) throws(Failure) -> (KeyChanges, Client.Commit?) {
        do throws(StateError) {
            for _ in 1..<attemptCount {
                let changes = try determine()
                do throws(StateError) {
                    return (changes, try changes.commit(client, isDryRun: isDryRun))
                } catch {
                    guard error.code == .conflict else { throw error }
                }
            }
            let changes = try determine()
            return (changes, try changes.commit(client, isDryRun: isDryRun))
        } catch {
            throw .refused(error)
        }
    }

    private func commit(
        _ client: Client,
        isDryRun: Bool
    ) throws(StateError) -> Client.Commit? {
        guard !isEmpty else { return nil }
        return try client.apply(steps(isDryRun: isDryRun), isDryRun: isDryRun)
    }

    /// Prints a line for each, and how many there are; without a commit they were not made.
    func write(
        _ commit: Client.Commit?,
        isDryRun: Bool,
        isJSON: Bool,
        _ output: inout Output
    ) throws(Failure) {
        for change in changes {
            isJSON ? output.write(json: change.json) : change.write(to: &output)
            try output.flushIfLarge()
        }
        guard !isJSON else {
            return output.write(json: [
                "revision": commit.map { .number($0.revision) },
                "count": .number(Int64(changes.count)),
                "dryRun": isDryRun ? .json("true".bytes) : nil,
            ])
        }
        guard !changes.isEmpty else { return output.write("nothing changed\n") }
        let added = changes.count { $0.before == nil }
        let deleted = changes.count { $0.seen == nil }
        let changed = changes.count - added - deleted
        let end = commit.map { "revision \($0.revision)" } ?? "nothing was changed (--dry-run)"
        output.write("\(added) added, \(changed) changed, \(deleted) deleted; \(end)\n")
    }
}

extension KeyChanges.Change {
    /// How long the value lives; one that is due now is refused by the condition on its key.
    fileprivate var timeLeft: Duration? {
        expires.map { .milliseconds(max(1, $0 - Timestamp.now)) }
    }

    fileprivate var json: JSONLine {
        [
            "op": .text(after == nil ? "delete" : "set"), "key": .bytes(key.bytes),
            "value": after.map { .value($0) },
            "previous": before.map { .value($0) } ?? .text(nil),
            "default": standard.map { .value($0) },
        ]
    }

    /// `+ key = value`, `~ key = new TAB was old` or `- key = old`.
    fileprivate func write(to output: inout Output) {
        output.write(before == nil ? "+ " : seen == nil ? "- " : "~ ")
        guard let before, let seen else { return output.writePair(key.bytes, seen ?? before ?? []) }
        output.writePair(key.bytes, seen, was: before)
    }
}
