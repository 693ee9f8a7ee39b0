/// A difference between what has to be served and what is.
struct Difference: Hashable {
    enum Kind: String, CaseIterable {
        case refused = "a start was refused or failed"
        case lost = "something acknowledged or delivered is lost"
        case torn = "a transaction is not whole, or not the one that was sent"
        case state = "the state is that of no revision"
        case epoch = "a new epoch, though the store is the same"
        case directory = "the data directory is lost, with all that is in it"
        case adopted = "a file that nobody has changed became a transaction"
        case files = "the files are not what is served"
        case exchanged = "a key's file has the value of another key"
        case stale = "a file of a key that lives elsewhere now is left"
        case leftover = "a file of an unfinished transaction is left"
        case repeated = "a revision was given twice"
        case memory = "a key of memory outlived a start, or nobody was told that it did not"
    }

    let kind: Kind
    let text: String
}

/// Compares what a start serves with what clients knew before a crash.
struct Comparison {
    let recording: Recording
    /// What was sent, as far as this start can know it.
    let history: History
    /// The event before which the crash was.
    let event: Int
    /// What a start in between has served; 0 for nothing.
    var served: Int64 = 0

    /// The newest transaction that was stored before somebody may have known it.
    private var told: Int64 { max(served, recording.newestTold(at: event, where: \.isStoredFirst)) }

    func differences(of seen: Observation) -> [Difference] {
        var found = seen.refusals.map { Difference(kind: .torn, text: $0) }
        let isKnown = recording.epochEvent <= event
        if isKnown, seen.epoch != recording.epoch {
            found.append(
                Difference(kind: .epoch, text: "\(recording.epoch) is \(seen.epoch) now")
            )
        }
        found += commitDifferences(of: seen)
        if !seen.memory.isEmpty {
            found.append(Difference(kind: .memory, text: "\(seen.memory.keys.sorted())"))
        }
        return found
    }

    /// The newest transaction that is served.
    func newest(of seen: Observation) -> Int64 {
        separate(seen).others.last?.revision ?? history.newestStored(to: seen.compacted)
    }

    private func commitDifferences(of seen: Observation) -> [Difference] {
        let (adopted, commits) = separate(seen)
        var found = adopted.map {
            Difference(kind: .adopted, text: "revision \($0.revision): \($0.changes.keys.sorted())")
        }
        let newest = newest(of: seen)
        if newest < told {
            found.append(
                Difference(kind: .lost, text: "it ends at revision \(newest), and \(told) was told")
            )
        }
        let expected = history.storedCommits(after: seen.compacted, to: newest)
        if let text = Comparison.difference(of: commits, from: expected) {
            found.append(Difference(kind: .torn, text: text))
        }
        var state = history.state(at: newest)
        for commit in adopted {
            for (key, value) in commit.changes {
                state[key] = value.map { Entry(value: $0, revision: commit.revision) }
            }
        }
        if let text = Comparison.difference(of: seen.entries, from: state) {
            found.append(Difference(kind: .state, text: "after revision \(newest): \(text)"))
        }
        return found
    }

    /// Keeps apart transactions that a start made of files: of keys that may live in one, with nothing
    /// of what was sent for their revision.
    private func separate(_ seen: Observation) -> (adopted: [Commit], others: [Commit]) {
        let pairs = history.commits.map { ($0.revision, $0) }
        let known = Dictionary(pairs) { first, _ in first }
        let isAdopted = { (commit: Commit) in
            let sent = known[commit.revision]?.changes ?? [:]
            return commit.changes.allSatisfy { key, value in
                (key.hasPrefix("app/") || key.hasPrefix("box/")) && sent[key] != .some(value)
            }
        }
        return (seen.commits.filter(isAdopted), seen.commits.filter { !isAdopted($0) })
    }

    static func difference(of seen: [Commit], from expected: [Commit]) -> String? {
        for (one, other) in zip(seen, expected) where one != other {
            return
                "revision \(one.revision) changes \(summary(one)), and \(other.revision) with "
                + "\(summary(other)) was due"
        }
        if seen.count < expected.count {
            return "revision \(expected[seen.count].revision) is missing"
        }
        if seen.count > expected.count {
            return "revision \(seen[expected.count].revision) was never sent"
        }
        return nil
    }

    private static func summary(_ commit: Commit) -> String {
        let parts = commit.changes.sorted { $0.key < $1.key }.map { key, value in
            value.map { "\(key) to \(short($0))" } ?? "\(key) to nothing"
        }
        return parts.joined(separator: ", ")
    }

    private static func short(_ value: [UInt8]) -> String {
        let text = String(decoding: value.prefix(12), as: UTF8.self)
        return "'\(text)' (\(value.count) bytes)"
    }

    static func difference(of seen: [String: Entry], from expected: [String: Entry]) -> String? {
        for key in Set(seen.keys).union(expected.keys).sorted() where seen[key] != expected[key] {
            return "\(key) is \(summary(seen[key])), not \(summary(expected[key]))"
        }
        return nil
    }

    private static func summary(_ entry: Entry?) -> String {
        entry.map { "\(short($0.value)) of revision \($0.revision)" } ?? "absent"
    }
}
