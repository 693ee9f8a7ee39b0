import StateContainers
import Testing

struct StateTests {
    @Test func `a change is visible when modify returns`() {
        let state = State(1, key: "a")
        let first = state.modify(5)
        #expect(state.value == 5)
        let result = state.modify { value in
            value += 1
            return "done"
        }
        #expect(result == "done")
        #expect(state.versioned.value == 6)
        #expect(state.versioned.revision.isNewer(than: first))
        state ~> 7
        state ~> { $0 += 1 }
        state ~> (3 + 4)
        #expect(state.value == 7)
    }

    @Test func `an error thrown in a body changes nothing`() {
        struct Refusal: Error {}
        let state = State([1, 2], key: "a")
        let before = state.versioned
        #expect(throws: Refusal.self) {
            try state.modify { value in
                value.append(3)
                throw Refusal()
            }
        }
        #expect(state.versioned.value == [1, 2])
        #expect(state.versioned.revision == before.revision)
    }
}
