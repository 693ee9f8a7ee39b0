import StateContainers
import StateTestSupport
import Testing

private enum Selfish {
    static let storage: StateStorage = StateStorage("selfish") { () throws(StateError) in
        _ = theme.value
        return try LocalKeyspace(backing: MemoryBacking())
    }
    static let theme: PersistentState<String> = PersistentState("blue", key: "theme", in: storage)
}

struct StateStorageTests {
    @Test func `a storage that cannot be opened is met at the first use`() throws {
        let storage = StateStorage.directory("/nonexistent/conf")
        let theme = PersistentState("blue", key: "theme", in: storage)
        #expect(theme.value == "blue")
        guard case .away = theme.status else {
            Issue.record("it is \(theme.status)")
            return
        }
        for _ in 0..<2 {
            let error = #expect(throws: StateError.self) { try theme.set("dark") }
            #expect(error?.code == .storage)
            #expect(error?.message.contains("/nonexistent/conf") == true, "\(error as Any)")
        }
        #expect(theme.value == "blue")
        #expect(throws: StateError.self) { try storage.open() }
    }

    @Test func `nothing is opened before the first use, and once then`() throws {
        let count = Observed(0)
        let storage = StateStorage("mine") { () throws(StateError) in
            count.update { $0 += 1 }
            return try LocalKeyspace(backing: MemoryBacking())
        }
        #expect(count.current == 0)
        let (first, second) = (
            PersistentState(1, key: "n", in: storage), PersistentState(2, key: "n", in: storage)
        )
        try first.set(5)
        #expect(second.value == 5 && count.current == 1)
    }

    @Test func `a storage whose closure uses its own container ends the process by name`() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            _ = Selfish.theme.value
        }
        #expect(result.map { said($0, "storage 'selfish'", "uses a container in") } == true)
    }

    @Test func `the keyspace of a storage is that of the scope`() throws {
        let storage = StateStorage.inMemory()
        let query = try storage.keyspace().query("n/", as: Int.self)
        try PersistentState(0, key: "n/a", in: storage).set(1)
        #expect(query.rows.map(\.value) == [1])
        try StateScope.run {
            let scoped = try storage.keyspace().query("n/", as: Int.self)
            #expect(scoped.rows.isEmpty)
            try PersistentState(0, key: "n/b", in: storage).set(2)
            #expect(scoped.rows.map(\.value) == [2])
        }
        #expect(query.rows.count == 1)
    }

    @Test func `a storage whose closure uses another container opens`() throws {
        let path = State("memory", key: "path")
        let storage = StateStorage("mine") { () throws(StateError) in
            path.modify { $0 += "/used" }
            return try LocalKeyspace(backing: MemoryBacking())
        }
        let state = PersistentState(1, key: "n", in: storage)
        #expect(path.value == "memory")
        try state.set(2)
        #expect(path.value == "memory/used")
    }

    @Test func `a subclass of a container in a storage gets changes from elsewhere at once`() throws
    {
        final class Audited: PersistentState<Int>, @unchecked Sendable {
            let told = Observed<[Int]>([])
            override func didModify(_ change: StateChange<Int>) {
                super.didModify(change)
                told.update { $0.append(change.new) }
            }
        }
        let storage = StateStorage.inMemory()
        let audited = Audited(0, key: "n", in: storage)
        try PersistentState(0, key: "n", in: storage).set(5)
        #expect(audited.told.wait { $0 == [5] })
    }

    @Test func `a container keeps the keyspace of a storage that nobody holds open`() throws {
        let directory = try TemporaryDirectory()
        func state() -> PersistentState<Int> {
            PersistentState(0, key: "n", in: StateStorage.directory(directory.path))
        }
        let held = state()
        try held ~> 1
        #expect(state().value == 1)
    }

    @Test func `containers that name no storage refuse changes until one is chosen`() {
        let state = PersistentState(1, key: "n")
        let error = #expect(throws: StateError.self) { try state.set(2) }
        #expect(error?.message.contains("StateStorage.use") == true)
    }

    @Test func `a value that cannot be read is met at the first use, and stays`() throws {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        try keyspace.apply([.set("n", Array("text".utf8))])
        let state = PersistentState(1, key: "n", in: StateStorage("mine") { keyspace })
        #expect(state.value == 1)
        let error = #expect(throws: StateError.self) { try state.set(2) }
        #expect(error?.code == .undecodable)
        #expect(keyspace.entry(for: "n")?.value == Array("text".utf8))
        try state.overwrite(3)
        #expect(state.value == 3)
    }

    @Test func `each scope has its own values of static persistent containers`() async throws {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        let storage = StateStorage("mine") { keyspace }
        let state = PersistentState(0, key: "n", in: storage)
        let other = PersistentState(10, key: "m", in: storage)
        try await state.set(1)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 2...9 {
                group.addTask {
                    try await StateScope.run {
                        #expect(state.value == 0)
                        let told = Told<Int>()
                        let observation = state.observe(on: .inline, initial: false, told.take)
                        try await state ~> number
                        try await withTransaction { tx in
                            tx[state] += 1
                            tx[other] += tx[state]
                        }
                        #expect(state.value == number + 1 && other.value == number + 11)
                        #expect(told.changes.current.map(\.new) == [number, number + 1])
                        // A new container of the key is one of the same scope.
                        #expect(PersistentState(0, key: "n", in: storage).value == number + 1)
                        withExtendedLifetime(observation) {}
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(state.value == 1 && other.value == 10)
        #expect(keyspace.entry(for: "m") == nil)
    }

    @Test func `a container that is made in a scope does not open its storage`() throws {
        let count = Observed(0)
        let storage = StateStorage("mine") { () throws(StateError) in
            count.update { $0 += 1 }
            return try LocalKeyspace(backing: MemoryBacking())
        }
        let state = try StateScope.run {
            let state = PersistentState(1, key: "n", in: storage)
            try state.set(2)
            #expect(state.value == 2)
            return state
        }
        #expect(count.current == 0)
        #expect(state.value == 1, "outside of the scope it is that of the storage")
        #expect(count.current == 1)
        let told = Told<Int>()
        let observation = state.observe(on: .inline, initial: false, told.take)
        try state.set(3)
        #expect(told.changes.current.map(\.new) == [3])
        withExtendedLifetime(observation) {}
    }

    @Test func `a scope has its own clock, ids and random numbers`() {
        var dependencies = StateDependencies()
        dependencies.makeID = StateDependencies.countingIDs("row-")
        dependencies.random = StateRandom(SplitMix(seed: 1))
        func roll() -> [Int] {
            StateScope.run(with: dependencies) {
                var random = StateDependencies.current.random
                return (0..<5).map { _ in Int.random(in: 1...6, using: &random) }
            }
        }
        StateScope.run(with: dependencies) {
            #expect(StateDependencies.current.makeID() == "row-1")
            StateScope.run { #expect(StateDependencies.current.makeID() == "row-2") }
        }
        let first = roll()
        dependencies.random = StateRandom(SplitMix(seed: 1))
        #expect(first == roll())
        #expect(StateDependencies.current.makeID() != StateDependencies.current.makeID())
    }
}
