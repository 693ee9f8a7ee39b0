import StateContainers
import StateTestSupport
import Testing

private struct Address: Validatable, Codable, Hashable, Sendable {
    @Required var city = "Ulm"
    @Matches("^[0-9]{5}$") var code = "89073"
}

private struct Profile: Validatable, Codable, Hashable, Sendable {
    @Required @Email var mail = "ada@example.org"
    @Min(0) @Max(150) var age: Int? = nil
    @Min(0.0) var balance = 0.0
    @Required var tags = ["a"]
    @Required @Matches("^[a-z]+$") @Max("m") var name: String? = "ada"
    var home = Address()
    var others: [Address] = []
    var named: [String: Address] = [:]
    var previous: Address?
    @Required var offices: [Address] = [Address()]
}

/// Has a rule over two of its fields.
private struct Span: Validatable, Codable, Hashable, Sendable {
    @Min(0) var start = 0
    var end = 10

    func validate() -> [ValidationIssue] {
        let message = "\(end) is before \(start)"
        return wrapperIssues()
            + (end < start ? [ValidationIssue(path: "end", rule: "order", message: message)] : [])
    }
}

private class Person: Validatable {
    @Required var name = ""
    required init() {}
}

private final class Pupil: Person {
    @Max(13) var grade = 14
}

@Suite struct ValidationTests {
    private let codec = StateCodec<Profile>.standard

    @Test func `a good value has no issues`() {
        #expect(Profile().validate() == [])
    }

    @Test func `each wrapper names its field, its rule and the value`() {
        var profile = Profile()
        profile.mail = "ada"
        profile.age = 151
        profile.balance = -0.5
        profile.tags = []
        profile.name = "Zoe9"
        #expect(
            profile.validate().map { "\($0.path) | \($0.rule) | \($0.message)" } == [
                "mail | format email | 'ada' is not an e-mail address",
                "age | maximum 150 | 151 is above 150",
                "balance | minimum 0 | -0.5 is below 0",
                "tags | required | a value is required",
                "name | pattern ^[a-z]+$ | 'Zoe9' does not match ^[a-z]+$",
            ]
        )
    }

    @Test func `one property may break several rules`() {
        var profile = Profile()
        profile.mail = ""
        #expect(profile.validate().map(\.rule) == ["required", "format email"])
        profile = Profile()
        profile.name = "zoe9"
        #expect(profile.validate().map(\.rule) == ["pattern ^[a-z]+$", "maximum m"])
        profile.name = nil
        #expect(profile.validate().map(\.rule) == ["required"])
    }

    @Test func `values in a value are judged, with their path`() {
        let bad = Address(city: "")
        var profile = Profile()
        profile.home.code = "x"
        profile.others = [Address(), bad]
        profile.named = ["b": bad, "a": Address()]
        profile.previous = bad
        profile.offices = [bad]
        #expect(
            profile.validate().map(\.path) == [
                "home/code", "others/1/city", "named/b/city", "previous/city", "offices/0/city",
            ]
        )
    }

    @Test func `wrappers are stored as the bare value, and a nil as no member`() throws {
        let text = try #require(try StateCodec<Address>.standard.encode(Address()))
        #expect(String(decoding: text, as: UTF8.self) == #"{"city":"Ulm","code":"89073"}"#)
        let profile = String(decoding: try #require(try codec.encode(Profile())), as: UTF8.self)
        #expect(!profile.contains("age"))
        #expect(profile.contains(#""mail":"ada@example.org""#))
    }

    @Test func `a decoded value has the rules of its type, and equals what was stored`() throws {
        var profile = Profile()
        profile.mail = "ada"
        profile.age = -1
        profile.home.code = "x"
        profile.others = [Address(city: "")]
        let decoded = try codec.decode(codec.encode(profile))
        #expect(decoded == profile)
        #expect(decoded.validate() == profile.validate())
        #expect(decoded.validate().count == 4)
    }

    @Test func `a wrapped Optional that is not there is nil`() throws {
        let text = try #require(try codec.encode(Profile()))
        #expect(try codec.decode(text).age == nil)
    }

    @Test func `a rule of one's own adds to those of the wrappers`() {
        #expect(Span(start: -1, end: -2).validate().map(\.path) == ["start", "end"])
        #expect(Span().validate() == [])
    }

    @Test func `a class has the rules of its superclass too`() {
        #expect(Set(Pupil().validate().map(\.path)) == ["name", "grade"])
    }

    @Test func `a container refuses a bad value, and says what is wrong`() throws {
        let state = try ValidatedState(Span(), key: "span")
        let error = #expect(throws: StateError.self) { try state.modify { $0.end = -1 } }
        #expect(error?.code == .rejected)
        #expect(error?.issues.map(\.path) == ["end"])
        #expect(state.value == Span())
        #expect(throws: StateError.self) { try ValidatedState(Span(start: -1, end: 0), key: "bad") }
    }

    @Test func `a bad value never reaches the store, and a stored one is found when it is read`()
        throws
    {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        defer { keyspace.close() }
        let state = try PersistentState(Span(), key: "span", in: keyspace)
        let error = #expect(throws: StateError.self) { try state.modify { $0.start = -5 } }
        #expect(error?.code == .rejected)
        #expect(keyspace.entry(for: "span") == nil)
        try keyspace.apply([.set("other", Array(#"{"start":-5,"end":0}"#.utf8))])
        let found = #expect(throws: StateError.self) {
            try PersistentState(Span(), key: "other", in: keyspace)
        }
        #expect(found?.code == .rejected)
        #expect(found?.issues.map(\.path) == ["start"])
    }
}

@Suite struct DraftTests {
    @Test func `a draft holds the bad value and says its issues field by field`() throws {
        let state = try ValidatedState(Profile(), key: "profile")
        var draft = Draft(of: state)
        draft.mail = "ada"
        draft.home.city = ""
        draft.home.code = ""
        #expect(!draft.isValid)
        #expect(draft.issues(at: "mail").map(\.message) == ["'ada' is not an e-mail address"])
        #expect(draft.issues(at: "home").map(\.path) == ["home/city", "home/code"])
        #expect(draft.issues(at: "home/city").count == 1)
        #expect(draft.issues(at: "ho") == [])
        #expect(draft.issues(at: "").count == 3)
        let error = #expect(throws: StateError.self) { try draft.commit() }
        #expect(error?.issues.count == 3)
        #expect(state.value == Profile())
    }

    @Test func `commit sets the container, again and again`() throws {
        let state = try ValidatedState(Span(), key: "span")
        var draft = Draft(of: state)
        for end in 11...13 {
            draft.end = end
            #expect(try draft.commit() == state.versioned.revision)
            #expect(state.value.end == end)
        }
    }

    @Test func `commit conflicts with a change that came between, until the draft is rebased`()
        throws
    {
        let state = try ValidatedState(Span(), key: "span")
        var draft = Draft(of: state)
        draft.end = 20
        try state.modify { $0.start = 5 }
        let error = #expect(throws: StateError.self) { try draft.commit() }
        #expect(error?.code == .conflict)
        #expect(state.value == Span(start: 5, end: 10))
        #expect(draft.value.end == 20)
        #expect(draft.rebase() == Span(start: 5, end: 10))
        try draft.commit()
        #expect(state.value == Span(start: 0, end: 20))
    }

    @Test func `a new item is drafted before any container has it, and stored by its commit`()
        throws
    {
        let stored = State<[Profile]>([], key: "stored")
        var draft = Draft(new: Profile(mail: "")) { profile in
            stored.modify { $0.append(profile) }
        }
        #expect(draft.revision == nil)
        #expect(draft.issues(at: "mail").map(\.rule) == ["required", "format email"])
        let refusal = #expect(throws: StateError.self) { try draft.commit() }
        #expect(refusal?.code == .rejected && stored.value.isEmpty)
        draft.mail = "ada@example.org"
        try draft.commit()
        #expect(stored.value == [draft.value])
        draft.revert()
        #expect(draft.mail == "")
    }

    @Test func `a new item whose store refuses it stays in the draft`() {
        var draft = Draft(new: Span()) { _ throws(StateError) in
            throw StateError(.noSpace, "the disk is full")
        }
        draft.end = 7
        let error = #expect(throws: StateError.self) { try draft.commit() }
        #expect(error?.code == .noSpace && draft.end == 7)
    }

    @Test func `a new row of a query is drafted, and never replaces another`() async throws {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        let rows = try await keyspace.query(StateQuery("profile/", as: Profile.self))
        var draft = Draft(new: Profile(), in: rows, id: "profile/ada")
        draft.balance = 5
        try await draft.commit()
        #expect(rows.rows.map(\.value.balance) == [5])
        var second = Draft(new: Profile(), in: rows, id: "profile/ada")
        do {
            try await second.commit()
            Issue.record("the row was replaced")
        } catch {
            #expect(error.code == .conflict)
        }
        #expect(rows.rows.map(\.value.balance) == [5])
    }

    @Test func `a commit in a task leaves the thread of its task to others`() async throws {
        let backing = HeldBacking(isHeld: false)
        let keyspace = try LocalKeyspace(backing: backing)
        let state = try await PersistentState(Span(), key: "span", in: keyspace)
        backing.hold()
        let thread = ThreadExecutor()
        let editor = Task(executorPreference: thread) { () -> Revision? in
            var draft = Draft(of: state)
            draft.end = 20
            return try await draft.commit()
        }
        // Only if the one thread is free while the commit waits.
        let release = Task(executorPreference: thread) { backing.release(1) }
        await release.value
        #expect(try await editor.value == state.versioned.revision)
        #expect(state.value.end == 20)
    }

    @Test func `a commit in a task conflicts with a change that came between`() async throws {
        let state = try ValidatedState(Span(), key: "span")
        var draft = Draft(of: state.scope(\.self))
        try state.modify { $0.start = 5 }
        do {
            try await draft.commit()
            Issue.record("the change that came between was replaced")
        } catch {
            #expect(error.code == .conflict)
        }
        draft.rebase()
        #expect(try await draft.commit() != nil)
        #expect(state.value == Span())
    }

    @Test func `a form may begin with an invalid value`() throws {
        let state = ValidatedState(startingWith: Profile(mail: ""), key: "profile")
        #expect(state.value.validate().map(\.rule) == ["required", "format email"])
        #expect(throws: StateError.self) { try state.modify { $0.age = 7 } }
        try state.modify { $0.mail = "ada@example.org" }
        #expect(state.value.age == nil)
    }

    @Test func `revert begins again`() throws {
        let state = try ValidatedState(Span(), key: "span")
        var draft = Draft(of: state)
        draft.end = 20
        try state.modify { $0.start = 5 }
        draft.revert()
        #expect(draft.value == Span(start: 5, end: 10))
        draft.end = 6
        try draft.commit()
        #expect(state.value == Span(start: 5, end: 6))
    }
}

/// Has rules, but nobody was told.
private struct Unchecked: Codable, Hashable, Sendable {
    @Min(0) @Max(150) var age = 0
}

private struct Wrapping: Codable, Hashable, Sendable {
    var people: [String: [Unchecked?]] = [:]
}

/// Is not Validatable itself, but parts of it are.
private struct Form: Codable, Hashable, Sendable {
    enum Payment: Codable, Hashable, Sendable {
        case none
        case to(Address, note: String)
    }

    var home = Address()
    var payment = Payment.none
    var all: Set<Address> = []
    var pair: Pair? = nil

    struct Pair: Codable, Hashable, Sendable {
        var first = Address()
    }
}

/// No rule is silently off.
@Suite struct UncheckedRuleTests {
    private let keyspace: LocalKeyspace

    init() throws { keyspace = try LocalKeyspace(backing: MemoryBacking()) }

    @Test func `a rule in a type that is not Validatable is refused by name, wherever it is`()
        throws
    {
        let errors = [
            #expect(throws: StateError.self) {
                try PersistentState(Unchecked(), key: "person", in: keyspace)
            },
            #expect(throws: StateError.self) {
                try PersistentState(Wrapping(), key: "person", in: keyspace)
            },
        ]
        let query = #expect(throws: StateError.self) { try keyspace.query("p", as: Unchecked.self) }
        #expect(query?.message.contains("'age' of Unchecked") == true)
        for error in errors {
            #expect(error?.code == .invalidRequest)
            let message =
                "key 'person': 'age' of Unchecked has a rule, '@Min', which nobody checks: "
                + "declare Unchecked as Validatable"
            #expect(error?.message == message)
        }
        let person = PersistentState(Unchecked(), key: "person", in: StateStorage.inMemory())
        #expect(throws: StateError.self) { try person.modify { $0.age = 1_000 } }
        #expect(person.value.age == 0)
    }

    @Test func `a container in memory of such a type ends the process by name`() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            _ = MonitoredState(Wrapping(), key: "people")
        }
        #expect(result.map { said($0, "state 'people'", "'age' of Unchecked", "@Min") } == true)
    }

    @Test func `a part that is Validatable is checked in a type that is not`() throws {
        let form = try PersistentState(Form(), key: "form", in: keyspace)
        let bad = Address(city: "")
        let changes: [(path: String, change: @Sendable (inout Form) -> Void)] = [
            ("home/city", { $0.home = bad }),
            ("payment/to/0/city", { $0.payment = .to(bad, note: "") }),
            ("all/0/city", { $0.all = [bad] }),
            ("pair/first/city", { $0.pair = Form.Pair(first: bad) }),
        ]
        for (path, change) in changes {
            let error = #expect(throws: StateError.self) { try form.modify(change) }
            #expect(error?.issues.map(\.path) == [path])
        }
        #expect(form.value == Form())
    }
}
