import CLinux
import StateSystem
import Testing

struct PatienceTests {
    private let canPay = clinux_processor_count() > 1

    @Test func `staying awake ends after some late events, and begins again after some early ones`()
    {
        var patience = Patience(nanoseconds: 50_000)
        #expect(patience.pays == canPay)
        for _ in 0..<8 { patience.note(nanoseconds: 3_000_000) }
        #expect(!patience.pays)
        for _ in 0..<32 { patience.note(nanoseconds: 30_000) }
        #expect(patience.pays == canPay)
    }

    @Test func `one long pause among early events ends nothing`() {
        var patience = Patience(nanoseconds: 50_000)
        for _ in 0..<8 { patience.note(nanoseconds: 100) }
        patience.note(nanoseconds: 1_000_000_000)
        #expect(patience.pays == canPay)
    }
}
