import StateContainers
import Testing

struct ExportsTests {
    @Test func `StateContainers brings the words of the engine with it`() {
        #expect(Key("audio/volume") < Key("budget/a"))
    }
}
