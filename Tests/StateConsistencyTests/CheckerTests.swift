import StateLinearizability
import StateTestSupport
import Testing

/// The checker on histories written by hand: those that some order explains, and those that none does.
struct CheckerTests {
    private static func at(
        _ invoked: Int64,
        _ ended: Int64,
        client: Int = 0,
        _ request: Operation.Request,
        _ outcome: Operation.Outcome
    ) -> Operation {
        Operation(client: client, key: "k", request, outcome, invoked: invoked, ended: ended)
    }

    /// A history and what it shows.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let operations: [Operation]

        init(_ description: String, _ operations: [Operation]) {
            testDescription = description
            self.operations = operations
        }
    }

    static let good: [Case] = [
        Case("nothing", []),
        Case(
            "one after the other",
            [
                at(0, 1, .get, .value(nil)), at(2, 3, .set("a"), .done),
                at(4, 5, .get, .value("a")), at(6, 7, .delete, .deleted(true)),
                at(8, 9, .delete, .deleted(false)), at(10, 11, .add(1), .sum(1)),
                at(12, 13, .add(5), .sum(6)), at(14, 15, .get, .value("6")),
            ]
        ),
        Case(
            "reads on either side of a write under way",
            [
                at(0, 1, .set("a"), .done), at(2, 20, client: 1, .set("b"), .done),
                at(3, 4, client: 2, .get, .value("a")), at(5, 6, client: 3, .get, .value("b")),
                at(7, 8, client: 2, .get, .value("b")),
            ]
        ),
        Case(
            "writes at once, in the order that the reads saw",
            [
                at(0, 10, client: 1, .set("a"), .done), at(0, 10, client: 2, .set("b"), .done),
                at(11, 12, .get, .value("a")),
            ]
        ),
        Case(
            "a lost write that happened, and one that did not",
            [
                at(0, 1, .set("a"), .done), at(2, .max, client: 1, .set("b"), .unknown),
                at(3, .max, client: 2, .set("c"), .unknown), at(4, 5, .get, .value("a")),
                at(6, 7, .get, .value("b")), at(8, 9, .get, .value("b")),
            ]
        ),
        Case(
            "a lost counter that counted once of two",
            [
                at(0, 1, .add(1), .sum(1)), at(2, 9, client: 1, .add(1), .unknown),
                at(2, 9, client: 2, .add(1), .unknown), at(10, 11, .add(1), .sum(3)),
            ]
        ),
        Case(
            "one of two IFREV",
            [
                at(0, 1, .setEntry("a", ifRevision: 0), .revision(7)),
                at(2, 9, client: 1, .setEntry("b", ifRevision: 7), .conflict(8)),
                at(2, 9, client: 2, .setEntry("c", ifRevision: 7), .revision(8)),
                at(10, 11, .getEntry, .entry(.init("c", at: 8))),
            ]
        ),
        Case(
            "IFREV at a revision that a SET did not tell",
            [
                at(0, 1, .set("a"), .done), at(2, 3, .getEntry, .entry(.init("a", at: 12))),
                at(4, 5, .setEntry("b", ifRevision: 12), .revision(20)),
                at(6, 7, .setEntry("b", ifRevision: 12), .conflict(20)),
            ]
        ),
        Case(
            "a value that is no number",
            [
                at(0, 1, .set("word"), .done), at(2, 3, .add(1), .notANumber),
                at(4, 5, .get, .value("word")), at(6, 7, .set("lost"), .refused("NOSPACE full")),
                at(8, 9, .get, .value("word")),
            ]
        ),
        Case(
            "two commands of one client in one write, in their order",
            [
                at(0, 9, .set("a"), .done), at(0, 9, .get, .value("a")),
                at(0, 9, .delete, .deleted(true)), at(0, 9, .get, .value(nil)),
            ]
        ),
        Case(
            "a lost delete behind a write of the same client, before a read that would rule it out",
            [
                at(1, 6, client: 1, .set("a"), .done), at(3, 4, client: 1, .delete, .unknown),
                at(6, 9, client: 2, .get, .value(nil)), at(7, 11, client: 2, .get, .value(nil)),
            ]
        ),
    ]

    @Test(arguments: good)
    func `a history that some order explains is accepted`(history: Case) {
        let verdict = LinearizabilityCheck().verdict(of: history.operations)
        #expect(verdict.fault == nil, "\(verdict)")
    }

    static let bad: [Case] = [
        Case(
            "a stale read",
            [
                at(0, 1, .set("a"), .done), at(2, 3, .set("b"), .done),
                at(4, 5, client: 1, .get, .value("a")),
            ]
        ),
        Case(
            "a read that goes back while the write is under way",
            [
                at(0, 1, .set("a"), .done), at(2, 20, client: 1, .set("b"), .done),
                at(3, 4, client: 2, .get, .value("b")), at(5, 6, client: 3, .get, .value("a")),
            ]
        ),
        Case(
            "a lost update",
            [
                at(0, 1, .set("1"), .done), at(2, 9, client: 1, .add(1), .sum(2)),
                at(2, 9, client: 2, .add(1), .sum(2)),
            ]
        ),
        Case(
            "a value that nobody wrote",
            [at(0, 9, .set("a"), .done), at(1, 8, client: 1, .get, .value("b"))]
        ),
        Case(
            "an IFREV that succeeded twice",
            [
                at(0, 1, .setEntry("a", ifRevision: nil), .revision(7)),
                at(2, 9, client: 1, .setEntry("b", ifRevision: 7), .revision(8)),
                at(2, 9, client: 2, .setEntry("c", ifRevision: 7), .revision(9)),
            ]
        ),
        Case(
            "two that made the key",
            [
                at(0, 9, client: 1, .setEntry("a", ifRevision: 0), .revision(1)),
                at(0, 9, client: 2, .setEntry("b", ifRevision: 0), .revision(2)),
            ]
        ),
        Case(
            "an acknowledged write that is gone after a crash",
            [
                at(0, 1, .set("a"), .done), at(2, 3, .set("b"), .done),
                at(4, 10, client: 1, .set("c"), .unknown), at(20, 21, .get, .value("a")),
            ]
        ),
        Case(
            "a value that was read and is gone after a crash",
            [
                at(0, 1, .set("a"), .done), at(2, 10, client: 1, .set("b"), .unknown),
                at(3, 4, client: 2, .get, .value("b")), at(20, 21, .get, .value("a")),
            ]
        ),
        Case(
            "a lost write that appears after the daemon that got it was dead",
            [
                at(0, 1, .set("a"), .done), at(2, 10, client: 1, .set("b"), .unknown),
                at(20, 21, .get, .value("a")), at(22, 23, .get, .value("b")),
            ]
        ),
        Case(
            "a lost write that happened twice",
            [
                at(0, .max, client: 1, .set("b"), .unknown), at(2, 3, .get, .value("b")),
                at(4, 5, .set("a"), .done), at(6, 7, .get, .value("b")),
            ]
        ),
        Case(
            "a delete of what was there that found nothing",
            [at(0, 1, .set("a"), .done), at(2, 3, client: 1, .delete, .deleted(false))]
        ),
        Case(
            "a revision that goes back",
            [
                at(0, 1, .setEntry("a", ifRevision: nil), .revision(7)),
                at(2, 3, .setEntry("b", ifRevision: nil), .revision(6)),
            ]
        ),
        Case(
            "a revision too low for the changes before it",
            [
                at(0, 1, .setEntry("a", ifRevision: nil), .revision(7)),
                at(2, 3, .delete, .deleted(true)), at(4, 5, .set("b"), .done),
                at(6, 7, .getEntry, .entry(.init("b", at: 8))),
            ]
        ),
        Case(
            "a conflict that was none",
            [
                at(0, 1, .setEntry("a", ifRevision: nil), .revision(7)),
                at(2, 3, .setEntry("b", ifRevision: 7), .conflict(7)),
            ]
        ),
        Case(
            "the same value at a revision that was replaced",
            [
                at(0, 1, .setEntry("a", ifRevision: nil), .revision(7)),
                at(2, 3, .setEntry("a", ifRevision: nil), .revision(8)),
                at(4, 5, .getEntry, .entry(.init("a", at: 7))),
            ]
        ),
        Case(
            "a number counted up from a word",
            [at(0, 1, .set("word"), .done), at(2, 3, .add(1), .sum(1))]
        ),
        Case(
            "a client that does not see what it has just sent",
            [
                at(0, 9, .set("a"), .done), at(0, 9, .get, .value(nil)),
            ]
        ),
    ]

    @Test(arguments: bad)
    func `a history that no order explains is refuted, with the operations in its report`(
        history: Case
    ) throws {
        let verdict = LinearizabilityCheck().verdict(of: history.operations)
        guard case .refuted(let refutation) = verdict else {
            Issue.record("\(verdict)")
            return
        }
        #expect(refutation.description.split(separator: "\n").count == 2 + history.operations.count)
        for operation in history.operations {
            let line = "\(operation.request): \(operation.outcome)"
            #expect(refutation.description.contains(line), "\(refutation)")
        }
    }

    @Test func `each key is checked apart, and the one at fault is named`() {
        let keys = ["a", "b", "c"].map { key in
            Operation(client: 0, key: key, .set(key), .done, invoked: 0, ended: 1)
        }
        let stale = Operation(client: 1, key: "b", .get, .value("a"), invoked: 2, ended: 3)
        let verdicts = LinearizabilityCheck().verdicts(of: keys + [stale])
        #expect(verdicts.map(\.key) == ["a", "b", "c"])
        #expect(verdicts.filter { $0.verdict.fault != nil }.map(\.key) == ["b"])
    }

    @Test func `more configurations than the limit are undecided, not accepted`() {
        let writes = (0..<20).map { Self.at(0, 99, client: $0, .set("\($0)"), .done) }
        var check = LinearizabilityCheck()
        check.configurationLimit = 1_000
        let verdict = check.verdict(of: writes + [Self.at(100, 101, .get, .value("none"))])
        guard case .undecided = verdict else {
            Issue.record("\(verdict)")
            return
        }
        #expect(verdict.fault != nil)
    }

    @Test func `revisions that repeat or go back between keys are told`() {
        func write(_ key: String, _ invoked: Int64, _ revision: Int64) -> Operation {
            Operation(
                client: 0,
                key: key,
                .setEntry("v", ifRevision: nil),
                .revision(revision),
                invoked: invoked,
                ended: invoked + 1
            )
        }
        #expect(RevisionOrder.faults(in: [write("a", 0, 1), write("b", 2, 2)]) == [])
        #expect(RevisionOrder.faults(in: [write("a", 0, 2), write("b", 1, 1)]) == [])
        #expect(RevisionOrder.faults(in: [write("a", 0, 2), write("b", 2, 1)]).count == 1)
        #expect(RevisionOrder.faults(in: [write("a", 0, 2), write("b", 1, 2)]).count == 1)
    }
}
