import CLinux
import StateStore
import StateTestSupport
import StateTesting
import Testing

/// Many effects, one after the other and at once.
struct EffectLoadTests {
    /// Counts down by feedback of its own.
    private struct Chain: Reducer {
        func reduce(
            _ message: Message<Int, Int>,
            into state: inout Int
        ) -> Effect<Int, Never> {
            switch message {
            case .input(let count), .feedback(let count):
                state += 1
                return count > 0 ? .send(count - 1) : .none
            }
        }
    }

    @Test func `a store forgets an effect that has ended, however many there were`() async throws {
        let store = Store(0, reducer: Chain())
        try await store.send(1_000).finished()
        let before = clinux_heap_byte_count()
        try await store.send(60_000).finished()
        #expect(store.state == 61_002)
        // 120 bytes for each were lost when a function in a lock was wrapped at each feedback.
        #expect(eventually { clinux_heap_byte_count() < before + 4 << 20 })
    }

    @Test func `feedback of 60,000 effects in a row leaves a store that can be released`()
        async throws
    {
        weak var released: Store<Chain>?
        do {
            let store = Store(0, reducer: Chain())
            released = store
            try await store.send(60_000).finished()
        }
        #expect(eventually { released == nil })
    }

    @Test func `effects merged and concatenated in a loop of 10,000 run in their order`()
        async throws
    {
        let reducer = Reduce<[Int], Bool, Int, String> { state, message in
            switch message {
            case .feedback(let number):
                state.append(number)
                return .none
            case .input(let merges):
                var effect = Effect<Int, String>.none
                for number in 0..<10_000 {
                    effect =
                        merges
                        ? .merge(effect, .send(number)) : .concatenate(effect, .send(number))
                }
                return effect.map(feedback: { $0 }, output: { $0 })
            }
        }
        for merges in [true, false] {
            let store = Store([], reducer: reducer)
            try await store.send(merges).finished()
            #expect(store.state == Array(0..<10_000))
        }
    }

    @Test func `effects that are nested too deep end the process with a message`() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            var effect = Effect<Int, String>.send(0)
            for number in 0..<2_000 {
                effect = .concatenate(.merge(effect, .send(number)), .send(0))
            }
            print(effect)
        }
        let said = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(said.contains("nested deeper than 1000"))
    }
}
