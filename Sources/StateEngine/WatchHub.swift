/// Finds the watchers of each change: what it costs follows the watchers that match, not those that there are.
///
/// A key looks up its own patterns: itself, each of its prefixes that end in `/`, and the globs with whose literal part it begins.
package final class WatchHub {
    /// Watchers by the hash of their key or prefix; who is found by chance is sorted out by their pattern.
    private var byLiteral: [Int: [Group]] = [:]
    private var everything: [Subscription] = []
    private var globs = LiteralTable<Subscription>()
    package private(set) var count = 0
    /// How often a key was compared with a pattern: what a commit costs beside the watchers that it touches.
    package private(set) var comparisonCount = 0
    /// The watchers that the commit which is being told touches.
    private var touched: [Watcher] = []

    /// The watchers of one key or prefix.
    private struct Group {
        let pattern: Pattern
        var watchers: [Watcher]
    }

    /// One pattern of a watcher.
    private struct Subscription {
        let watcher: Watcher
        let pattern: Pattern
    }

    init() {}

    package func add(_ watcher: Watcher) {
        count += 1
        for pattern in Set(watcher.patterns.patterns) { add(pattern, to: watcher) }
    }

    /// - Complexity: O(*n*) in the globs of all watchers, however many of them are its own.
    package func remove(_ watcher: Watcher) {
        if watcher.patterns.patterns.contains(where: { $0.kind == .glob }) {
            globs.removeAll { $0.watcher === watcher }
        }
        everything.removeAll { $0.watcher === watcher }
        let literals = watcher.patterns.patterns.filter { $0.kind != .glob && !$0.literal.isEmpty }
        remove(watcher, patterns: literals)
    }

    /// Tells a watcher of the keys of one more pattern from now on.
    package func add(_ pattern: Pattern, to watcher: Watcher) {
        let subscription = Subscription(watcher: watcher, pattern: pattern)
        switch pattern.kind {
        case .glob: globs.insert(subscription, under: pattern.literal)
        case .prefix where pattern.literal.isEmpty: everything.append(subscription)
        case .key, .prefix:
            let hash = LiteralHash(of: pattern.literal).value
            add(watcher, to: &byLiteral[hash, default: []], pattern)
        }
    }

    private func add(_ watcher: Watcher, to groups: inout [Group], _ pattern: Pattern) {
        if let index = groups.firstIndex(where: { $0.pattern == pattern }) {
            groups[index].watchers.append(watcher)
        } else {
            groups.append(Group(pattern: pattern, watchers: [watcher]))
        }
    }

    /// Tells a watcher of the keys of one of its patterns no longer.
    package func remove(_ pattern: Pattern, from watcher: Watcher) {
        let isIt: (Subscription) -> Bool = { $0.watcher === watcher && $0.pattern == pattern }
        switch pattern.kind {
        case .glob: globs.remove(under: pattern.literal, where: isIt)
        case .prefix where pattern.literal.isEmpty: everything.removeAll(where: isIt)
        case .key, .prefix:
            let hash = LiteralHash(of: pattern.literal).value
            remove(watcher, from: &byLiteral[hash, default: []], pattern)
            if byLiteral[hash]?.isEmpty ?? false { byLiteral[hash] = nil }
        }
    }

    private func remove(_ watcher: Watcher, from groups: inout [Group], _ pattern: Pattern) {
        guard let index = groups.firstIndex(where: { $0.pattern == pattern }) else { return }
        groups[index].watchers.removeAll { $0 === watcher }
        if groups[index].watchers.isEmpty { groups.remove(at: index) }
    }

    /// The same for the last of its patterns.
    package func remove(_ watcher: Watcher, patterns: some Sequence<Pattern>) {
        count -= 1
        for pattern in patterns { remove(pattern, from: watcher) }
    }

    /// Tells the watchers of every commit of `batch`, in order.
    func publish(_ batch: CommitBatch, in core: KeyspaceCore) {
        guard count > 0 else { return }
        var index = 0
        for item in batch.items {
            while index < item.changeEnd {
                match(batch.changes[index], in: core)
                index += 1
            }
            for watcher in touched { watcher.deliverMatched(revision: item.revision, in: core) }
            touched.removeAll(keepingCapacity: touched.capacity <= 1_024)
        }
    }

    private func match(_ record: Record, in core: KeyspaceCore) {
        for subscription in everything { tell(subscription.watcher, record, in: core) }
        globs.forEach(atStartOf: record.key) { subscription in
            comparisonCount += 1
            if subscription.pattern.matches(record.key) {
                tell(subscription.watcher, record, in: core)
            }
        }
        guard !byLiteral.isEmpty else { return }
        let key = record.key
        var hash = LiteralHash()
        for index in 0..<key.count {
            hash.take(key[index])
            guard index == key.count - 1 || key[index] == UInt8(ascii: "/") else { continue }
            guard let found = byLiteral[hash.value] else { continue }
            comparisonCount += found.count
            for group in found where group.pattern.matches(key) {
                for watcher in group.watchers { tell(watcher, record, in: core) }
            }
        }
    }

    /// Notes a change for a watcher that may see it, once however many of its patterns match.
    private func tell(_ watcher: Watcher, _ record: Record, in core: KeyspaceCore) {
        guard watcher.isShown(record, in: core) else { return watcher.noteHidden(record) }
        if watcher.matched.isEmpty { touched.append(watcher) }
        if watcher.matched.last != record { watcher.match(record) }
    }
}
