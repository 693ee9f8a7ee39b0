/// Finds the watchers of each change: the cost depends on the watchers that match, not on all that
/// exist.
///
/// A key looks up its own patterns: itself, each of its prefixes that end in `/`, and the globs
/// whose literal part it begins with.
package final class WatchHub {
    /// Whether somebody has to be notified of every commit before its writer gets a reply.
    package var mustComeFirst = false
    /// The watchers of each pattern, of all kinds.
    private var groups: [Pattern: Group] = [:]
    /// Keys and prefixes by their hash; hash collisions are resolved by the pattern.
    private var byLiteral: [Int: [Group]] = [:]
    /// Patterns that match every key, one for each way to write that.
    private var everything: [Group] = []
    private var globs = LiteralTable<Group>()
    @exclusivity(unchecked) package private(set) var count = 0
    /// The number of different globs.
    package var globCount: Int { globs.count }
    /// How often a key was compared with a pattern: the cost of a commit besides the watchers that
    /// it touches.
    @exclusivity(unchecked) package private(set) var comparisonCount = 0
    /// The estimated time to publish the commits since the last call, in nanoseconds; see
    /// ``KeyspaceCore/takePublishingCost()``.
    @exclusivity(unchecked) var publishingCost: Int64 = 0
    /// The watchers that the commit being published touches.
    @exclusivity(unchecked) private var touched: [Watcher] = []

    /// The watchers of one pattern, which is compared with a key once for all of them.
    private final class Group {
        let pattern: Pattern
        @exclusivity(unchecked) var watchers = IdentitySet<Watcher>()

        init(_ pattern: Pattern) { self.pattern = pattern }
    }

    init() {}

    package func add(_ watcher: Watcher) {
        count += 1
        for pattern in watcher.patterns.patterns { add(pattern, to: watcher) }
    }

    /// - Complexity: O(*n*) in the bytes of its patterns, however many watchers there are.
    package func remove(_ watcher: Watcher) {
        remove(watcher, patterns: watcher.patterns.patterns)
    }

    /// The same, if these are its last patterns.
    package func remove(_ watcher: Watcher, patterns: some Sequence<Pattern>) {
        count -= 1
        for pattern in patterns { remove(pattern, from: watcher) }
    }

    /// Begins to report the keys of one more pattern to a watcher.
    package func add(_ pattern: Pattern, to watcher: Watcher) {
        if let group = groups[pattern] { return group.watchers.insert(watcher) }
        let group = Group(pattern)
        group.watchers.insert(watcher)
        groups[pattern] = group
        switch pattern.kind {
        case .glob: globs.insert(group, under: pattern.literal)
        case .prefix where pattern.literal.isEmpty: everything.append(group)
        case .key, .prefix:
            byLiteral[LiteralHash(of: pattern.literal).value, default: []].append(group)
        }
    }

    /// Stops reporting the keys of one of its patterns to a watcher.
    package func remove(_ pattern: Pattern, from watcher: Watcher) {
        guard let group = groups[pattern] else { return }
        group.watchers.remove(watcher)
        guard group.watchers.isEmpty else { return }
        groups[pattern] = nil
        switch pattern.kind {
        case .glob: globs.remove(group, under: pattern.literal)
        case .prefix where pattern.literal.isEmpty: everything.removeAll { $0 === group }
        case .key, .prefix:
            let hash = LiteralHash(of: pattern.literal).value
            byLiteral[hash]?.removeAll { $0 === group }
            if byLiteral[hash]?.isEmpty ?? false { byLiteral[hash] = nil }
        }
    }

    /// Publishes every commit of `batch` to the watchers, in order.
    func publish(_ batch: CommitBatch, in core: KeyspaceCore) {
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
        for group in everything { notify(group, record, in: core) }
        globs.forEach(atStartOf: record.key) { group in
            comparisonCount += 1
            if group.pattern.matches(record.key) { notify(group, record, in: core) }
        }
        guard !byLiteral.isEmpty else { return }
        let key = record.key
        var hash = LiteralHash()
        for index in 0..<key.count {
            hash.take(key[index])
            guard index == key.count - 1 || key[index] == UInt8(ascii: "/") else { continue }
            guard let found = byLiteral[hash.value] else { continue }
            comparisonCount += found.count
            for group in found where group.pattern.matches(key) { notify(group, record, in: core) }
        }
    }

    /// About how many nanoseconds the globs take for a key, at most: 40 for each, and 8 for each
    /// byte of it and of the key.
    ///
    /// - Complexity: O(*n*) in the globs whose literal the key begins with.
    func globCost(of key: Bytes) -> Int64 {
        var byteCount = 0
        globs.forEach(atStartOf: key) { byteCount += 5 + key.count + $0.pattern.bytes.count }
        return Int64(8 * byteCount)
    }

    private func notify(_ group: Group, _ record: Record, in core: KeyspaceCore) {
        for watcher in group.watchers.all { notify(watcher, record, in: core) }
    }

    /// Records a change for a watcher that may see it, once however many of its patterns match.
    private func notify(_ watcher: Watcher, _ record: Record, in core: KeyspaceCore) {
        guard watcher.isShown(record, in: core) else { return watcher.noteHidden(record) }
        if watcher.matched.isEmpty { touched.append(watcher) }
        if watcher.matched.last != record { watcher.match(record) }
    }
}
