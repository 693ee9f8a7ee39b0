import StateContainers
import StateTestSupport
import Testing

/// An object whose end changes a container: the count of the sessions that were closed.
private final class Session: Codable, Equatable, Sendable {
    private let sessions: Sessions?

    init(_ sessions: Sessions? = nil) { self.sessions = sessions }

    convenience init(from decoder: any Decoder) throws {
        self.init()
        _ = try decoder.singleValueContainer().decode(String.self)
    }

    func encode(to encoder: any Encoder) throws {
        var single = encoder.singleValueContainer()
        try single.encode("session")
    }

    static func == (left: Session, right: Session) -> Bool { left === right }

    deinit { sessions?.closed.modify { $0 += 1 } }
}

private final class Sessions: Sendable {
    let closed = State(0, key: "session/closed")
    private let opened = Observed(0)

    func open() -> Session {
        opened.update { $0 += 1 }
        return Session(self)
    }

    /// Whether none is open any more.
    var areClosed: Bool { eventually { closed.value == opened.current } }
}

private struct User: Validatable, Sendable {
    var name = "ada"
    var session: Session?
    var isRefused = false

    func validate() -> [ValidationIssue] {
        isRefused ? [ValidationIssue(path: "isRefused", rule: "refused", message: "refused")] : []
    }
}

private struct Refused: Error {}

/// What a change replaces is released after the locks: its `deinit` may use any container.
struct ReleaseTests {
    private let sessions = Sessions()

    /// Runs `body`, after which all sessions are closed.
    private func closesAll(_ body: () throws -> Void) rethrows {
        try body()
        #expect(sessions.areClosed)
    }

    @Test(arguments: [false, true])
    func `an object that a change replaces may change a container when it goes`(
        isObserved: Bool
    ) {
        closesAll {
            let current = MonitoredState<Session?>(nil, key: "session/current")
            let observation = isObserved ? current.observe(on: .inline) { _ in } : nil
            current.set(nil)
            current ~> sessions.open()
            current ~> nil
            current.set(sessions.open())
            current.modify { $0 = nil }
            current.set(sessions.open())
            current.binding.wrappedValue = nil
            withExtendedLifetime(observation) {}
        }
    }

    @Test func `it may be a part, an element, or captured by a function`() {
        closesAll {
            let user = MonitoredState((name: "ada", session: Session?.none), key: "user")
            user.modify { $0.session = sessions.open() }
            user.modify { $0.session = nil }
            let all = State([Session](), key: "all")
            all.set([sessions.open(), sessions.open()])
            all.modify { _ = $0.removeLast() }
            all.modify { $0.removeAll() }
            let named = State<[String: [Session]]>([:], key: "named")
            named.set(["a": [sessions.open()]])
            named.modify { $0["a"] = nil }
            struct Call: Sendable {
                var body: (@Sendable () -> Void)?
            }
            let call = State(Call(), key: "call")
            call.modify {
                $0.body = { [session = sessions.open()] in withExtendedLifetime(session) {} }
            }
            call.modify { $0.body = nil }
            let any = State<any Sendable>(0, key: "any")
            any.set(sessions.open())
            any.set(0)
        }
    }

    @Test func `it may be in a value that a container of its own refuses`() throws {
        try closesAll {
            let user = try ValidatedState(User(), key: "user")
            #expect(throws: StateError.self) {
                try user.set(User(session: sessions.open(), isRefused: true))
            }
            #expect(throws: Refused.self) {
                try user.modify {
                    $0.session = sessions.open()
                    throw Refused()
                }
            }
            try user.modify { $0.session = sessions.open() }
            var draft = Draft(of: user)
            draft.session = nil
            try draft.commit()
            draft.revert()
            try user.modify { $0.session = sessions.open() }
            try user.scope(\.session).set(nil)
            try user.scope(\.session).modify { $0 = sessions.open() }
            try withTransaction { $0[user].session = nil }
        }
    }

    @Test func `it may use the container that held it`() {
        final class Owner: Sendable {
            let number: State<[Owner]>?
            init(_ number: State<[Owner]>?) { self.number = number }
            deinit { number?.modify { $0.removeAll() } }
        }
        let owners = State<[Owner]>([], key: "owners")
        owners.set([Owner(owners), Owner(nil)])
        owners.set([Owner(owners)])
        owners.modify { $0 = [] }
        #expect(owners.value.isEmpty)
    }

    @Test func `it may be captured by an observation, or by the hook of the trace`() {
        closesAll {
            let counter = MonitoredState(0, key: "counter")
            let observations = State<[StateObservation]>([], key: "observations")
            func observe() -> StateObservation {
                let session = sessions.open()
                return counter.observe(on: .inline) { _ in withExtendedLifetime(session) {} }
            }
            observations.set([observe(), observe()])
            observations.modify { _ = $0.removeLast() }
            observations.set([])
            observe().cancel()
            StateTrace.hook = { [session = sessions.open()] _ in withExtendedLifetime(session) {} }
            StateTrace.hook = nil
        }
    }

    @Test func `a stored object may change a container when it goes`() throws {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        defer { keyspace.close() }
        try closesAll {
            let current = try PersistentState(Session?.none, key: "current", in: keyspace)
            let other = try PersistentState(Session?.none, key: "other", in: keyspace)
            for durability in [Durability.synced, .memory] {
                try current.modify(durability: durability) { $0 = sessions.open() }
                try current.set(nil, durability: durability)
            }
            try withTransaction { tx in
                tx[current] = sessions.open()
                tx[other] = sessions.open()
            }
            try keyspace.apply([.delete("current"), .delete("other")])
        }
    }

    @Test func `a stored object may change its own key when it goes`() throws {
        final class Last: Codable, Sendable {
            static let keyspace = StateStorage.inMemory("last")
            static let count = PersistentState(0, key: "count", in: keyspace)
            static let current = PersistentState(Last?.none, key: "current", in: keyspace)
            init() {}
            convenience init(from decoder: any Decoder) throws {
                self.init()
                _ = try decoder.singleValueContainer().decode(String.self)
            }
            func encode(to encoder: any Encoder) throws {
                var single = encoder.singleValueContainer()
                try single.encode("last")
            }
            deinit {
                _ = try? Last.count.modify { $0 += 1 }
                _ = Last.current.value
            }
        }
        try Last.current.set(Last())
        try Last.current.set(nil)
        #expect(throws: Refused.self) {
            try Last.current.modify {
                $0 = Last()
                throw Refused()
            }
        }
        #expect(eventually { Last.count.value >= 2 })
    }

    @Test func `a row of a query may use the query when it goes`() throws {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        defer { keyspace.close() }
        final class Row: Codable, Sendable {
            static let query = State<LiveQuery<Row>?>(nil, key: "query")
            static let gone = State(0, key: "gone")
            init(from decoder: any Decoder) throws {
                _ = try decoder.singleValueContainer().decode(String.self)
            }
            func encode(to encoder: any Encoder) throws {
                var single = encoder.singleValueContainer()
                try single.encode("row")
            }
            deinit {
                _ = Row.query.value?.rows.count
                Row.gone.modify { $0 += 1 }
            }
        }
        try keyspace.apply([.set("row/a", [0x31]), .set("row/b", [0x31])])
        let query = try keyspace.query("row/", as: Row.self)
        Row.query.set(query)
        try keyspace.apply([.delete("row/a")])
        #expect(query.rows.count == 1)
        try keyspace.apply([.set("row/b", [0x32])])
        #expect(query.rows.count == 1)
        #expect(eventually { Row.gone.value == 2 })
        Row.query.set(nil)
    }

    @Test func `a value that a slow stream skips may change the container of the stream`() async {
        final class Frame: Sendable {
            static let frames = MonitoredState<Frame?>(nil, key: "frames")
            static let gone = State(0, key: "gone")
            deinit {
                Frame.gone.modify { $0 += 1 }
                if Frame.gone.value < 3 { Frame.frames.set(nil) }
            }
        }
        var values = Frame.frames.values.makeAsyncIterator()
        for _ in 0..<5 { Frame.frames.set(Frame()) }
        #expect(await values.next() != nil)
        #expect(Frame.gone.value >= 3)
    }

    @Test func `a value without objects changes in place`() {
        struct App: Sendable {
            var names = ["a": [1, 2, 3]]
            var log: [String] = []
            var last: (Int, String?) = (0, nil)
        }
        let app = State(App(), key: "app")
        app.modify { $0.log.reserveCapacity(10_000) }
        let place = app.modify { $0.log.withUnsafeBufferPointer { $0.baseAddress } }
        app.modify { $0.log.append("b") }
        #expect(app.modify { $0.log.withUnsafeBufferPointer { $0.baseAddress } } == place)
    }

    @Test func `a function in a struct stays as it is, however often the value is changed`() {
        struct Handler: Sendable {
            var count = 0
            let handle: @Sendable () -> Int
        }
        let handler = State(Handler { 5 }, key: "handler")
        for _ in 0..<100_000 { handler.modify { $0.count += 1 } }
        #expect(handler.value.handle() == 5 && handler.value.count == 100_000)
    }

    @Test func `a container of a bare function ends the process by name`() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            _ = State<(Int, (@Sendable () -> Void)?)>((0, nil), key: "handler")
        }
        #expect(result.map { said($0, "state 'handler' is a function", "struct") } == true)
    }
}
