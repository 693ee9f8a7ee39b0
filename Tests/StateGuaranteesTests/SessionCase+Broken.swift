import StateGuarantees

extension SessionCase {
    /// Sessions that break exactly one.
    static let brokenCases: [SessionCase] = [
        SessionCase("two commits exchanged", breaks: .ordered, [c12, c11, c13]),
        SessionCase(
            "a bookmark below one before it",
            breaks: .ordered,
            [c11, .progress(11), .progress(10)]
        ),
        SessionCase(
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
        SessionCase(
            "a state that is not in the order of its keys",
            breaks: .ordered,
            of: snapshot,
            [.pieces([s10[1], s10[0], s10[2]]), .synced(10)]
        ),
        SessionCase(
            "a round whose revisions fall",
            breaks: .ordered,
            of: latest,
            [
                change(12, .init("a/1", "twelve"), .init("a/3", "twelve")),
                change(11, .init("b/1", nil)), .synced(12),
            ]
        ),

        SessionCase("a commit again", breaks: .unique, [c11, c11, c12]),
        SessionCase(
            "a commit that the state has",
            breaks: .unique,
            of: snapshot,
            [
                .pieces(s10), .synced(10), change(10, .init("a/2", "ten"), .init("b/1", "ten")),
                c11,
            ]
        ),
        SessionCase("a commit from before the beginning", breaks: .unique, at: 11, [c11, c12]),
        SessionCase(
            "a value again in the next round",
            breaks: .unique,
            of: latest,
            [
                change(12, .init("a/1", "twelve"), .init("a/3", "twelve")),
                change(12, .init("a/3", "twelve")),
            ]
        ),

        SessionCase("a commit left out", breaks: .reliable, [c11, c13]),
        SessionCase("the first commit left out", breaks: .reliable, [c12, c13]),
        SessionCase(
            "a commit left out before a bookmark",
            breaks: .reliable,
            [c11, c13, .progress(13)]
        ),
        SessionCase(
            "the first after the state left out",
            breaks: .reliable,
            of: snapshot,
            [
                .pieces(s10), .synced(10), c12,
            ]
        ),
        SessionCase("a commit that never comes", breaks: .reliable, [c11], end: .silent(12)),
        SessionCase(
            "a round that never comes",
            breaks: .reliable,
            of: latest,
            [],
            end: .silent(12)
        ),

        SessionCase(
            "half of a commit",
            breaks: .atomic,
            [change(11, .init("a/1", "eleven")), c12]
        ),
        SessionCase(
            "a commit in two halves",
            breaks: .atomic,
            [
                change(11, .init("a/1", "eleven")), change(11, .init("b/1", nil)), c12,
            ]
        ),
        SessionCase("a key that does not match", breaks: .atomic, of: below, [c11]),
        SessionCase(
            "a key of another commit",
            breaks: .atomic,
            [
                change(11, .init("a/1", "eleven"), .init("b/1", nil), .init("a/3", "twelve"))
            ]
        ),
        SessionCase(
            "a wrong value",
            breaks: .atomic,
            [
                change(11, .init("a/1", "twelve"), .init("b/1", nil))
            ]
        ),
        SessionCase(
            "a delete of what was not there",
            breaks: .atomic,
            [
                change(11, .init("a/1", "eleven"), .init("b/1", nil), .init("b/9", nil))
            ]
        ),
        SessionCase(
            "a delete for a set",
            breaks: .atomic,
            [
                change(11, .init("a/1", nil), .init("b/1", nil))
            ]
        ),
        SessionCase(
            "a commit that nobody made",
            breaks: .atomic,
            [
                c11, c12, c13, c14, change(15, .init("a/1", "x")),
            ]
        ),
        SessionCase(
            "a wrong value before",
            breaks: .atomic,
            of: .init(["a/"], includesPrevious: true),
            [
                change(11, .init("a/1", "eleven", previous: .value("ten")))
            ]
        ),
        SessionCase(
            "a value before that was absent",
            breaks: .atomic,
            of: .init(["a/3"], includesPrevious: true),
            [
                change(12, .init("a/3", "twelve", previous: .value("nine")))
            ]
        ),
        SessionCase(
            "a commit within a state",
            breaks: .atomic,
            of: snapshot,
            at: 11,
            [
                .pieces([.init("a/1", "eleven", 11)]), c12,
            ]
        ),
        SessionCase(
            "a piece that nobody committed, which is put right again",
            breaks: .atomic,
            of: snapshot,
            [
                .pieces([.init("a/1", "x", 9)]), .pieces([.init("a/1", "eleven", 11)]),
                .pieces([.init("a/2", "ten", 10)]), .synced(11),
            ]
        ),
        SessionCase(
            "a wrong value in a round that is not closed",
            breaks: .atomic,
            of: latest,
            [
                change(12, .init("a/3", "x"))
            ]
        ),

        SessionCase(
            "what was known, again",
            breaks: .resumable,
            of: from10,
            [
                change(10, .init("a/2", "ten"), .init("b/1", "ten")), c11,
            ]
        ),
        SessionCase(
            "the first after the revision left out",
            breaks: .resumable,
            of: from10,
            at: 18,
            [c12, c13]
        ),
        SessionCase(
            "no gap for another epoch",
            breaks: .resumable,
            of: .init(["/"], .from(10, epoch: "f")),
            [c11]
        ),
        SessionCase(
            "no gap for a revision of the future",
            breaks: .resumable,
            of: .init(["/"], .from(12)),
            at: 11,
            [
                c13, c14,
            ]
        ),
        SessionCase(
            "a gap for no reason",
            breaks: .resumable,
            of: from10,
            at: 13,
            [
                .gap(13, compacted: 10), .pieces(s13), .synced(13),
            ]
        ),
        SessionCase(
            "a gap of a slow watcher whose commits are kept",
            breaks: .resumable,
            [
                c11, .gap(13), .pieces(s13), .synced(13),
            ]
        ),
        SessionCase(
            "a state after a gap that lacks a key",
            breaks: .resumable,
            of: from10,
            at: 13,
            [
                .gap(13, compacted: 12), .pieces([s13[0]]), .synced(13), c14,
            ]
        ),
        SessionCase(
            "a state after a gap that has one too many",
            breaks: .resumable,
            of: from10,
            at: 13,
            [
                .gap(13, compacted: 12), .pieces([s13[0], .init("a/2", "ten", 10), s13[1]]),
                .synced(13), c14,
            ]
        ),

        SessionCase(
            "a bookmark before what it covers",
            breaks: .bookmarkable,
            [c11, .progress(12), c12]
        ),
        SessionCase("a bookmark for what never came", breaks: .bookmarkable, [c11, .progress(12)]),
        SessionCase(
            "a bookmark of a resumed watch that covers nothing",
            breaks: .bookmarkable,
            of: from10,
            at: 18,
            [
                .progress(11)
            ]
        ),
        SessionCase(
            "a state that lacks a key",
            breaks: .bookmarkable,
            of: snapshot,
            [
                .pieces(Array(s10[1...])), .synced(10), c11,
            ]
        ),
        SessionCase(
            "a state with an older value",
            breaks: .bookmarkable,
            of: snapshot,
            at: 12,
            [
                .pieces([.init("a/1", "eleven", 11), s10[1], s13[1]]), .synced(12),
            ]
        ),
        SessionCase(
            "a round that lacks a key",
            breaks: .bookmarkable,
            of: latest,
            [
                change(11, .init("b/1", nil)), change(12, .init("a/1", "twelve")), .synced(12),
            ]
        ),
        SessionCase(
            "a round that lacks a delete",
            breaks: .bookmarkable,
            of: latest,
            [
                change(11, .init("a/1", "eleven")), .synced(11),
            ]
        ),
        SessionCase(
            "a round with a value of the next",
            breaks: .bookmarkable,
            of: latest,
            [
                change(11, .init("b/1", nil)), change(12, .init("a/1", "twelve")), .synced(11),
            ]
        ),
    ]
}
