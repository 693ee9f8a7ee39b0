import StateEngine
import Testing

@Suite struct EpochTests {
    @Test(
        arguments: [
            (1, "0000000000000001"), (0xABC, "0000000000000abc"), (.max, "ffffffffffffffff"),
        ] as [(UInt64, String)]
    )
    func `an epoch is written in 16 digits and read back`(bits: UInt64, text: String) {
        #expect(Epoch(bits: bits).description == text)
        #expect(Epoch(text) == Epoch(bits: bits))
    }

    @Test func `fewer digits and capitals are read too`() {
        #expect(Epoch("ABC") == Epoch(bits: 0xABC))
    }

    @Test(arguments: ["", "0", "+1", "-1", "x", "1 ", "00000000000000001", "10000000000000000"])
    func `what is not 1 to 16 hexadecimal digits, or 0, is no epoch`(text: String) {
        #expect(Epoch(text) == nil)
    }

    @Test func `epochs differ`() {
        #expect(Set((0..<100).map { _ in Epoch.random() }).count == 100)
    }
}
