import StateContainers
import StateSQLite
import StateStore
import Testing

// What needs a word about isolation in a target that is isolated to the main actor, and what does not.

/// A value that is read and changed as a whole.
struct Point: Hashable { var x = 1 }

/// A value that is stored, or has parts.
nonisolated struct Options: Codable, Hashable { var size = 12 }

/// A value with rules: the compiler refuses wrappers in a nonisolated struct.
struct Member: nonisolated Validatable, nonisolated Codable, nonisolated Hashable {
    @Required var name = ""
    var age = 1

    nonisolated func validate() -> [ValidationIssue] {
        guard age < 0 else { return wrapperIssues() }
        return wrapperIssues() + [ValidationIssue(path: "age", rule: "age", message: "is below 0")]
    }
}

nonisolated final class Audited: StateContainers.State<Int>, @unchecked Sendable {
    override func didModify(_ change: StateChange<Int>) { super.didModify(change) }
}

nonisolated final class AuditedRow: SQLiteState<Options>, @unchecked Sendable {
    override func didModify(_ change: StateChange<Options>) { super.didModify(change) }
}

nonisolated final class Tally: OpenStore<Int, String>, @unchecked Sendable {
    func add() { modify { $0 += 1 } }
}

enum Loading { case idle, running }

final class Loader: MainActorStore<Loading, Never> {
    func load() { state = .running }
}

final class Redrawing: StateListener {
    func stateModified<Value, Failure>(
        _ state: StateContainer<Value, Failure>,
        _ change: StateChange<Value>
    ) {}
}

struct Echo: EffectHandler {
    func perform(_ request: Int, _ send: Send<Int>) async { send(request) }
}

struct Adding: Reducer {
    let handler: any EffectHandler<Int, Int>

    func reduce(_ message: Message<Int, Int>, into sum: inout Int) -> Effect<Int, Never> {
        switch message {
        case .input(let amount): return .perform(amount, with: handler)
        case .feedback(let amount):
            sum += amount
            return .none
        }
    }
}

final class UndoSteps {
    private let text: MonitoredState<String>
    private var shown: String
    private(set) var old: [String] = []
    private var observation: StateObservation?

    init(of text: MonitoredState<String>) {
        self.text = text
        shown = text.value
        observation = text.observe { [weak self] _ in self?.record() }
    }

    private func record() {
        let now = text.value
        guard now != shown else { return }
        old.append(shown)
        shown = now
    }

    func undo() {
        record()
        guard let last = old.popLast() else { return }
        shown = last
        text ~> last
    }
}

struct IsolationTests {
    @Test(.timeLimit(.minutes(15))) func `an observer has the old values, for undo`() async {
        let text = MonitoredState("", key: "text")
        let steps = UndoSteps(of: text)
        for letters in ["a", "ab"] {
            let before = steps.old
            text ~> letters
            while steps.old == before { await Task.yield() }
        }
        #expect(steps.old == ["", "a"])
        steps.undo()
        #expect(text.value == "a")
        steps.undo()
        #expect(text.value.isEmpty && steps.old.isEmpty)
        text ~> "c"
        while steps.old.isEmpty { await Task.yield() }
        #expect(steps.old == [""])
    }

    @Test func `a value in memory that is changed as a whole needs no word`() {
        let point = MonitoredState(Point(), key: "point")
        point ~> { $0.x += 1 }
        let observation = point.observe { change in print(change.new.x) }
        #expect(point.value.x == 2 && point.observed.x == 2)
        observation.cancel()
    }

    @Test func `a value that is stored, or has parts, is a nonisolated struct`() async throws {
        let database = SQLiteDatabase.inMemory
        let options = try await SQLiteState(Options(), key: "options", in: database)
        let size = options.scope(\.size)
        try await size ~> 14
        options.binding(\.size).wrappedValue += 1
        let rows = try await database.keyspace.query(
            StateQuery("options", as: Options.self).sorted(by: \.size)
        )
        #expect(options.value.size == 15 && rows.rows.map(\.value.size) == [15])
    }

    @Test func `a value with rules has nonisolated conformances`() async throws {
        let member = ValidatedState(startingWith: Member(), key: "member")
        var draft = Draft(of: member)
        draft.name = "Ada"
        draft.age = -1
        #expect(draft.issues(at: "age").count == 1)
        draft.age = 2
        try await draft.commit()
        let stored = try await SQLiteState(Member(), key: "member", in: .inMemory)
        try await stored ~> member.value
        #expect(stored.value.name == "Ada")
    }

    @Test func `a subclass of a container or of an OpenStore is a nonisolated class`() async throws
    {
        let audited = Audited(0, key: "audited")
        audited ~> 1
        let row = try AuditedRow(Options(), key: "row", in: .inMemory)
        try await row ~> { $0.size = 1 }
        let tally = Tally(0)
        tally.add()
        #expect(audited.value == 1 && row.value.size == 1 && tally.state == 1)
    }

    @Test func `stores of the main actor, reducers, handlers and listeners need no word`()
        async throws
    {
        let loader = Loader(.idle)
        loader.load()
        #expect(loader.state == .running)
        let store = Store(0, reducer: Adding(handler: Echo()))
        try await store.send(3).finished()
        #expect(store.state == 3)
        let point = MonitoredState(Point(), key: "point")
        let listener = Redrawing()
        point.attach(listener: listener)
        #expect(point.allListeners.count == 1)
    }

    @Test func `transactions and storages need no word`() throws {
        let (from, to) = (State(3, key: "from"), State(0, key: "to"))
        try withTransaction { tx in
            tx[from] -= 1
            tx[to] += 1
        }
        let storage = StateStorage("mine") { () throws(StateError) in
            try LocalKeyspace(backing: MemoryBacking())
        }
        let options = PersistentState(Options(), key: "options", in: storage)
        try options ~> { $0.size = 3 }
        #expect(to.value == 1 && options.value.size == 3)
    }
}
