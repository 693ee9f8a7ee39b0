import StateClient
import Testing

struct ExportsTests {
    @Test func `StateClient brings the operators and errors of containers with it`() {
        let state = State(0, key: "audio/volume")
        state ~> { $0 += 1 }
        #expect(state.value == 1)
        #expect(throws: StateError.self) {
            try RemoteState(0, key: "a", in: RemoteKeyspace(socket: "/none"))
        }
    }
}
