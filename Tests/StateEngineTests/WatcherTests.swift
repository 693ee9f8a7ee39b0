import StateEngine
import StateTestSupport
import Testing

@Suite struct WatcherTests {
    private let stage: Stage

    init() throws { stage = try Stage() }

    @Test func `a snapshot comes in pieces in key order, then it is synced, then commits follow`()
        throws
    {
        for key in ["c", "a", "b"] { try stage.set(key, key) }
        try stage.commit()
        let watcher = try stage.watch("/", snapshot: true)
        while stage.advance(watcher) {}
        #expect(watcher.take() == [piece("a", "a"), piece("b", "b"), piece("c", "c"), .synced(3)])
        #expect(!stage.advance(watcher))
        try stage.set("a", "2")
        try stage.commit()
        #expect(watcher.take() == [.commit(4, [.init(key: "a", value: "2", previous: "a")])])
    }

    @Test func `pieces are cut at about the byte limit`() throws {
        for number in 0..<10 { try stage.set("k\(number)", String(repeating: "v", count: 100)) }
        try stage.commit()
        let watcher = try stage.watch("/", snapshot: true)
        while stage.advance(watcher, byteLimit: 400) {}
        let sizes = watcher.take().map { notice -> Int in
            guard case .piece(let changes) = notice else { return 0 }
            return changes.count
        }
        #expect(sizes == [3, 3, 3, 1, 0])
    }

    @Test func `a snapshot of nothing is synced at once`() throws {
        try stage.set("a", "1")
        try stage.commit()
        let watcher = try stage.watch("b/", snapshot: true)
        #expect(!stage.advance(watcher))
        #expect(watcher.take() == [.synced(1)])
    }

    @Test func `a snapshot has nothing that is not durable`() throws {
        try stage.set("a", "1")
        try stage.set("b", "1")
        try stage.commit()
        try stage.set("a", "2")
        try stage.delete("b")
        try stage.set("c", "1")
        let watcher = try stage.watch("/", snapshot: true)
        while stage.advance(watcher) {}
        #expect(watcher.take() == [piece("a", "1"), piece("b", "1"), .synced(2)])
    }

    @Test
    func
        `while a snapshot is under way, changes behind it are pieces and changes ahead come with it`()
        throws
    {
        for key in ["a", "b", "c"] { try stage.set(key, "1") }
        try stage.commit()
        let watcher = try stage.watch("/", snapshot: true)
        stage.advance(watcher)
        stage.advance(watcher)
        #expect(watcher.take() == [piece("a", "1"), piece("b", "1")])
        try stage.transact { (core) throws(StateError) in
            try core.delete("a")
            try core.set("b", "2")
            try core.set("aa", "1")
            try core.delete("c")
            try core.set("d", "1")
        }
        try stage.commit()
        #expect(
            watcher.take() == [
                .piece([
                    .init(key: "a", value: nil, previous: "1"),
                    .init(key: "b", value: "2", previous: "1"),
                    .init(key: "aa", value: "1", previous: nil),
                ])
            ]
        )
        while stage.advance(watcher) {}
        #expect(watcher.take() == [piece("d", "1"), .synced(4)])
    }

    @Test func `a snapshot looks at so many keys at a time, also where they do not match`() throws {
        for number in 100..<400 { try stage.set("k\(number)", "1") }
        try stage.set("z match", "1")
        try stage.commit()
        let watcher = try stage.watch("*match", snapshot: true)
        for _ in 0..<10 { #expect(stage.advance(watcher, byteLimit: 200)) }
        #expect(watcher.take() == [])
        // Of the keys that it has looked at, it tells what happens; of the others, when it comes there.
        try stage.transact { (core) throws(StateError) in
            try core.set("a match", "2")
            try core.set("z match", "2")
        }
        try stage.commit()
        #expect(
            watcher.take() == [.piece([.init(key: "a match", value: "2", previous: nil)])]
        )
        var count = 0
        while stage.advance(watcher, byteLimit: 200) { count += 1 }
        #expect(
            watcher.take() == [
                .piece([.init(key: "z match", value: "2", previous: nil)]), .synced(302),
            ]
        )
        #expect((20...40).contains(count))
    }

    @Test func `a watcher without room is blocked, then has a gap, pieces, and is synced`() throws {
        let watcher = try stage.watch("/")
        try stage.set("a", "1")
        try stage.commit()
        watcher.room = false
        try stage.set("b", "1")
        try stage.commit()
        #expect(watcher.watcher.phase == .blocked)
        // Not asked again while it is blocked, however much is written.
        let asked = watcher.roomCount
        for number in 0..<5 { try stage.set("c", "\(number)") }
        try stage.commit()
        #expect(watcher.roomCount == asked)
        #expect(watcher.take() == [.commit(1, [.init(key: "a", value: "1", previous: nil)])])
        watcher.room = true
        while stage.advance(watcher) {}
        #expect(
            watcher.take() == [
                .gap(7), piece("a", "1"), piece("b", "1"), piece("c", "4"), .synced(7),
            ]
        )
        try stage.set("a", "2")
        try stage.commit()
        #expect(watcher.take() == [.commit(8, [.init(key: "a", value: "2", previous: "1")])])
    }

    @Test func `a watcher without room during its snapshot begins again`() throws {
        for key in ["a", "b"] { try stage.set(key, "1") }
        try stage.commit()
        let watcher = try stage.watch("/", snapshot: true)
        stage.advance(watcher)
        watcher.room = false
        try stage.set("a", "2")
        try stage.commit()
        #expect(watcher.watcher.phase == .blocked)
        watcher.room = true
        while stage.advance(watcher) {}
        #expect(
            watcher.take() == [
                piece("a", "1"), .gap(3), piece("a", "2"), piece("b", "1"), .synced(3),
            ]
        )
    }

    @Test func `a snapshot of latest values is not over before what changed meanwhile is told`()
        throws
    {
        for key in ["a", "b"] { try stage.set(key, "1") }
        try stage.commit()
        let manner = Watcher.Manner.latest(includesCause: false, OwedBytes())
        let watcher = try stage.watch("/", snapshot: true, manner)
        func delivered() -> Int64? { stage.withCore { watcher.watcher.deliveredThrough(in: $0) } }
        stage.advance(watcher)
        try stage.set("a", "2")
        try stage.commit()
        while watcher.watcher.phase != .synced { stage.advance(watcher) }
        #expect(watcher.take() == [piece("a", "1"), piece("b", "1")])
        // Who goes on from a revision would be told of it as of a commit.
        #expect(delivered() == nil)
        while stage.advance(watcher) {}
        let rest = Recorder.Told.latest([.init(key: "a", value: "2")], isPiece: true)
        #expect(watcher.take() == [rest, .synced(3)])
        #expect(delivered() == 3)
    }

    @Test(arguments: Seed.each(8))
    func `what watchers were told makes up the state, however steps interleave`(seed: UInt64) throws
    {
        let walk = try RandomWalk(seed: seed)
        var random = SplitMix(seed: ~seed)
        var mirrors: [Mirror] = []
        let sets = [
            ["/"], ["a/"], ["a", "a/b"], ["a*", "a/", "a/b"], ["b/?", "z"], ["long/"], ["*1", "b"],
            ["absent/"],
        ]
        for step in 0..<1_500 {
            if step % 40 == 0, mirrors.count < 2 * sets.count {
                mirrors.append(
                    try Mirror(walk, sets[mirrors.count % sets.count], snapshot: random.chance(60))
                )
            }
            try walk.step()
            for mirror in mirrors {
                mirror.recorder.room = random.chance(85)
                if random.chance(40) { mirror.advance(byteLimit: random.chance(50) ? 1 : 100) }
                try mirror.follow("step \(step)")
            }
        }
        try walk.finish()
        for mirror in mirrors {
            mirror.recorder.room = true
            while mirror.advance(byteLimit: 1_000) {}
            try mirror.follow("at the end")
            #expect(mirror.values == mirror.expected(at: walk.model.durableRevision))
        }
        #expect(mirrors.contains { $0.gapCount > 0 })
    }

    private func piece(_ key: String, _ value: String) -> Recorder.Told {
        .piece([.init(key: key, value: value, previous: nil)])
    }
}
