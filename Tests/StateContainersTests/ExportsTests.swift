import StateContainers
import Testing

struct ExportsTests {
    @Test func `StateContainers brings the words of the engine with it`() throws {
        #expect(try Key("audio/volume").description == "audio/volume")
    }
}
