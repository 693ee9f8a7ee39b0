import CLinux

/// Finds the watchers of each change: the cost depends on the watchers that match, not on all that
/// exist.
///
/// A key looks up its own patterns: itself, each of its prefixes that end in `/`, and the globs
/// whose literal part it begins with. Those of a user whom rules may restrict have a
/// ``GlobAllowance``.
package final class WatchHub {
    /// Whether somebody has to be notified of every commit before its writer gets a reply.
    package var mustComeFirst = false
    /// The watchers of each pattern, of all kinds.
    private var groups: [GroupName: Group] = [:]
    /// Keys and prefixes by their hash; hash collisions are resolved by the pattern.
    private var byLiteral: [Int: [Group]] = [:]
    /// Patterns that match every key, one for each way to write that.
    private var everything: [Group] = []
    private var globs = LiteralTable<Group>()
    @exclusivity(unchecked) package private(set) var count = 0
    /// The allowances of the users who watch globs, by uid.
    private var allowances: [UInt32: GlobAllowance] = [:]
    /// How often a key was compared with a pattern: the cost of a commit besides the watchers that
    /// it touches.
    @exclusivity(unchecked) package private(set) var comparisonCount = 0
    /// The watchers that the commit being published touches.
    @exclusivity(unchecked) private var touched: [Watcher] = []
    /// Whether the change being published is shown to the subject that was asked for last.
    @exclusivity(unchecked) private var lastShown: (subject: Subject, isShown: Bool)?
    /// Who has made the change being published; nil before somebody asks.
    @exclusivity(unchecked) private var writer: UInt32?

    /// The watchers of one pattern, which is compared with a key once for all of them.
    private final class Group {
        let pattern: Pattern
        /// Whose watchers they are, and what comparisons are charged to; nil without a limit.
        let payer: (subject: Subject, allowance: GlobAllowance)?
        @exclusivity(unchecked) var watchers = IdentitySet<Watcher>()

        init(_ pattern: Pattern, _ payer: (Subject, GlobAllowance)?) {
            (self.pattern, self.payer) = (pattern, payer)
        }
    }

    /// Each subject has groups of its own for globs, which are charged to it.
    private struct GroupName: Hashable {
        let pattern: Pattern
        let subject: ObjectIdentifier?

        init(_ pattern: Pattern, of watcher: Watcher) {
            self.pattern = pattern
            subject = pattern.kind == .glob ? watcher.subject.map { ObjectIdentifier($0) } : nil
        }
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
        let name = GroupName(pattern, of: watcher)
        if let group = groups[name] { return group.watchers.insert(watcher) }
        let group = Group(pattern, payer(of: pattern, watcher))
        group.watchers.insert(watcher)
        groups[name] = group
        switch pattern.kind {
        case .glob: globs.insert(group, under: pattern.literal)
        case .prefix where pattern.literal.isEmpty: everything.append(group)
        case .key, .prefix:
            byLiteral[LiteralHash(of: pattern.literal).value, default: []].append(group)
        }
    }

    /// Stops reporting the keys of one of its patterns to a watcher.
    package func remove(_ pattern: Pattern, from watcher: Watcher) {
        let name = GroupName(pattern, of: watcher)
        guard let group = groups[name] else { return }
        group.watchers.remove(watcher)
        guard group.watchers.isEmpty else { return }
        groups[name] = nil
        group.payer?.allowance.groupCount -= 1
        switch pattern.kind {
        case .glob: globs.remove(group, under: pattern.literal)
        case .prefix where pattern.literal.isEmpty: everything.removeAll { $0 === group }
        case .key, .prefix:
            let hash = LiteralHash(of: pattern.literal).value
            byLiteral[hash]?.removeAll { $0 === group }
            if byLiteral[hash]?.isEmpty ?? false { byLiteral[hash] = nil }
        }
    }

    /// What the comparisons of a watcher's glob are charged to.
    private func payer(
        of pattern: Pattern,
        _ watcher: Watcher
    ) -> (Subject, GlobAllowance)? {
        guard pattern.kind == .glob, let subject = watcher.subject else { return nil }
        let allowance = allowances[subject.uid] ?? GlobAllowance()
        allowances[subject.uid] = allowance
        allowance.groupCount += 1
        return (subject, allowance)
    }

    /// Publishes every commit of `batch` to the watchers, in order.
    func publish(_ batch: CommitBatch, in core: KeyspaceCore) {
        if !allowances.isEmpty {
            let now = clinux_monotonic_nanoseconds()
            for (uid, allowance) in allowances {
                allowance.refill(at: now)
                // Who ends the last glob still has to pay its debt.
                if allowance.groupCount == 0, allowance.isFull(at: now) { allowances[uid] = nil }
            }
        }
        var index = 0
        for item in batch.items {
            while index < item.changeEnd {
                match(batch.changes[index], of: item.revision, in: core)
                index += 1
            }
            for watcher in touched { watcher.deliverMatched(revision: item.revision, in: core) }
            touched.removeAll(keepingCapacity: touched.capacity <= 1_024)
        }
    }

    private func match(_ record: Record, of revision: Int64, in core: KeyspaceCore) {
        (lastShown, writer) = (nil, nil)
        for group in everything { notify(group, record, in: core) }
        globs.forEach(atStartOf: record.key) { compare($0, record, of: revision, in: core) }
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

    /// Compares a key with a glob, whose watchers receive the commit later if their user has no
    /// steps left for that.
    private func compare(
        _ group: Group,
        _ record: Record,
        of revision: Int64,
        in core: KeyspaceCore
    ) {
        guard let payer = group.payer else {
            comparisonCount += 1
            if group.pattern.matches(record.key) { notify(group, record, in: core) }
            return
        }
        // Order matters: a hidden change of others costs a watcher nothing.
        guard
            isShown(record, to: payer.subject, in: core)
                || uid(of: record, in: core) == payer.subject.uid
        else { return }
        guard let isMatch = payer.allowance.matches(group.pattern, record.key) else {
            for watcher in group.watchers.all { watcher.postpone(revision: revision) }
            return
        }
        comparisonCount += 1
        if isMatch { notify(group, record, in: core) }
    }

    private func notify(_ group: Group, _ record: Record, in core: KeyspaceCore) {
        for watcher in group.watchers.all { notify(watcher, record, in: core) }
    }

    /// Records a change for a watcher that may see it, once however many of its patterns match.
    private func notify(_ watcher: Watcher, _ record: Record, in core: KeyspaceCore) {
        guard watcher.matched.last != record else { return }
        guard isShown(record, to: watcher.subject, in: core) else {
            return watcher.noteHidden(record)
        }
        if watcher.matched.isEmpty { touched.append(watcher) }
        watcher.match(record)
    }

    /// Who has made the change that is being published.
    private func uid(of record: Record, in core: KeyspaceCore) -> UInt32 {
        if let writer { return writer }
        let uid = core.cause(of: record).uid
        writer = uid
        return uid
    }

    /// Whether the change that is being published is shown to `subject`.
    ///
    /// The last answer is remembered: many watches of one user may match a key.
    private func isShown(_ record: Record, to subject: Subject?, in core: KeyspaceCore) -> Bool {
        guard let subject else { return true }
        if let lastShown, lastShown.subject === subject { return lastShown.isShown }
        let isShown = core.isShown(record, toWatcherOf: subject)
        lastShown = (subject, isShown)
        return isShown
    }
}
