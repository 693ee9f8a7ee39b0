import StateEngine
import StateTestSupport
import Testing

@Suite struct WatchHubTests {
    private let stage: Stage

    init() throws { stage = try Stage() }

    @Test func `a watcher of several patterns has one notice a commit, each key once`() throws {
        let watcher = try stage.watch("a", "a/", "a/b", "a*", "/", "*b")
        try stage.transact { (core) throws(StateError) in
            for key in ["a/b", "a", "z", "ab"] { try core.set(key, "1") }
        }
        try stage.commit()
        let keys = ["a/b", "a", "z", "ab"]
        #expect(
            watcher.take() == [.commit(1, keys.map { .init(key: $0, value: "1", previous: nil) })]
        )
    }

    @Test(arguments: [
        ("a", ["a"]), ("a/", ["a/b", "a/b/c"]), ("a/b", ["a/b"]), ("a/b/", ["a/b/c"]),
        ("/", ["a", "a/b", "a/b/c", "ab", "b"]), ("a?", ["ab"]), ("*c", ["a/b/c"]), ("c", []),
    ])
    func `a pattern is told of what it means and of nothing else`(
        pattern: String,
        keys: [String]
    ) throws {
        let watcher = try stage.watch(pattern)
        let all = ["a", "a/b", "a/b/c", "ab", "b"]
        try stage.transact { (core) throws(StateError) in for key in all { try core.set(key, "1") }
        }
        try stage.commit()
        let changes = keys.map { Recorder.Change(key: $0, value: "1", previous: nil) }
        #expect(watcher.take() == (keys.isEmpty ? [] : [.commit(1, changes)]))
    }

    @Test func `watchers that do not match are not even asked whether they have room`() throws {
        let idle = try (0..<500).map { try stage.watch("idle/\($0)", "idle/\($0)/") }
        let busy = try stage.watch("busy/")
        for number in 0..<20 { try stage.set("busy/\(number)", "1") }
        try stage.set("idle", "1")
        try stage.set("idle/500", "1")
        try stage.commit()
        #expect(busy.told.count == 20)
        #expect(busy.roomCount == 20)
        #expect(idle.allSatisfy { $0.told.isEmpty && $0.roomCount == 0 })
    }

    @Test(arguments: [1, 1_000])
    func `a commit touches and compares with the watchers that match, however many there are`(
        count: Int
    ) throws {
        let watchers = try (0..<count).map { try stage.watch("watched/\($0)/") }
        let others = try (0..<count).map { _ in try stage.watch("watched/0/") }
        try stage.set("watched/0/key", "1")
        try stage.set("watched/none/key", "1")
        try stage.commit()
        #expect(watchers.map(\.roomCount) == [1] + Array(repeating: 0, count: count - 1))
        #expect(others.allSatisfy { $0.roomCount == 1 && $0.told.count == 1 })
        // Those of the same prefix share one comparison.
        #expect(stage.withCore { $0.hub.comparisonCount } == 1)
        for watcher in watchers + others { stage.withCore { $0.hub.remove(watcher.watcher) } }
        try stage.set("watched/0/key", "2")
        try stage.commit()
        #expect(stage.withCore { $0.hub.comparisonCount } == 1)
        #expect(others.allSatisfy { $0.roomCount == 1 })
    }

    @Test func `a commit compares with the globs with whose literal part its key begins`() throws {
        let others = try (0..<1_000).map { try stage.watch("other/\($0)*") }
        let watchers = try ["watched/*", "w*d/key", "watched/k?y", "*/key"].map {
            try stage.watch($0)
        }
        try stage.set("watched/key", "1")
        try stage.commit()
        #expect(watchers.allSatisfy { $0.told.count == 1 })
        #expect(others.allSatisfy { $0.told.isEmpty })
        #expect(stage.withCore { $0.hub.comparisonCount } == 4)
        for watcher in watchers.dropLast() { stage.withCore { $0.hub.remove(watcher.watcher) } }
        try stage.set("watched/key", "2")
        try stage.commit()
        #expect(watchers.map(\.told.count) == [1, 1, 1, 2])
    }

    @Test
    func `bounded: the globs of a user cost a commit so many steps, and the rest comes later`()
        throws
    {
        let (costly, other) = (
            Subject(uid: 1_001, groups: [], isPrivileged: false),
            Subject(uid: 1_002, groups: [], isPrivileged: false)
        )
        let stars = String(repeating: "*a", count: 6)
        let watchers = try (0..<100).map { try stage.watch("\(stars)b\($0)", for: costly) }
        let late = try stage.watch("\(stars)*", for: costly)
        let latecomer = try stage.watch("\(stars)*?", snapshot: true, for: costly)
        let cheap = try stage.watch("*a*", for: other)
        let unlimited = try stage.watch("*a*")
        let keys = (0..<100).map { "\($0)/" + String(repeating: "a", count: 900) }
        try stage.transact { (core) throws(StateError) in for key in keys { try core.set(key, "1") }
        }
        try stage.commit()
        // 100 keys and 104 globs are 10,400.
        #expect(stage.withCore { $0.hub.comparisonCount } < 2_000)
        let commit = Recorder.Told.commit(
            1,
            keys.map { .init(key: $0, value: "1", previous: nil) }
        )
        #expect(cheap.take() == [commit])
        #expect(unlimited.take() == [commit])
        // Not a part of a commit, and what comes next is the state: here there is no history.
        #expect(watchers.allSatisfy { $0.told.isEmpty })
        #expect(late.told.isEmpty)
        #expect(late.watcher.phase == .blocked)
        while stage.advance(late, byteLimit: 1 << 20) {}
        while stage.advance(latecomer, byteLimit: 1 << 20) {}
        for recorder in [late, latecomer] {
            let told = recorder.take()
            #expect(told.first == .gap(1))
            #expect(told.last == .synced(1))
            let pieces = told.compactMap {
                if case .piece(let changes) = $0 { changes } else { nil }
            }
            #expect(Set(pieces.joined().map(\.key)) == Set(keys))
        }
    }

    @Test
    func
        `bounded: a commit of many keys reaches so many watches of a user, the others get it later`()
        throws
    {
        let (many, other) = (
            Subject(uid: 1_001, groups: [], isPrivileged: false),
            Subject(uid: 1_002, groups: [], isPrivileged: false)
        )
        let watchers = try (0..<900).map { try stage.watch($0 < 600 ? "/" : "k/", for: many) }
        let (cheap, unlimited) = (try stage.watch("k/", for: other), try stage.watch("/"))
        let keys = (0..<900).map { "k/\($0)" }
        try stage.transact { (core) throws(StateError) in for key in keys { try core.set(key, "1") }
        }
        try stage.commit()
        let commit = Recorder.Told.commit(
            1,
            keys.map { .init(key: $0, value: "1", previous: nil) }
        )
        #expect(cheap.take() == [commit])
        #expect(unlimited.take() == [commit])
        // 900 keys and 900 watches are 810,000, and a user gets 262,144.
        let reached = watchers.filter { !$0.told.isEmpty }
        #expect(reached.allSatisfy { $0.take() == [commit] })
        #expect(reached.count < 300)
        // Not a part of a commit, and what comes next is the state: here there is no history.
        let late = try #require(watchers.last { $0.watcher.phase == .blocked })
        while stage.advance(late, byteLimit: 1 << 20) {}
        let told = late.take()
        #expect(told.first == .gap(1) && told.last == .synced(1))
    }

    @Test func `a glob with one star at its end costs as little as a prefix`() throws {
        let subject = Subject(uid: 1_001, groups: [], isPrivileged: false)
        let watchers = try (0..<100).map {
            try stage.watch(String(repeating: "a", count: 900 + $0) + "*", for: subject)
        }
        let keys = (0..<1_000).map { String(repeating: "a", count: 1_000) + "\($0)" }
        try stage.transact { (core) throws(StateError) in for key in keys { try core.set(key, "1") }
        }
        try stage.commit()
        #expect(watchers.allSatisfy { $0.told.count == 1 })
    }

    @Test func `a watcher that was removed hears nothing more, the others do`() throws {
        let gone = try stage.watch("k", "k*", "/", "a/")
        let stays = try stage.watch("k", "k*", "/", "a/")
        stage.withCore { $0.hub.remove(gone.watcher) }
        #expect(stage.withCore { $0.hub.count } == 1)
        try stage.transact { (core) throws(StateError) in
            try core.set("k", "1")
            try core.set("a/b", "1")
        }
        try stage.commit()
        #expect(gone.told == [])
        #expect(stays.told.count == 1)
    }

    @Test func `a watcher whose user has a unit now is told what that may see`() throws {
        func subject(_ unit: String?) -> Subject {
            Subject(uid: 1_001, groups: [], unit: unit, isPrivileged: false)
        }
        let watchers = try (0..<2).map { _ in try stage.watch("a/", for: subject(nil)) }
        let rules = KeyRules(["a/"], memoryPatterns: [], usages: [], texts: NoTexts()) { _ in
            var settings = KeyRule.Settings()
            settings.access[.read] = KeyRule.Setting(value: [.unit("a.service")], rule: 0)
            return KeyRule(settings, quotas: [])
        }
        rules.access.text = "a/ read unit:a.service"
        try stage.install(rules: rules)
        for (watcher, unit) in zip(watchers, ["a.service", "b.service"]) {
            stage.withCore { $0.hub.move(watcher.watcher, to: subject(unit)) }
        }
        try stage.set("a/k", "1")
        try stage.commit()
        let commit = Recorder.Told.commit(1, [.init(key: "a/k", value: "1", previous: nil)])
        #expect(watchers.map { $0.take() } == [[commit], []])
        for watcher in watchers {
            #expect(watcher.watcher.beginAnew())
            while stage.advance(watcher) {}
        }
        let piece = Recorder.Told.piece([.init(key: "a/k", value: "1", previous: nil)])
        let (gap, end) = (Recorder.Told.gap(1), Recorder.Told.synced(1))
        #expect(watchers.map { $0.take() } == [[gap, piece, end], [gap, end]])
        for watcher in watchers { stage.withCore { $0.hub.remove(watcher.watcher) } }
        #expect(stage.withCore { $0.hub.count } == 0)
    }

    @Test func `a failed commit is told to nobody`() throws {
        let watcher = try stage.watch("/")
        try stage.set("k", "1")
        try stage.publish()
        try stage.fail()
        try stage.set("k", "2")
        try stage.commit()
        #expect(watcher.take() == [.commit(2, [.init(key: "k", value: "2", previous: nil)])])
    }

    @Test func `the commits of one batch are told one by one, with what each superseded`() throws {
        let watcher = try stage.watch("k")
        try stage.set("k", "a")
        try stage.set("other", "x")
        try stage.delete("k")
        try stage.set("k", "b")
        try stage.commit()
        #expect(
            watcher.take() == [
                .commit(1, [.init(key: "k", value: "a", previous: nil)]),
                .commit(3, [.init(key: "k", value: nil, previous: "a")]),
                .commit(4, [.init(key: "k", value: "b", previous: nil)]),
            ]
        )
    }
}
