import CLinux

/// Finds the watchers of each change: the cost depends on the watchers that match, not on all that
/// exist.
///
/// A key looks up its own patterns: itself, each of its prefixes that end in `/`, and the globs
/// whose literal part it begins with. The watchers of a user whom rules may restrict have a
/// ``GlobAllowance``.
package final class WatchHub {
    /// Whether somebody has to be notified of every commit before its writer gets a reply.
    package var mustComeFirst = false
    /// The watchers of each pattern, of all kinds.
    private var groups: [GroupName: Group] = [:]
    private var crowds: [CrowdName: Crowd] = [:]
    /// Keys and prefixes by their hash; hash collisions are resolved by the pattern.
    private var byLiteral: [Int: [Crowd]] = [:]
    /// Patterns that match every key.
    private var everything: [Crowd] = []
    private var globs = LiteralTable<Crowd>()
    @exclusivity(unchecked) package private(set) var count = 0
    /// What the watchers of a user whom rules may restrict are charged to, by uid.
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

    /// The watchers of one pattern and one user, for which a key is compared with it once.
    private final class Group {
        let pattern: Pattern
        @exclusivity(unchecked) var watchers = IdentitySet<Watcher>()

        init(_ pattern: Pattern) { self.pattern = pattern }
    }

    /// The groups of one user whose patterns are of one kind and have the same literal part.
    ///
    /// If the user has no steps left, all of them miss the commit at once: a commit of many keys
    /// does not visit them again for each.
    private final class Crowd {
        /// Whose they are, and what they are charged to; nil without a limit.
        let payer: (subject: Subject, allowance: GlobAllowance)?
        var groups = IdentitySet<Group>()
        /// The last commit that they get later.
        @exclusivity(unchecked) var postponedRevision: Int64 = 0

        init(_ payer: (Subject, GlobAllowance)?) { self.payer = payer }
    }

    private struct GroupName: Hashable {
        let pattern: Pattern
        let subject: ObjectIdentifier?

        init(_ pattern: Pattern, of watcher: Watcher) {
            self.pattern = pattern
            subject = watcher.subject.map { ObjectIdentifier($0) }
        }
    }

    private struct CrowdName: Hashable {
        let kind: Pattern.Kind
        let literal: [UInt8]
        let subject: ObjectIdentifier?

        init(_ name: GroupName) {
            (kind, literal) = (name.pattern.kind, name.pattern.literal)
            subject = name.subject
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

    /// Another subject stands for the user of a watcher from now on.
    ///
    /// What was delivered may be what the new one may not see, or lack what it may: the watcher has
    /// to begin anew.
    ///
    /// - Complexity: as ``remove(_:)``.
    package func move(_ watcher: Watcher, to subject: Subject) {
        remove(watcher)
        watcher.subject = subject
        add(watcher)
    }

    /// Begins to report the keys of one more pattern to a watcher.
    package func add(_ pattern: Pattern, to watcher: Watcher) {
        let name = GroupName(pattern, of: watcher)
        if let group = groups[name] { return group.watchers.insert(watcher) }
        let group = Group(pattern)
        group.watchers.insert(watcher)
        groups[name] = group
        crowd(CrowdName(name), of: watcher.subject).groups.insert(group)
    }

    private func crowd(_ name: CrowdName, of subject: Subject?) -> Crowd {
        if let crowd = crowds[name] { return crowd }
        let crowd = Crowd(subject.map { ($0, allowance(of: $0)) })
        crowds[name] = crowd
        switch name.kind {
        case .glob: globs.insert(crowd, under: name.literal)
        case .prefix where name.literal.isEmpty: everything.append(crowd)
        case .key, .prefix:
            byLiteral[LiteralHash(of: name.literal).value, default: []].append(crowd)
        }
        return crowd
    }

    private func allowance(of subject: Subject) -> GlobAllowance {
        let allowance = allowances[subject.uid] ?? GlobAllowance()
        allowances[subject.uid] = allowance
        allowance.crowdCount += 1
        return allowance
    }

    /// Stops reporting the keys of one of its patterns to a watcher.
    package func remove(_ pattern: Pattern, from watcher: Watcher) {
        let name = GroupName(pattern, of: watcher)
        guard let group = groups[name] else { return }
        group.watchers.remove(watcher)
        guard group.watchers.isEmpty else { return }
        groups[name] = nil
        let crowdName = CrowdName(name)
        guard let crowd = crowds[crowdName] else { return }
        crowd.groups.remove(group)
        if crowd.groups.isEmpty { remove(crowd, crowdName) }
    }

    private func remove(_ crowd: Crowd, _ name: CrowdName) {
        crowds[name] = nil
        crowd.payer?.allowance.crowdCount -= 1
        switch name.kind {
        case .glob: globs.remove(crowd, under: name.literal)
        case .prefix where name.literal.isEmpty: everything.removeAll { $0 === crowd }
        case .key, .prefix:
            let hash = LiteralHash(of: name.literal).value
            byLiteral[hash]?.removeAll { $0 === crowd }
            if byLiteral[hash]?.isEmpty ?? false { byLiteral[hash] = nil }
        }
    }

    /// Publishes every commit of `batch` to the watchers, in order.
    func publish(_ batch: CommitBatch, in core: KeyspaceCore) {
        if !allowances.isEmpty {
            let now = clinux_monotonic_nanoseconds()
            for (uid, allowance) in allowances {
                allowance.refill(at: now)
                // Who ends the last glob still has to pay its debt.
                if allowance.crowdCount == 0, allowance.isFull(at: now) { allowances[uid] = nil }
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
        for crowd in everything { report(record, of: revision, to: crowd, in: core) }
        globs.forEach(atStartOf: record.key) { report(record, of: revision, to: $0, in: core) }
        guard !byLiteral.isEmpty else { return }
        let key = record.key
        var hash = LiteralHash()
        for index in 0..<key.count {
            hash.take(key[index])
            guard index == key.count - 1 || key[index] == UInt8(ascii: "/") else { continue }
            guard let found = byLiteral[hash.value] else { continue }
            for crowd in found { report(record, of: revision, to: crowd, in: core) }
        }
    }

    /// Reports a change to the watchers of the patterns that match its key.
    ///
    /// They receive the commit later if their user has no steps left for that.
    private func report(
        _ record: Record,
        of revision: Int64,
        to crowd: Crowd,
        in core: KeyspaceCore
    ) {
        guard let payer = crowd.payer else {
            for group in crowd.groups.all {
                comparisonCount += 1
                guard group.pattern.matches(record.key) else { continue }
                for watcher in group.watchers.all { watcher.report(record, to: &touched) }
            }
            return
        }
        guard crowd.postponedRevision != revision else { return }
        let isShown = isShown(record, to: payer.subject, in: core)
        // Order matters: a hidden change of others costs a watcher nothing.
        guard isShown || uid(of: record, in: core) == payer.subject.uid else { return }
        for group in crowd.groups.all {
            guard let isMatch = payer.allowance.matches(group.pattern, record.key) else {
                return postpone(crowd, revision: revision)
            }
            comparisonCount += 1
            guard isMatch else { continue }
            for watcher in group.watchers.all {
                guard payer.allowance.takeReport(isFirst: watcher.matched.isEmpty) else {
                    return postpone(crowd, revision: revision)
                }
                guard isShown else {
                    watcher.noteHidden(record)
                    continue
                }
                watcher.report(record, to: &touched)
            }
        }
    }

    private func postpone(_ crowd: Crowd, revision: Int64) {
        crowd.postponedRevision = revision
        for group in crowd.groups.all {
            for watcher in group.watchers.all { watcher.postpone(revision: revision) }
        }
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
