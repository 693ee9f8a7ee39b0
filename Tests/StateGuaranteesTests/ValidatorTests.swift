import StateGuarantees
import Testing

/// The validators on sessions written by hand: those that keep every guarantee, and those that break exactly one.
struct ValidatorTests {
    @Test(arguments: SessionCase.good)
    func `a session that keeps the guarantees is accepted`(session: SessionCase) {
        let check = SessionCheck(session.session, against: SessionCase.record)
        #expect(check.violations().isEmpty)
    }

    @Test(arguments: SessionCase.brokenCases)
    func `a session that breaks one guarantee is refused for that one`(session: SessionCase) {
        let violations = SessionCheck(session.session, against: SessionCase.record).violations()
        let broken = Set(violations.map(\.guarantee))
        #expect(broken == Set([session.broken].compactMap(\.self)), "\(violations)")
    }

    @Test(arguments: Guarantee.allCases)
    func `each guarantee is broken by some session`(guarantee: Guarantee) {
        #expect(SessionCase.brokenCases.contains { $0.broken == guarantee })
    }

    @Test func `what breaks a guarantee is told with the watcher and the commit`() throws {
        var session = SessionCase.brokenCases[0].session
        (session.watcher, session.number) = (7, 3)
        let check = SessionCheck(session, against: SessionCase.record)
        let violation = try #require(check.violations().first)
        #expect("\(violation)" == "ordered: watcher 7, session 3, revision 11: it came after 12")
    }
}
