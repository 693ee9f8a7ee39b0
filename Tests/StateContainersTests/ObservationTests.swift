import Observation
import StateContainers
import StateTestSupport
import Testing

extension String {
    fileprivate var tail: String {
        get { String(dropFirst()) }
        set { self = String(prefix(1)) + newValue }
    }
}

struct ObservationTests {
    private struct Profile: Codable, Hashable, Sendable {
        var name = "Ada"
        var age = 0
    }

    /// Whether a change of what `read` reads is reported while `change` runs.
    private func isReported(_ read: () -> Void, _ change: () throws -> Void) rethrows -> Bool {
        let isReported = Observed(false)
        withObservationTracking(read) { isReported.update { $0 = true } }
        try change()
        return isReported.current
    }

    @Test func `a view of one property is told of that property only`() {
        let state = MonitoredState(Profile(), key: "profile")
        #expect(
            !isReported {
                _ = state.observed.name
            } _: {
                state ~> { $0.age = 1 }
            }
        )
        #expect(
            isReported {
                _ = state.observed.name
            } _: {
                state ~> { $0.name = "Grace" }
            }
        )
        #expect(
            isReported {
                _ = state.observed.value
            } _: {
                state ~> { $0.age = 2 }
            }
        )
        #expect(
            !isReported {
                _ = state.observed.age
            } _: {
                state ~> { $0.age = 2 }
            }
        )
    }

    @Test func `what is reported can be read already`() {
        let state = MonitoredState(Profile(), key: "profile")
        let seen = Observed<[Int]>([])
        withObservationTracking {
            _ = state.observed.age
        } onChange: {
            seen.update { $0.append(state.value.age) }
        }
        state ~> { $0.age = 4 }
        #expect(seen.current == [4])
    }

    @Test func `a part of a container is observed by its value`() {
        let state = MonitoredState(Profile(), key: "profile")
        let age = state.scope(\.age)
        #expect(
            isReported {
                _ = age.value
            } _: {
                state ~> { $0.age = 1 }
            }
        )
        #expect(
            !isReported {
                _ = age.value
            } _: {
                state ~> { $0.name = "Grace" }
            }
        )
    }

    @Test func `the rows, the count and the sum of a query are observed`() throws {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        let query = try keyspace.query("n/", as: Int.self)
        for read in [
            { _ = query.rows.count }, { _ = query.count }, { _ = query.sum(of: \.self) },
            { _ = query.unreadable.count },
        ] {
            let told = Observed(false)
            withObservationTracking(read) { told.update { $0 = true } }
            try keyspace.apply([.set("n/1", Array("\(Int.random(in: 0...1_000_000))".utf8))])
            #expect(told.wait { $0 })
        }
    }

    @Test func `a binding writes one part, and keeps what refused it`() throws {
        struct Account: Validatable, Codable, Hashable, Sendable {
            @Min(0) var age = 3
            var name = "Ada"
        }
        let state = try ValidatedState(Account(), key: "account")
        let age = state.binding.age
        age.wrappedValue = 5
        #expect(state.value.age == 5 && age.refusal == nil)
        age.wrappedValue = -1
        #expect(state.value.age == 5 && age.refusal?.code == .rejected)
        state.binding(\.name).wrappedValue = "Grace"
        #expect(state.value.name == "Grace" && state.value.age == 5)
        age.wrappedValue = 6
        #expect(age.refusal == nil)
    }

    @Test func `a property of a key is one value, wherever the context stores it`() throws {
        struct Player: Sendable {
            @StateValue("audio/volume") var volume = 5
            @StateReader("audio/volume") var shown = 5
        }
        let (first, other) = (StateStorage.inMemory("a"), StateStorage.inMemory("b"))
        let player = StateStorage.with(first) { Player() }
        let stranger = StateStorage.with(other) { Player() }
        #expect(
            try isReported {
                _ = player.shown
            } _: {
                try player.$volume ~> 7
            }
        )
        #expect(player.shown == 7 && stranger.shown == 5)
        #expect(StateStorage.with(first) { Player() }.volume == 7)
    }

    @Test func `a container that is read without observed is tracked, and so is a part of it`() {
        let state = MonitoredState(Profile(), key: "profile")
        let reads: [@Sendable () -> Void] = [
            { _ = state.value.name }, { state.withValue { _ = $0.name } },
            { _ = state.scope(\.name).value }, { _ = state.scope(\.name).scope(\.tail).value },
            { state.scope(\.name).withValue { _ = $0 } },
            { _ = state.scope(\.name).observed.value },
            { _ = state.binding(\.name).wrappedValue },
        ]
        for (number, read) in reads.enumerated() {
            #expect(isReported(read) { state ~> { $0.name += "a" } }, "read \(number)")
        }
        for read in reads.dropFirst(2) {
            #expect(!isReported(read) { state ~> { $0.age += 1 } })
        }
        #expect(state.scope(\.name).value == "Ada" + String(repeating: "a", count: reads.count))
    }

    @Test func `a part that is read again and again is tracked once`() {
        let state = MonitoredState(Profile(), key: "profile")
        for _ in 0..<1_000 {
            _ = isReported {
                _ = state.scope(\.name).value
            } _: {
            }
        }
        #expect(
            isReported {
                _ = state.scope(\.age).value
            } _: {
                state ~> { $0.age = 9 }
            }
        )
        #expect(
            !isReported {
                _ = state.scope(\.age).value
            } _: {
                state ~> { $0.name = "b" }
            }
        )
    }

    @Test func `a stored container that is read is tracked`() throws {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        defer { keyspace.close() }
        let state = try PersistentState(Profile(), key: "profile", in: keyspace)
        #expect(
            try isReported {
                _ = state.value
            } _: {
                try state ~> { $0.age = 1 }
            }
        )
        #expect(
            try !isReported {
                _ = state.scope(\.name).value
            } _: {
                try state ~> { $0.age = 2 }
            }
        )
    }
}
