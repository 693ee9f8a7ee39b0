import StateClient
import StateEngine
import Testing

/// What a watcher holds after all that it was told, and whether it was told by the laws.
struct WatchedState {
    /// A value and the revision of its last change.
    struct Entry: Equatable {
        let value: [UInt8]
        let revision: Int64
    }

    private(set) var entries: [[UInt8]: Entry] = [:]
    /// The revision of which `entries` is exactly the state; 0 before the first `synced`.
    private(set) var revision: Int64 = 0
    private(set) var isSynced = false
    private(set) var gapCount = 0
    private(set) var commitCount = 0

    /// Takes in an event; an unlawful one is an issue of the test.
    mutating func apply(_ event: Client.Event) {
        switch event {
        case .piece(_, let changes):
            #expect(!isSynced, "a piece of state came after synced \(revision)")
            apply(changes)
        case .commit(_, let commit, let changes):
            #expect(isSynced, "commit \(commit) came among pieces of state")
            // Every commit touches a key and none fails here, so none may be left out.
            #expect(commit == revision + 1, "commit \(commit) came after \(revision)")
            apply(changes)
            revision = commit
            commitCount += 1
        case .synced(_, let revision):
            #expect(revision >= self.revision)
            self.revision = revision
            isSynced = true
        case .gap:
            entries = [:]
            isSynced = false
            gapCount += 1
        case .progress(_, let revision):
            #expect(revision == self.revision, "a bookmark at \(revision), not \(self.revision)")
        case .away, .current: Issue.record("no key here is a copy of a cluster's")
        }
    }

    private mutating func apply(_ changes: [Client.Change]) {
        for change in changes {
            entries[change.key] = change.value.map { Entry(value: $0, revision: change.revision) }
        }
    }

    /// All that the daemon has.
    static func listed(by client: Client) throws -> [[UInt8]: Entry] {
        var entries: [[UInt8]: Entry] = [:]
        var pages = client.pages(of: .everything)
        while let page = try pages.next() {
            for row in page {
                entries[row.key] = Entry(value: try #require(row.value), revision: row.revision)
            }
        }
        return entries
    }
}
