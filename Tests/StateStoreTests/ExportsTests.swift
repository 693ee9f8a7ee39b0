import StateStore
import Testing

struct ExportsTests {
    @Test func `StateStore brings the words of the engine with it`() throws {
        #expect(try Key("audio/volume").description == "audio/volume")
    }
}
