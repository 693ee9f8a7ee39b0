import StateServer
import Testing

/// Log lines that clients can cause again and again.
struct RepeatedLinesTests {
    private final class Lines {
        private(set) var messages: [LogMessage] = []
        let repeated = RepeatedLines()

        var all: [String] { messages.map { "<\($0.level.rawValue)> \($0.text)" } }

        func deny(_ uid: UInt32, rule: Int = 0, at now: Int64) {
            write(.init(subject: .denial(rule: rule), uid: uid), "rule \(rule)", at: now)
        }

        func read(_ uid: UInt32, _ key: String, at now: Int64) {
            let subject = RepeatedLines.Kind.Subject.read(keys: Array(key.utf8), command: "GET")
            write(.init(subject: subject, uid: uid), "key \(key)", at: now)
        }

        private func write(_ kind: RepeatedLines.Kind, _ text: String, at now: Int64) {
            let uid = kind.uid ?? 0
            repeated.write(kind, .notice, at: now) {
                messages.append($0)
            } _: {
                ("uid \(uid), \(text)", [.uid(uid), .pid(1)])
            }
        }

        func pass(to now: Int64) {
            repeated.endWindows(at: now) { messages.append($0) }
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

    @Test func `many kinds of one user are kept apart, the others are one for each event`() {
        let lines = Lines()
        for key in 0..<1_000 { lines.read(7, "k\(key)", at: 0) }
        #expect(lines.all.count == 257)
        for rule in 0..<3 { lines.deny(7, rule: rule, at: 1) }
        #expect(lines.all.count == 258)
        #expect(lines.messages.last?.event == .accessDenied)
        lines.pass(to: 60_001)
        let rest = lines.messages.suffix(2)
        #expect(
            rest.map(\.text) == [
                "743 more in a minute like this, some of other kinds: uid 7, key k256",
                "2 more in a minute like this, some of other kinds: uid 7, rule 0",
            ]
        )
        #expect(rest.map(\.event) == [.auditRead, .accessDenied])
        // They were not all of one key and process.
        #expect(rest.allSatisfy { $0.fields.map(\.name) == ["STATED_UID"] })
    }

    @Test func `whatever one user does, the lines of others are as if he did nothing`() {
        let lines = Lines()
        for key in 0..<100_000 { lines.read(7, "k\(key)", at: 0) }
        let count = lines.all.count
        lines.read(8, "k", at: 1)
        lines.read(8, "k", at: 1)
        lines.deny(8, at: 1)
        #expect(lines.all.suffix(2) == ["<5> uid 8, key k", "<5> uid 8, rule 0"])
        #expect(lines.all.count == count + 2)
        lines.pass(to: 60_001)
        #expect(lines.all.last == "<5> 1 more in a minute like this: uid 8, key k")
    }

    @Test func `as many kinds as there may be are kept apart, then users, then events`() {
        let lines = Lines()
        for uid in 0..<10_000 {
            for rule in 0..<2 { lines.deny(UInt32(uid), rule: rule, at: 0) }
        }
        // 2,048 users with two kinds, 4,096 with one, and one for the others.
        #expect(lines.all.count == 4_096 + 4_096 + 1)
        lines.read(9_999, "k", at: 1)
        lines.read(9_998, "k", at: 1)
        #expect(lines.messages.last?.event == .auditRead)
        #expect(lines.all.count == 4_096 + 4_096 + 2)
        lines.pass(to: 60_001)
        #expect(
            lines.all.suffix(3) == [
                "<5> 1 more in a minute like this, some of other kinds: uid 6143, rule 0",
                "<5> 7711 more in a minute like this, some of other users: uid 6144, rule 0",
                "<5> 1 more in a minute like this, some of other users: uid 9999, key k",
            ]
        )
        #expect(lines.messages.suffix(2).allSatisfy { $0.fields.isEmpty })
        // Nothing is left of them.
        lines.deny(9_999, at: 60_002)
        lines.read(9_999, "k", at: 60_002)
        #expect(lines.all.suffix(2) == ["<5> uid 9999, rule 0", "<5> uid 9999, key k"])
    }
}
