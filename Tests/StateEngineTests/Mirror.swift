import StateEngine
import StateTestSupport
import Testing

/// A copy of what some patterns mean, made of nothing but what a watcher is told.
final class Mirror {
    let recorder: Recorder
    private(set) var values: [String: String] = [:]
    private(set) var gapCount = 0
    private let walk: RandomWalk
    private let patterns: PatternSet
    /// What was told last; 0 while pieces are under way.
    private var revision: Int64
    private var isLive: Bool

    init(_ walk: RandomWalk, _ texts: [String], snapshot: Bool) throws {
        self.walk = walk
        patterns = PatternSet(try texts.map { try Pattern($0) })
        revision = walk.model.durableRevision
        isLive = !snapshot
        recorder = walk.stage.withCore { [patterns] core in
            let recorder = Recorder(patterns, snapshot ? .snapshot : .now, in: core)
            core.hub.add(recorder.watcher)
            return recorder
        }
        if !snapshot { values = expected(at: revision) }
    }

    /// The state of the patterns after a durable commit.
    func expected(at revision: Int64) -> [String: String] {
        (walk.model.history[revision] ?? [:]).filter { matches($0.key) }
    }

    @discardableResult
    func advance(byteLimit: Int) -> Bool {
        walk.stage.advance(recorder, byteLimit: byteLimit)
    }

    /// Takes over what was told since the last call.
    func follow(_ place: Comment) throws {
        for notice in recorder.take() {
            switch notice {
            case .gap:
                gapCount += 1
                values = [:]
                isLive = false
            case .piece(let changes):
                try #require(!isLive, place)
                for change in changes { values[change.key] = change.value }
            case .synced(let revision):
                try #require(!isLive, place)
                isLive = true
                self.revision = revision
                try #require(values == expected(at: revision), place)
            case .latest: Issue.record("latest values of a watcher of every commit")
            case .commit(let revision, let changes):
                try #require(isLive, place)
                try follow(revision, changes, place)
            }
        }
    }

    private func follow(_ revision: Int64, _ changes: [Recorder.Change], _ place: Comment) throws {
        // The very next commit that touches the patterns, and all of it.
        let kept = walk.stage.backing.kept.filter {
            $0.revision > self.revision && $0.revision <= revision
                && matches(String(decoding: $0.key, as: UTF8.self))
        }
        try #require(kept.allSatisfy { $0.revision == revision }, place)
        try #require(kept.map(\.key) == changes.map { Array($0.key.utf8) }, place)
        try #require(kept.map(\.value) == changes.map { $0.value.map { Array($0.utf8) } }, place)
        for change in changes {
            try #require(change.previous == values[change.key], place)
            values[change.key] = change.value
        }
        self.revision = revision
        try #require(values == expected(at: revision), place)
    }

    private func matches(_ key: String) -> Bool {
        Array(key.utf8).withUnsafeBytes { patterns.matches($0) }
    }
}
