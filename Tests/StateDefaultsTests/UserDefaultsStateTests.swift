import Foundation
import StateDefaults
import StateTestSupport
import Testing

/// Defaults as `UserDefaults` has them, beside other code that uses them.
struct UserDefaultsStateTests {
    private let suite = "stated-tests-\(UUID().uuidString)"
    private let defaults: UserDefaults

    init() throws { defaults = try #require(UserDefaults(suiteName: suite)) }

    private func state<Value>(_ value: Value, _ key: Key) throws -> UserDefaultsState<Value> {
        try UserDefaultsState(value, key: key, suite: suite)
    }

    private func removeAll() { defaults.removePersistentDomain(forName: suite) }

    @Test func `a default is what the container says, and the other way round`() throws {
        defer { removeAll() }
        defaults.set("Ada", forKey: "name")
        defaults.set(true, forKey: "isTouchIDEnabled")
        defaults.set(0.5, forKey: "volume")
        let name = try state("", "name")
        let touchID = try state(false, "isTouchIDEnabled")
        let volume = try state(0.0, "volume")
        #expect(name.value == "Ada" && touchID.value && volume.value == 0.5)

        try name ~> "Grace"
        try volume ~> { $0 += 0.25 }
        try touchID ~> false
        #expect(defaults.string(forKey: "name") == "Grace")
        #expect(defaults.object(forKey: "volume") as? Double == 0.75)
        #expect(defaults.object(forKey: "isTouchIDEnabled") as? Bool == false)
        let rating = try state(Int?.none, "rating")
        try rating ~> 5
        #expect(defaults.object(forKey: "rating") as? Int == 5)
        try rating ~> nil
        #expect(defaults.object(forKey: "rating") == nil)
    }

    @Test func `never silent: what another program stored is read as what it is`() throws {
        defer { removeAll() }
        let date = Date(timeIntervalSince1970: 86_400)
        defaults.set(["a", "b"], forKey: "list")
        defaults.set(["x": 1, "y": 2], forKey: "sizes")
        defaults.set(date, forKey: "date")
        defaults.set(Data([0xFF, 0]), forKey: "data")
        defaults.set(7, forKey: "number")
        defaults.set(URL(fileURLWithPath: "/tmp/x"), forKey: "file")
        let list = try state([String](), "list")
        try list ~> { $0.append("c") }
        #expect(defaults.stringArray(forKey: "list") == ["a", "b", "c"])
        let sizes = try state([String: Int](), "sizes")
        try sizes ~> { $0["z"] = 3 }
        #expect(defaults.dictionary(forKey: "sizes") as? [String: Int] == ["x": 1, "y": 2, "z": 3])
        #expect(try state(Date(), "date").value == date)
        #expect(try state(Data(), "data").value == Data([0xFF, 0]))
        #expect(try state([UInt8](), "data").value == [0xFF, 0])
        #expect(try state(Double(0.5), "number").value == 7)
        #expect(try state(URL?.none, "file").value == URL(fileURLWithPath: "/tmp/x"))
    }

    private struct Window: Codable, Hashable, Sendable {
        enum Side: String, Codable { case left, right }
        var side = Side.left
        var size: [Double] = [1, 2.5]
        var opened: Date? = Date(timeIntervalSince1970: 5)
        var title = "true"
    }

    private func expectKept<Value: Codable & Equatable & Sendable>(
        _ value: Value,
        insteadOf other: Value,
        as type: Any.Type
    ) throws {
        let key = "\(Value.self)"
        try state(other, Key(verified: key)) ~> value
        let stored = try #require(defaults.object(forKey: key))
        #expect(Swift.type(of: stored) == type, "\(key) is stored as \(Swift.type(of: stored))")
        defaults.synchronize()
        // As the next start reads it.
        let copy = "\(suite)-copy"
        let next = try #require(UserDefaults(suiteName: copy))
        defer { next.removePersistentDomain(forName: copy) }
        next.set(stored, forKey: key)
        let read = try UserDefaultsState(other, key: Key(verified: key), suite: copy)
        #expect(read.value == value)
    }

    @Test func `a value is stored in the type that the defaults have for it`() throws {
        defer { removeAll() }
        let home = try #require(URL(string: "https://example.org/a?b=c"))
        defaults.set([1], forKey: "[]")
        defaults.set(["a": 1], forKey: "[:]")
        let list = type(of: try #require(defaults.object(forKey: "[]")))
        let members = type(of: try #require(defaults.object(forKey: "[:]")))
        try expectKept(41, insteadOf: 0, as: Int.self)
        try expectKept(UInt64.max, insteadOf: 0, as: UInt64.self)
        try expectKept(Float(1.5), insteadOf: 0, as: Double.self)
        try expectKept(1.0, insteadOf: 0, as: Double.self)
        try expectKept(true, insteadOf: false, as: Bool.self)
        try expectKept("41", insteadOf: "", as: String.self)
        try expectKept(Date(timeIntervalSince1970: 9), insteadOf: Date(), as: Date.self)
        try expectKept(Data([1]), insteadOf: Data(), as: Data.self)
        try expectKept([UInt8](0...255), insteadOf: [], as: Data.self)
        try expectKept(Int?.some(0), insteadOf: nil, as: Int.self)
        try expectKept([1, 0, 7], insteadOf: [], as: list)
        try expectKept([[true]], insteadOf: [], as: list)
        try expectKept(["a": Date(timeIntervalSince1970: 9)], insteadOf: [:], as: members)
        try expectKept(Window(), insteadOf: Window(title: ""), as: members)
        try expectKept(Window.Side.right, insteadOf: .left, as: String.self)
        try expectKept(URL(fileURLWithPath: "/a b"), insteadOf: home, as: String.self)
        try expectKept(home, insteadOf: URL(fileURLWithPath: "/"), as: Data.self)
        #expect(defaults.url(forKey: "URL") == home)
    }

    @Test func `never silent: a default of another type is refused by name, and stays`() throws {
        defer { removeAll() }
        defaults.set(["a", "b"], forKey: "list")
        let error = #expect(throws: StateError.self) { try state(0, "list") }
        #expect(error?.code == .undecodable)
        #expect(
            error?.message.contains("'list'") == true && error?.message.contains("array") == true
        )
        let accepting = try UserDefaultsState(
            0,
            key: "list",
            suite: suite,
            acceptsUnreadable: true
        )
        #expect(throws: StateError.self) { try accepting ~> 1 }
        #expect(defaults.stringArray(forKey: "list") == ["a", "b"])
        try accepting.replace(1)
        #expect(defaults.object(forKey: "list") as? Int == 1)
    }

    @Test func `what an earlier version stored as text is read`() throws {
        defer { removeAll() }
        defaults.set("0.75", forKey: "volume")
        defaults.set(#"["c"]"#, forKey: "list")
        defaults.set("https://example.org/a", forKey: "url")
        #expect(try state(Double(0), "volume").value == 0.75)
        #expect(try state([String](), "list").value == ["c"])
        #expect(try state(URL?.none, "url").value?.host() == "example.org")
    }

    @Test func `a codec of one's own is stored as text, or as data`() throws {
        defer { removeAll() }
        let lines = StateCodec<[String]> { lines in
            Array(lines.joined(separator: "\n").utf8)
        } decode: { bytes in
            String(decoding: bytes ?? [], as: UTF8.self).split(separator: "\n").map(String.init)
        }
        let text = try UserDefaultsState([], key: "text", suite: suite, codec: lines)
        try text ~> ["a", "b"]
        #expect(defaults.string(forKey: "text") == "a\nb")
        let raw = StateCodec<Int> { number in
            [UInt8(number), 0xFF]
        } decode: { bytes in
            Int(bytes?.first ?? 0)
        }
        let data = try UserDefaultsState(0, key: "data", suite: suite, codec: raw)
        try data ~> 7
        #expect(defaults.data(forKey: "data") == Data([7, 0xFF]))
    }

    @Test func `static containers are kept in the defaults, in their own types`() throws {
        defer { removeAll() }
        defaults.set(0.5, forKey: "volume")
        let storage = StateStorage.defaults(suite: suite)
        let volume = PersistentState(1.0, key: "volume", in: storage)
        #expect(volume.value == 0.5)
        try volume ~> 0.75
        #expect(defaults.object(forKey: "volume") as? Double == 0.75)
        let window = PersistentState(Window(), key: "window", in: storage)
        try window ~> { $0.title = "b" }
        #expect(defaults.dictionary(forKey: "window")?["title"] as? String == "b")
        let same = try state(0.0, "volume")
        #expect(same.value == 0.75)
        StateStorage.with(storage) {
            let player = Player()
            #expect(player.names == ["a"])
            #expect(throws: Never.self) { try player.$names ~> { $0.append("b") } }
        }
        #expect(defaults.stringArray(forKey: "names") == ["a", "b"])
    }

    private struct Player {
        @StateValue("names") var names = ["a"]
    }

    @Test func `in a scope, static containers in the defaults are in memory`() throws {
        defer { removeAll() }
        let storage = StateStorage.defaults(suite: suite)
        let volume = PersistentState(1.0, key: "volume", in: storage)
        try StateScope.run {
            #expect(volume.value == 1)
            try volume ~> 0.25
            #expect(volume.value == 0.25)
        }
        #expect(volume.value == 1 && defaults.object(forKey: "volume") == nil)
    }

    @Test func `a versioned value keeps its version in the defaults`() throws {
        defer { removeAll() }
        let codec = StateCodec<Window>.versioned(2, migrations: [StateMigration(from: 1) { _ in }])
        let storage = StateStorage.defaults(suite: suite)
        let window = PersistentState(Window(), key: "window", in: storage, codec: codec)
        try window ~> Window(title: "b")
        #expect(defaults.string(forKey: "window")?.contains(#""$version":2"#) == true)
    }

    private final class Analytics: UserDefaultsState<Int>, @unchecked Sendable {
        let seen = Observed<[Int]>([])

        override func didModify(_ change: StateChange<Int>) {
            super.didModify(change)
            seen.update { $0.append(change.new) }
        }
    }

    @Test func `didModify of a subclass is called for each change, also for those of others`()
        throws
    {
        defer { removeAll() }
        let state = try Analytics(0, key: "n", suite: suite)
        for number in 1...3 { try state ~> number }
        defaults.set(9, forKey: "n")
        #expect(state.seen.wait { $0 == [1, 2, 3, 9] })
    }

    @Test func `Convergent: what others set arrives in every container`() throws {
        defer { removeAll() }
        let first = try state(0, "first")
        let second = try state(0, "second")
        let seen = Observed(0)
        let observation = second.observe { change in seen.update { $0 = change.new } }
        let other = try #require(UserDefaults(suiteName: suite))
        other.set(1, forKey: "first")
        other.set(2, forKey: "second")
        other.set(3, forKey: "late")
        // Made after the suite was opened, and not overwritten.
        let late = try state(0, "late")
        #expect(late.value == 3)
        try first ~> { $0 += 10 }
        #expect(first.value == 11 && other.integer(forKey: "first") == 11)
        #expect(second.value == 2 && seen.wait { $0 == 2 })
        // Without a write of ours, too.
        other.removeObject(forKey: "second")
        #expect(seen.wait { $0 == 0 })
        #expect(second.value == 0)
        observation.cancel()
    }

    @Test func `a number that is none stops no other change`() throws {
        defer { removeAll() }
        let number = try state(Double(0), "number")
        try number ~> .nan
        let other = try state(0, "other")
        for round in 1...3 { try other ~> round }
        #expect(number.value.isNaN && defaults.integer(forKey: "other") == 3)
        defaults.set(5.0, forKey: "number")
        try number ~> { $0 += 1 }
        #expect(number.value == 6)
    }

    @Test(arguments: [Double.infinity, .nan, 1e12, -1e12])
    func `a date that would make the file unreadable is refused`(seconds: Double) throws {
        defer { removeAll() }
        try state(0, "other") ~> 5
        let date = try state(Date(timeIntervalSinceReferenceDate: 0), "date")
        #expect(throws: StateError.self) {
            try date ~> Date(timeIntervalSinceReferenceDate: seconds)
        }
        try date ~> .distantFuture
        try date ~> .distantPast
        defaults.synchronize()
        #expect(defaults.integer(forKey: "other") == 5)
        #expect(defaults.object(forKey: "date") as? Date == .distantPast)
    }

    @Test func `a key may be below another one`() throws {
        defer { removeAll() }
        try state(0, "audio") ~> 1
        try state(0, "audio/volume") ~> 2
        #expect(defaults.integer(forKey: "audio") == 1)
        #expect(defaults.integer(forKey: "audio/volume") == 2)
    }

    @Test func `without a suite it is the standard one`() throws {
        let key = "stated-tests-\(UUID().uuidString)"
        defer { UserDefaults.standard.removeObject(forKey: key) }
        UserDefaults.standard.set(4, forKey: key)
        let state = try UserDefaultsState(0, key: Key(verified: key))
        #expect(state.value == 4)
        try state ~> { $0 += 1 }
        #expect(UserDefaults.standard.integer(forKey: key) == 5)
    }

    @Test func `an object that only NSCoding knows is stored as a secure archive`() throws {
        defer { removeAll() }
        let state = try state(Archived<NSURL>?.none, "object")
        let url = try #require(NSURL(string: "https://example.org/a"))
        try state ~> Archived(url)
        #expect(defaults.url(forKey: "object") == url as URL)
        let data = try #require(defaults.data(forKey: "object"))
        #expect(
            try NSKeyedUnarchiver.unarchivedObject(ofClass: NSURL.self, from: data) == url
        )
        let error = #expect(throws: StateError.self) {
            try UserDefaultsState(Archived<NSDate>?.none, key: "object", suite: "\(suite)")
        }
        #expect(error?.code == .typeMismatch)
        try state ~> nil
        #expect(defaults.object(forKey: "object") == nil)
    }

    @Test func `a model of NSSecureCoding is a value of every container`() throws {
        defer { removeAll() }
        let stored = Archived(Bookmark(title: "Swift", tags: ["a", "b"]))
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        let inMemory = try PersistentState(Archived<Bookmark>?.none, key: "b", in: keyspace)
        let inDefaults = try state(Archived<Bookmark>?.none, "b")
        for state in [inMemory, inDefaults] {
            try state ~> stored
            #expect(state.value?.object.tags == ["a", "b"])
        }
        // As another start reads them.
        let bytes = try #require(keyspace.entry(for: "b")?.value)
        try keyspace.apply([.set("copy", bytes)])
        defaults.set(defaults.data(forKey: "b"), forKey: "copy")
        let copies = [
            try PersistentState(Archived<Bookmark>?.none, key: "copy", in: keyspace),
            try state(Archived<Bookmark>?.none, "copy"),
        ]
        for state in copies {
            #expect(state.value?.object.title == "Swift" && state.value?.object.tags == ["a", "b"])
        }
    }
}

/// A model that was written for NSCoding.
final class Bookmark: NSObject, NSSecureCoding {
    static let supportsSecureCoding = true
    let title: String
    let tags: [String]

    init(title: String, tags: [String]) { (self.title, self.tags) = (title, tags) }

    init?(coder: NSCoder) {
        guard let title = coder.decodeObject(of: NSString.self, forKey: "title") else { return nil }
        self.title = title as String
        let tags = coder.decodeObject(of: [NSArray.self, NSString.self], forKey: "tags")
        self.tags = tags as? [String] ?? []
    }

    func encode(with coder: NSCoder) {
        coder.encode(title as NSString, forKey: "title")
        coder.encode(tags as NSArray, forKey: "tags")
    }
}
