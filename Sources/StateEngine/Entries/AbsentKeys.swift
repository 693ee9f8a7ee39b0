/// A key that was absent when a connection began to watch it (WATCH): no revision would show that it
/// was set and deleted again.
///
/// Used under the keyspace's lock: the proof of `@unchecked Sendable`.
package final class AbsentKey: @unchecked Sendable {
    let key: [UInt8]
    /// The owners of the versions that came.
    private var owners: Set<UInt32> = []

    init(_ key: Bytes) { self.key = Array(key) }

    fileprivate func note(_ record: Record) { owners.insert(record.owner) }

    /// Whether versions came that a subject may see; nil sees all.
    package func hasChanged(for subject: Subject?, in core: KeyspaceCore) -> Bool {
        guard !owners.isEmpty else { return false }
        let visibility = core.visibility(of: subject)
        return key.withUnsafeBytes { key in
            owners.contains { visibility.mayReveal(.read, about: key, owner: $0) }
        }
    }
}

/// The watched absent keys.
struct AbsentKeys {
    private var watches: [[UInt8]: IdentitySet<AbsentKey>] = [:]

    var isEmpty: Bool { watches.isEmpty }

    mutating func insert(_ key: AbsentKey) { watches[key.key, default: IdentitySet()].insert(key) }

    mutating func remove(_ key: AbsentKey) {
        watches[key.key]?.remove(key)
        if watches[key.key]?.isEmpty ?? false { watches[key.key] = nil }
    }

    /// A key has a new version, or one was undone.
    func note(_ record: Record) {
        guard let found = watches[Array(record.key)] else { return }
        for key in found.all { key.note(record) }
    }
}

extension KeyspaceCore {
    /// Begins to watch an absent key, until ``end(_:)``; nil if it exists.
    package func watchAbsence(of key: Bytes) -> AbsentKey? {
        if let head = entries.head(key), !head.isDeleted { return nil }
        let watch = AbsentKey(key)
        entries.absentKeys.insert(watch)
        return watch
    }

    package func end(_ watch: AbsentKey) { entries.absentKeys.remove(watch) }
}
