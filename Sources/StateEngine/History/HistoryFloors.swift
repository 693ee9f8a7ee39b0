/// From which revision on the history of some keys is complete, where rules have removed more of it
/// than the retention.
///
/// ```
/// 16800    metrics/
/// 17012    session/*
/// ```
///
/// A line for each pattern: the revision, a tab, the pattern. The revision is not below that of any
/// change that superseded a removed one: from it on every state and every change of these keys is
/// there, below it the newest values that are left may have superseded others.
public struct HistoryFloors: Hashable, Sendable {
    private var revisions: [Pattern: Int64] = [:]

    /// More patterns than this become one, for all keys.
    private static let patternLimit = 256

    /// Nothing was removed.
    public init() {}

    /// Reads a text; nil if it is invalid.
    package init?(_ text: String) {
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: "\t", maxSplits: 1)
            guard parts.count == 2, let revision = Int64(parts[0]), revision > 0,
                let pattern = try? Pattern(String(parts[1]))
            else { return nil }
            revisions[pattern] = revision
        }
    }

    /// The text.
    package var text: String {
        revisions.map { "\($1)\t\($0)\n" }.sorted().joined()
    }

    package var isEmpty: Bool { revisions.isEmpty }

    /// The highest of all.
    package var highest: Int64 { revisions.values.max() ?? 0 }

    /// From this revision on the history of the key is complete; 0 if nothing was removed of it.
    package func revision(of key: Bytes) -> Int64 {
        revisions.reduce(0) { $1.key.matches(key) ? max($0, $1.value) : $0 }
    }

    /// The same for all keys that match one of some patterns.
    package func revision(of patterns: PatternSet) -> Int64 {
        revisions.reduce(0) { highest, floor in
            let isMet = patterns.patterns.contains { floor.key.mayMeet($0) }
            return isMet ? max(highest, floor.value) : highest
        }
    }

    /// Changes up to `revision` have superseded versions of the pattern's keys that are removed.
    package mutating func raise(_ pattern: Pattern, to revision: Int64) {
        revisions[pattern] = max(revision, revisions[pattern] ?? 0)
        guard revisions.count > HistoryFloors.patternLimit else { return }
        revisions = [.everything: highest]
    }

    /// The same for some keys; many of them become the directory that they share.
    package mutating func raise(keys: [[UInt8]], to revision: Int64) {
        guard keys.count > HistoryFloors.keyLimit else {
            for key in keys {
                key.withUnsafeBytes { raise(Pattern(Key(verified: $0)), to: revision) }
            }
            return
        }
        var shared = keys[0][...]
        for key in keys {
            shared = shared[..<(zip(shared, key).prefix { $0 == $1 }.count)]
        }
        let directory = shared.lastIndex(of: UInt8(ascii: "/")).map { shared[...$0] } ?? []
        let pattern = try? Pattern(literal: Array(directory))
        raise(directory.isEmpty ? .everything : pattern ?? .everything, to: revision)
    }

    /// So many keys of one commit have patterns of their own.
    private static let keyLimit = 8

    /// Raises each pattern to what others say of it.
    package mutating func raise(to others: HistoryFloors) {
        for (pattern, revision) in others.revisions { raise(pattern, to: revision) }
    }

    /// Drops what the compacted revision says as well.
    package mutating func drop(through compacted: Int64) {
        if revisions.contains(where: { $0.value <= compacted }) {
            revisions = revisions.filter { $0.value > compacted }
        }
    }
}

extension HistoryReading {
    /// From this revision on every state and every change of the keys of `patterns` is there.
    ///
    /// Only inside of ``snapshot(_:)``, with the revision that it passes.
    package func oldestRevision(of patterns: PatternSet, _ compacted: Int64) throws -> Int64 {
        max(compacted, try floors().revision(of: patterns))
    }

    /// Refuses to answer what a key was at a revision, because the version that its next change
    /// superseded is not there, if that need not have been a delete.
    ///
    /// Only inside of ``snapshot(_:)``.
    package func requireWhole(_ key: [UInt8], at revision: Int64) throws {
        let floors = try floors()
        let oldest = key.withUnsafeBytes { floors.revision(of: $0) }
        if revision < oldest { throw StateError.compacted(revision, oldest: oldest) }
    }
}
