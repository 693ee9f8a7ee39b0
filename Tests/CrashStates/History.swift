/// The changes of one transaction, by key; nil is a delete.
struct Commit: Equatable {
    var revision: Int64
    var changes: [String: [UInt8]?]

    /// What of it is stored: the rest is in memory only.
    var stored: [String: [UInt8]?] { changes.filter { !Keys.isMemory($0.key) } }

    /// Whether storage has it before anybody knows it: at least one of its keys is of no rule that has it
    /// stored later.
    var isStoredFirst: Bool { stored.keys.contains { !Keys.isLate($0) } }
}

/// A key as it is served.
struct Entry: Equatable {
    var value: [UInt8]
    var revision: Int64
}

/// Where keys live, by their names.
enum Keys {
    /// All that is stored, somewhere.
    static let storedPatterns = ["k/", "app/", "box/", latePattern]
    static let memoryPattern = "mem/"
    /// Stored some time after it is known.
    static let latePattern = "late/"

    static func isMemory(_ key: String) -> Bool { key.hasPrefix(memoryPattern) }
    static func isLate(_ key: String) -> Bool { key.hasPrefix(latePattern) }
}

/// Every transaction of a recording, as the checker expected it and the daemon numbered it.
struct History {
    private(set) var commits: [Commit] = []

    mutating func append(_ commit: Commit) { commits.append(commit) }

    /// Forgets what came after a revision: it was lost before anybody knew it.
    mutating func cut(to revision: Int64) { commits.removeAll { $0.revision > revision } }

    /// What is stored after a revision.
    func state(at revision: Int64) -> [String: Entry] {
        var state: [String: Entry] = [:]
        for commit in commits where commit.revision <= revision {
            for (key, value) in commit.stored {
                state[key] = value.map { Entry(value: $0, revision: commit.revision) }
            }
        }
        return state
    }

    /// What is stored by the transactions after a revision, up to another.
    func storedCommits(after first: Int64, to last: Int64) -> [Commit] {
        commits.compactMap { commit in
            guard commit.revision > first, commit.revision <= last else { return nil }
            let stored = commit.stored
            return stored.isEmpty ? nil : Commit(revision: commit.revision, changes: stored)
        }
    }

    /// The newest revision up to another at which something was stored; 0 for none.
    func newestStored(to last: Int64) -> Int64 {
        commits.last { $0.revision <= last && !$0.stored.isEmpty }?.revision ?? 0
    }
}
