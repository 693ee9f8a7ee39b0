/// What one commit did to one key; values are named by a word that no two writes share.
package struct RecordedChange: Hashable, Sendable {
    /// The key.
    package let key: String
    /// What it was set to; nil where it was deleted.
    package let value: String?

    /// Makes a change.
    package init(_ key: String, _ value: String?) {
        self.key = key
        self.value = value
    }
}

/// One commit, with one change a key.
package struct RecordedCommit: Hashable, Sendable {
    /// Its revision.
    package let revision: Int64
    /// In the order in which the keys were first named.
    package let changes: [RecordedChange]
}

/// What was committed, in the order of the revisions: what every watcher has to have seen.
package struct CommitRecord: Sendable {
    /// A value and when it was set.
    package struct Entry: Hashable, Sendable {
        package var value: String
        package var revision: Int64
    }

    private struct Version {
        var revision: Int64
        var value: String?
    }

    /// Ascending.
    package private(set) var commits: [RecordedCommit] = []
    private var versions: [String: [Version]] = [:]

    /// Makes a record of these, for sessions that are written by hand.
    package init(_ commits: KeyValuePairs<Int64, [RecordedChange]> = [:]) {
        for (revision, steps) in commits { append(revision, steps) }
    }

    /// The last revision; 0 before the first.
    package var revision: Int64 { commits.last?.revision ?? 0 }

    /// Adds a transaction that was committed at a revision above all others.
    ///
    /// Of several steps on one key the last counts, and to delete what is not there is no change.
    ///
    /// - Returns: What it changed; where that is nothing, there was no commit.
    @discardableResult
    package mutating func append(_ revision: Int64, _ steps: [RecordedChange]) -> [RecordedChange] {
        precondition(revision > self.revision, "\(revision) is not above \(self.revision)")
        var last: [String: RecordedChange] = [:]
        for step in steps { last[step.key] = step }
        var changes: [RecordedChange] = []
        for step in steps {
            guard let change = last.removeValue(forKey: step.key) else { continue }
            if change.value != nil || versions[change.key]?.last?.value != nil {
                changes.append(change)
            }
        }
        guard !changes.isEmpty else { return [] }
        for change in changes {
            let version = Version(revision: revision, value: change.value)
            versions[change.key, default: []].append(version)
        }
        commits.append(RecordedCommit(revision: revision, changes: changes))
        return changes
    }

    /// The commit of a revision; nil where there is none.
    ///
    /// - Complexity: O(log *n*).
    package func commit(at revision: Int64) -> RecordedCommit? {
        let index = index(after: revision - 1)
        guard index < commits.count, commits[index].revision == revision else { return nil }
        return commits[index]
    }

    /// The commits above `first`, up to `last`.
    package func commits(after first: Int64, through last: Int64) -> ArraySlice<RecordedCommit> {
        guard first < last else { return [] }
        return commits[index(after: first)..<index(after: last)]
    }

    private func index(after revision: Int64) -> Int {
        Self.index(in: commits, after: revision, \.revision)
    }

    /// Where in an ascending list the first one above `revision` stands.
    private static func index<T>(
        in list: [T],
        after revision: Int64,
        _ path: (T) -> Int64
    ) -> Int {
        var (low, high) = (0, list.count)
        while low < high {
            let middle = (low + high) / 2
            if path(list[middle]) <= revision { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// What a key was at a revision; nil where it was absent.
    package func entry(of key: String, at revision: Int64) -> Entry? {
        guard let versions = versions[key] else { return nil }
        let index = Self.index(in: versions, after: revision, \.revision)
        guard index > 0, let value = versions[index - 1].value else { return nil }
        return Entry(value: value, revision: versions[index - 1].revision)
    }

    /// The keys at a revision that some of the patterns match.
    package func state(
        at revision: Int64,
        matching patterns: [WatchPattern] = ["/"]
    ) -> [String: Entry] {
        var state: [String: Entry] = [:]
        for key in versions.keys where patterns.match(key) {
            state[key] = entry(of: key, at: revision)
        }
        return state
    }

    /// The changes of one key, newest first.
    package func changes(of key: String) -> [(revision: Int64, value: String?)] {
        (versions[key] ?? []).reversed().map { ($0.revision, $0.value) }
    }
}
