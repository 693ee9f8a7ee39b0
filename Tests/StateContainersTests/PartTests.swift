import StateContainers
import StateTestSupport
import Testing

struct PartTests {
    private struct Item: Codable, Hashable, Identifiable, Sendable {
        let id: Int
        var title: String
    }

    private struct Profile: Codable, Hashable, Sendable {
        struct Address: Codable, Hashable, Sendable {
            var city = "Ulm"
            var zip = 1
        }

        var age = 0
        var name = "Ada"
        var address = Address()
        var second: Address?
        var items: [Item] = []
        var scores: [String: Int] = [:]
    }

    private let profile = MonitoredState(Profile(), key: "profile")

    @Test func `Visible: a part shows what the whole had when its modify returned`() {
        let city = profile.scope(\.address.city)
        onThreads(4) { [profile] thread in
            for number in 0..<1_000 {
                profile ~> { $0.age += 1 }
                if thread == 0 {
                    profile ~> { $0.address.city = "\(number)" }
                    #expect(city.value == "\(number)")
                }
            }
        }
        #expect(profile.value.age == 4_000)
    }

    @Test func `Atomic: 4 threads that change two parts of one value lose nothing`() {
        let age = profile.scope(\.age)
        let zip = profile.scope(\.address).scope(\.zip)
        onThreads(4) { _ in
            for _ in 0..<1_000 {
                age ~> { $0 += 1 }
                zip.modify { $0 += 1 }
            }
        }
        #expect(profile.value.age == 4_000 && profile.value.address.zip == 4_001)
    }

    @Test func `listeners, observers and streams of a part are not called for other parts`()
        async throws
    {
        let age = profile.scope(\.age)
        let listener = Listener(on: .inline)
        age.attach(listener: listener)
        var changes = age.changes().makeAsyncIterator()
        profile ~> { $0.name = "Grace" }
        profile ~> { $0.age = 5 }
        profile.touch()
        age ~> 6
        #expect(listener.told.changes.current.map(\.new) == [5, 6])
        #expect(listener.told.isChain)
        #expect(await changes.next()?.new == 5)
        #expect(await changes.next()?.new == 6)
        #expect(try await age.wait(timeout: .seconds(1)) { $0 == 6 } == 6)
        age.detach(listener: listener)
        age ~> 7
        #expect(listener.told.changes.current.count == 2)
    }

    @Test func `a part of a part, of an Optional, of an array and of a dictionary`() {
        let second = profile.scope(\.second)
        let city = second.scope(\.city)
        let present = second.scope(or: .init(city: "none"))
        #expect(city.value == nil && present.value.city == "none")
        city ~> "Paris"
        #expect(second.value == nil, "a part of nothing stays absent")
        present ~> { $0.zip = 9 }
        #expect(profile.value.second == .init(city: "none", zip: 9))
        city ~> "Rome"
        #expect(present.value.city == "Rome")

        let item = profile.scope(\.items).scope(id: 2)
        item ~> Item(id: 2, title: "b")
        profile ~> { $0.items.insert(Item(id: 1, title: "a"), at: 0) }
        item ~> { $0?.title = "c" }
        #expect(profile.value.items.map(\.title) == ["a", "c"])
        item ~> nil
        #expect(profile.value.items.map(\.id) == [1])

        let score = profile.scope(\.scores).scope(key: "x")
        score ~> 3
        #expect(profile.value.scores == ["x": 3] && score.value == 3)
    }

    @Test func `a change of a part that expects a revision is refused for that part only`() throws {
        let age = profile.scope(\.age)
        let seen = age.versioned.revision
        profile ~> { $0.name = "Grace" }
        try age.modify(1, ifRevision: seen)
        #expect(throws: StateError.self) { try age.modify(2, ifRevision: seen) }
        #expect(profile.value.age == 1)
    }

    @Test func `a transaction changes a part together with other containers`() throws {
        let other = State(1, key: "other")
        let age = profile.scope(\.age)
        try withTransaction { tx in
            tx[age] += 5
            tx[profile].name = "Grace"
            tx[other] += tx[age]
        }
        #expect(profile.value.age == 5 && profile.value.name == "Grace" && other.value == 6)
    }

    @Test func `a part of a stored value is stored, and a refused change of it is thrown`()
        async throws
    {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        let stored = try await PersistentState(Profile(), key: "profile", in: keyspace)
        let age = stored.scope(\.age)
        try await age ~> 3
        try await age ~> { $0 += 1 }
        #expect(age.value == 4 && stored.value.age == 4)
        keyspace.close()
        await #expect(throws: StateError.self) { try await age ~> 5 }
        #expect(age.value == 4)
    }

    @Test func `a scope of a test has parts of its own`() {
        let age = profile.scope(\.age)
        StateScope.run {
            profile ~> { $0.age = 8 }
            #expect(age.value == 8)
            age ~> 9
            #expect(profile.value.age == 9)
        }
        #expect(age.value == 0)
    }

    @Test func `a part that nobody observes costs the whole nothing`() {
        let age = profile.scope(\.age)
        age ~> 3
        #expect(age.value == 3 && !profile.isTold)
        var observation: StateObservation? = age.observe(on: .inline) { _ in }
        #expect(profile.isTold)
        _ = observation
        observation = nil
        #expect(!profile.isTold)
        let zip = profile.scope(\.address).scope(\.zip)
        observation = zip.observe(on: .inline) { _ in }
        #expect(profile.isTold)
        // Released in a body, where the lock of the whole is held.
        profile.modify { [part = profile.scope(\.name)] in $0.name = part.key.description }
        let kept = State<StateObservation?>(nil, key: "kept")
        kept ~> observation
        observation = nil
        kept.modify { $0 = nil }
        // The next change finds that nobody is left.
        zip ~> 5
        #expect(eventually { !profile.isTold })
        #expect(profile.value.address.zip == 5)
    }
}
