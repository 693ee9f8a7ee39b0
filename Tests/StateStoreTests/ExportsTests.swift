import StateStore
import Testing

struct ExportsTests {
    @Test func `StateStore brings the words of the engine with it`() {
        #expect(Key("audio/volume") < Key("budget/a"))
    }
}
