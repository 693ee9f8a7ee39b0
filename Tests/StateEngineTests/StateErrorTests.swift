import StateEngine
import Testing

@Suite struct StateErrorTests {
    @Test func `an error reads as on the wire`() {
        #expect(
            StateError(.conflict, "key 'a' is absent").description == "CONFLICT key 'a' is absent"
        )
    }

    @Test(
        arguments: [
            (Array("audio/volume".utf8), "'audio/volume'"),
            ([], "''"),
            (Array("größe".utf8), "'größe'"),
            (Array("a\r\nERR b\u{0}".utf8), "'a\\x0D\\x0AERR b\\x00'"),
            (Array("\u{1B}[2J\u{7F}".utf8), "'\\x1B[2J\\x7F'"),
            ([0x61, 0xFF, 0xC3, 0x62], "'a\\xFF\\xC3b'"),
            ([0xED, 0xA0, 0x80], "'\\xED\\xA0\\x80'"),
            (Array("\u{85}".utf8), "'\\xC2\\x85'"),
            (Array("\u{FFFD}".utf8), "'\u{FFFD}'"),
        ] as [([UInt8], String)]
    )
    func `bytes are quoted so that no message carries control bytes`(bytes: [UInt8], shown: String)
    {
        #expect(bytes.withUnsafeBytes { StateError.quoted($0) } == shown)
    }

    @Test func `64 bytes are shown whole, more are cut between characters`() {
        let whole = String(repeating: "a", count: 64)
        #expect(quoted(whole) == "'\(whole)'")
        #expect(quoted(whole + "b") == "'\(whole)…'")
        let cut = String(repeating: "a", count: 63)
        #expect(quoted(cut + "ä") == "'\(cut)…'")
    }

    private func quoted(_ text: String) -> String {
        Array(text.utf8).withUnsafeBytes { StateError.quoted($0) }
    }
}
