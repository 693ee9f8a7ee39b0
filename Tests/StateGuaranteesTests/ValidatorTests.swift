import StateGuarantees
import Testing

/// The validators on sessions written by hand: those that keep every guarantee, and those that break exactly one.
struct ValidatorTests {
    typealias Events = [WatchSession.Event]

    /// A session, what it shows, and the guarantee that it breaks.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let session: WatchSession
        let broken: Guarantee?

        init(
            _ description: String,
            breaks broken: Guarantee? = nil,
            of request: WatchSession.Request = .init(["/"]),
            at revision: Int64 = 10,
            _ events: Events,
            end: WatchSession.End = .left
        ) {
            testDescription = description
            self.broken = broken
            let reply = WatchSession.Reply(revision: revision, epoch: "e")
            session = WatchSession(request, reply: reply, events, end: end)
        }
    }

    /// 15 and 17 are holes; 14 and 16 touch nothing below `a/`.
    private static let record = CommitRecord([
        9: [.init("a/1", "nine")],
        10: [.init("a/2", "ten"), .init("b/1", "ten")],
        11: [.init("a/1", "eleven"), .init("b/1", nil), .init("b/9", nil)],
        12: [.init("a/1", "never"), .init("a/3", "twelve"), .init("a/1", "twelve")],
        13: [.init("a/2", nil)],
        14: [.init("b/2", "fourteen")],
        16: [.init("b/1", "sixteen")],
        18: [.init("a/1", "eighteen"), .init("b/2", nil)],
    ])

    private static let c11 = change(11, .init("a/1", "eleven"), .init("b/1", nil))
    private static let c12 = change(12, .init("a/3", "twelve"), .init("a/1", "twelve"))
    private static let c13 = change(13, .init("a/2", nil))
    private static let c14 = change(14, .init("b/2", "fourteen"))
    private static let c16 = change(16, .init("b/1", "sixteen"))
    private static let c18 = change(18, .init("a/1", "eighteen"), .init("b/2", nil))
    /// The state at 10.
    private static let s10: [WatchSession.Piece] = [
        .init("a/1", "nine", 9), .init("a/2", "ten", 10), .init("b/1", "ten", 10),
    ]
    /// The state at 13.
    private static let s13: [WatchSession.Piece] = [
        .init("a/1", "twelve", 12), .init("a/3", "twelve", 12),
    ]

    private static func change(
        _ revision: Int64,
        _ changes: WatchSession.Change...
    ) -> WatchSession.Event { .change(revision, changes) }

    private static let snapshot = WatchSession.Request(["/"], .snapshot)
    private static let from10 = WatchSession.Request(["/"], .from(10, epoch: "e"))
    private static let latest = WatchSession.Request(["/"], isLatest: true)
    private static let below = WatchSession.Request(["a/"])

    static let good: [Case] = [
        Case("nothing", []),
        Case("all of them", [c11, c12, c13, c14, c16, .progress(17), c18]),
        Case("bookmarks above the last commit", [c11, .progress(11), c12, .progress(12)]),
        Case("only what matches", of: below, [change(11, .init("a/1", "eleven")), c12, c13]),
        Case(
            "globs and keys",
            of: .init(["b/?", "*3"]),
            [change(11, .init("b/1", nil)), change(12, .init("a/3", "twelve")), c14]
        ),
        Case(
            "what was replaced",
            of: .init(["a/"], tellsPrevious: true),
            [
                change(11, .init("a/1", "eleven", previous: .value("nine"))),
                change(
                    12,
                    .init("a/1", "twelve", previous: .value("eleven")),
                    .init("a/3", "twelve", previous: .absent)
                ),
            ]
        ),
        Case("a state and then commits", of: snapshot, [.pieces(s10), .synced(10), c11, c12]),
        Case(
            "a state during which a key that was passed changed and one that was told went",
            of: snapshot,
            [
                .pieces([.init("a/1", "nine", 9), .init("a/2", "ten", 10)]),
                .pieces([.init("a/1", "eleven", 11)]),
                .pieces([.init("a/1", "twelve", 12)]),
                .pieces([.init("a/2", nil, 13), .init("a/3", "twelve", 12)]),
                .synced(13), c14,
            ]
        ),
        Case(
            "a state that is begun again",
            of: snapshot,
            [
                .pieces(s10), .gap(13), .pieces(s13), .synced(13),
            ]
        ),
        Case("a state that was not closed", of: snapshot, [.pieces(s13)]),
        Case("from a revision", of: from10, at: 18, [c11, c12, c13, .progress(13), c14]),
        Case("from a hole", of: .init(["/"], .from(15)), at: 18, [c16, c18]),
        Case(
            "a gap for another epoch",
            of: .init(["/"], .from(10, epoch: "f")),
            at: 13,
            [.gap(13), .pieces(s13), .synced(13), c14]
        ),
        Case(
            "a gap for a revision of the future",
            of: .init(["/"], .from(14)),
            at: 13,
            [.gap(13), .pieces(s13), .synced(13), c14]
        ),
        Case(
            "a gap for what was compacted",
            of: from10,
            at: 13,
            [.gap(13, compacted: 11), .pieces(s13), .synced(13), c14]
        ),
        Case(
            "a gap for what was compacted after some of it had been told",
            of: from10,
            at: 13,
            [c11, .gap(13, compacted: 12), .pieces(s13), .synced(13), .progress(13), c14]
        ),
        Case(
            "rounds without what was replaced meanwhile",
            of: latest,
            [
                change(11, .init("b/1", nil)),
                change(12, .init("a/1", "twelve"), .init("a/3", "twelve")), c13, c14, .synced(14),
                .synced(15), c16, c18, .synced(18),
            ]
        ),
        Case(
            "a round from a revision on, of which only the last of each key is told",
            of: .init(["/"], .from(9), isLatest: true),
            at: 18,
            [
                change(12, .init("a/3", "twelve")), c13, c16, c18, .synced(18),
            ]
        ),
        Case(
            "a state and then rounds",
            of: .init(["a/"], .snapshot, isLatest: true),
            [
                .pieces(Array(s10[..<2])), .synced(10), change(12, .init("a/3", "twelve")), c13,
                change(18, .init("a/1", "eighteen")), .synced(18),
            ]
        ),
    ]

    @Test(arguments: good)
    func `a session that keeps the guarantees is accepted`(session: Case) {
        let check = SessionCheck(session.session, against: Self.record)
        #expect(check.violations().isEmpty)
    }

    static let bad: [Case] = [
        Case("two commits exchanged", breaks: .ordered, [c12, c11, c13]),
        Case(
            "a bookmark below one before it",
            breaks: .ordered,
            [c11, .progress(11), .progress(10)]
        ),
        Case(
            "an older value in a state after a newer one, which is put right again",
            breaks: .ordered,
            of: snapshot,
            at: 12,
            [
                .pieces([.init("a/1", "twelve", 12), .init("a/1", "eleven", 11)]),
                .pieces([.init("a/1", "twelve", 12), .init("a/2", "ten", 10)]),
                .pieces([.init("a/3", "twelve", 12)]), .synced(12),
            ]
        ),
        Case(
            "a state that is not in the order of its keys",
            breaks: .ordered,
            of: snapshot,
            [.pieces([s10[1], s10[0], s10[2]]), .synced(10)]
        ),
        Case(
            "a round whose revisions fall",
            breaks: .ordered,
            of: latest,
            [
                change(12, .init("a/1", "twelve"), .init("a/3", "twelve")),
                change(11, .init("b/1", nil)), .synced(12),
            ]
        ),

        Case("a commit again", breaks: .unique, [c11, c11, c12]),
        Case(
            "a commit that the state has",
            breaks: .unique,
            of: snapshot,
            [
                .pieces(s10), .synced(10), change(10, .init("a/2", "ten"), .init("b/1", "ten")),
                c11,
            ]
        ),
        Case("a commit from before the beginning", breaks: .unique, at: 11, [c11, c12]),
        Case(
            "a value again in the next round",
            breaks: .unique,
            of: latest,
            [
                change(12, .init("a/1", "twelve"), .init("a/3", "twelve")),
                change(12, .init("a/3", "twelve")),
            ]
        ),

        Case("a commit left out", breaks: .reliable, [c11, c13]),
        Case("the first commit left out", breaks: .reliable, [c12, c13]),
        Case("a commit left out before a bookmark", breaks: .reliable, [c11, c13, .progress(13)]),
        Case(
            "the first after the state left out",
            breaks: .reliable,
            of: snapshot,
            [
                .pieces(s10), .synced(10), c12,
            ]
        ),
        Case("a commit that never comes", breaks: .reliable, [c11], end: .silent(12)),
        Case("a round that never comes", breaks: .reliable, of: latest, [], end: .silent(12)),

        Case("half of a commit", breaks: .atomic, [change(11, .init("a/1", "eleven")), c12]),
        Case(
            "a commit in two halves",
            breaks: .atomic,
            [
                change(11, .init("a/1", "eleven")), change(11, .init("b/1", nil)), c12,
            ]
        ),
        Case("a key that does not match", breaks: .atomic, of: below, [c11]),
        Case(
            "a key of another commit",
            breaks: .atomic,
            [
                change(11, .init("a/1", "eleven"), .init("b/1", nil), .init("a/3", "twelve"))
            ]
        ),
        Case(
            "a wrong value",
            breaks: .atomic,
            [
                change(11, .init("a/1", "twelve"), .init("b/1", nil))
            ]
        ),
        Case(
            "a delete of what was not there",
            breaks: .atomic,
            [
                change(11, .init("a/1", "eleven"), .init("b/1", nil), .init("b/9", nil))
            ]
        ),
        Case(
            "a delete for a set",
            breaks: .atomic,
            [
                change(11, .init("a/1", nil), .init("b/1", nil))
            ]
        ),
        Case(
            "a commit that nobody made",
            breaks: .atomic,
            [
                c11, c12, c13, c14, change(15, .init("a/1", "x")),
            ]
        ),
        Case(
            "a wrong value before",
            breaks: .atomic,
            of: .init(["a/"], tellsPrevious: true),
            [
                change(11, .init("a/1", "eleven", previous: .value("ten")))
            ]
        ),
        Case(
            "a value before that was absent",
            breaks: .atomic,
            of: .init(["a/3"], tellsPrevious: true),
            [
                change(12, .init("a/3", "twelve", previous: .value("nine")))
            ]
        ),
        Case(
            "a commit within a state",
            breaks: .atomic,
            of: snapshot,
            at: 11,
            [
                .pieces([.init("a/1", "eleven", 11)]), c12,
            ]
        ),
        Case(
            "a piece that nobody committed, which is put right again",
            breaks: .atomic,
            of: snapshot,
            [
                .pieces([.init("a/1", "x", 9)]), .pieces([.init("a/1", "eleven", 11)]),
                .pieces([.init("a/2", "ten", 10)]), .synced(11),
            ]
        ),
        Case(
            "a wrong value in a round that is not closed",
            breaks: .atomic,
            of: latest,
            [
                change(12, .init("a/3", "x"))
            ]
        ),

        Case(
            "what was known, again",
            breaks: .resumable,
            of: from10,
            [
                change(10, .init("a/2", "ten"), .init("b/1", "ten")), c11,
            ]
        ),
        Case(
            "the first after the revision left out",
            breaks: .resumable,
            of: from10,
            at: 18,
            [c12, c13]
        ),
        Case(
            "no gap for another epoch",
            breaks: .resumable,
            of: .init(["/"], .from(10, epoch: "f")),
            [c11]
        ),
        Case(
            "no gap for a revision of the future",
            breaks: .resumable,
            of: .init(["/"], .from(12)),
            at: 11,
            [
                c13, c14,
            ]
        ),
        Case(
            "a gap for no reason",
            breaks: .resumable,
            of: from10,
            at: 13,
            [
                .gap(13, compacted: 10), .pieces(s13), .synced(13),
            ]
        ),
        Case(
            "a gap of a slow watcher whose commits are kept",
            breaks: .resumable,
            [
                c11, .gap(13), .pieces(s13), .synced(13),
            ]
        ),
        Case(
            "a state after a gap that lacks a key",
            breaks: .resumable,
            of: from10,
            at: 13,
            [
                .gap(13, compacted: 12), .pieces([s13[0]]), .synced(13), c14,
            ]
        ),
        Case(
            "a state after a gap that has one too many",
            breaks: .resumable,
            of: from10,
            at: 13,
            [
                .gap(13, compacted: 12), .pieces([s13[0], .init("a/2", "ten", 10), s13[1]]),
                .synced(13), c14,
            ]
        ),

        Case("a bookmark before what it covers", breaks: .bookmarkable, [c11, .progress(12), c12]),
        Case("a bookmark for what never came", breaks: .bookmarkable, [c11, .progress(12)]),
        Case(
            "a bookmark of a resumed watch that covers nothing",
            breaks: .bookmarkable,
            of: from10,
            at: 18,
            [
                .progress(11)
            ]
        ),
        Case(
            "a state that lacks a key",
            breaks: .bookmarkable,
            of: snapshot,
            [
                .pieces(Array(s10[1...])), .synced(10), c11,
            ]
        ),
        Case(
            "a state with an older value",
            breaks: .bookmarkable,
            of: snapshot,
            at: 12,
            [
                .pieces([.init("a/1", "eleven", 11), s10[1], s13[1]]), .synced(12),
            ]
        ),
        Case(
            "a round that lacks a key",
            breaks: .bookmarkable,
            of: latest,
            [
                change(11, .init("b/1", nil)), change(12, .init("a/1", "twelve")), .synced(12),
            ]
        ),
        Case(
            "a round that lacks a delete",
            breaks: .bookmarkable,
            of: latest,
            [
                change(11, .init("a/1", "eleven")), .synced(11),
            ]
        ),
        Case(
            "a round with a value of the next",
            breaks: .bookmarkable,
            of: latest,
            [
                change(11, .init("b/1", nil)), change(12, .init("a/1", "twelve")), .synced(11),
            ]
        ),
    ]

    @Test(arguments: bad)
    func `a session that breaks one guarantee is refused for that one`(session: Case) {
        let check = SessionCheck(session.session, against: Self.record)
        let violations = check.violations()
        #expect(
            Set(violations.map(\.guarantee)) == Set([session.broken].compactMap(\.self)),
            "\(violations)"
        )
    }

    @Test func `what breaks a guarantee is told with the watcher and the commit`() throws {
        var session = Self.bad[0].session
        (session.watcher, session.number) = (7, 3)
        let violation = try #require(SessionCheck(session, against: Self.record).violations().first)
        let text = "ordered: watcher 7, session 3, revision 11: it came after 12"
        #expect("\(violation)" == text)
    }
}
