import StateServer
import Testing

/// Log lines that clients can cause again and again.
struct RepeatedLinesTests {
    private final class Lines {
        var all: [String] = []
        let repeated = RepeatedLines()

        func deny(_ uid: UInt32, rule: Int = 0, at now: Int64) {
            repeated.write(.init(subject: .denial(rule: rule), uid: uid), .notice, at: now) {
                all.append("<\($0.level.rawValue)> \($0.text)")
            } _: {
                ("uid \(uid), rule \(rule)", [])
            }
        }

        func pass(to now: Int64) {
            repeated.endWindows(at: now) { all.append("<\($0.level.rawValue)> \($0.text)") }
        }
    }

    @Test func `of each kind one line a minute is logged, then how many were left out`() {
        let lines = Lines()
        for now in 0..<1_000 { lines.deny(7, at: Int64(now)) }
        lines.deny(8, at: 500)
        lines.deny(7, rule: 1, at: 1_000)
        #expect(lines.all == ["<5> uid 7, rule 0", "<5> uid 8, rule 0", "<5> uid 7, rule 1"])
        #expect(lines.repeated.dueAt == 60_000)
        lines.pass(to: 59_999)
        #expect(lines.all.count == 3)
        lines.pass(to: 60_000)
        #expect(lines.all.last == "<5> 999 more in a minute like this: uid 7, rule 0")
        #expect(lines.repeated.dueAt == nil)
        lines.deny(7, at: 60_001)
        lines.deny(7, at: 60_002)
        lines.pass(to: 200_000)
        #expect(
            lines.all.suffix(2) == [
                "<5> uid 7, rule 0", "<5> 1 more in a minute like this: uid 7, rule 0",
            ]
        )
    }

    @Test func `as many kinds as there may be are told apart, all others are one`() {
        let lines = Lines()
        for uid in 0..<10_000 { lines.deny(UInt32(uid), at: 0) }
        #expect(lines.all.count == 4_097)
        lines.pass(to: 60_000)
        #expect(lines.all.last == "<5> 5903 more in a minute like this: uid 4096, rule 0")
        // Nothing is left of them.
        lines.deny(9_999, at: 60_001)
        #expect(lines.all.last == "<5> uid 9999, rule 0")
    }
}
