import StateGuarantees

extension SessionCase {
    /// Sessions that keep every guarantee.
    static let good: [SessionCase] = [
        SessionCase("nothing", []),
        SessionCase("all of them", [c11, c12, c13, c14, c16, .progress(17), c18]),
        SessionCase("bookmarks above the last commit", [c11, .progress(11), c12, .progress(12)]),
        SessionCase(
            "only what matches",
            of: below,
            [change(11, .init("a/1", "eleven")), c12, c13]
        ),
        SessionCase(
            "globs and keys",
            of: .init(["b/?", "*3"]),
            [change(11, .init("b/1", nil)), change(12, .init("a/3", "twelve")), c14]
        ),
        SessionCase(
            "what was replaced",
            of: .init(["a/"], includesPrevious: true),
            [
                change(11, .init("a/1", "eleven", previous: .value("nine"))),
                change(
                    12,
                    .init("a/1", "twelve", previous: .value("eleven")),
                    .init("a/3", "twelve", previous: .absent)
                ),
            ]
        ),
        SessionCase(
            "a state and then commits",
            of: snapshot,
            [.pieces(s10), .synced(10), c11, c12]
        ),
        SessionCase(
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
        SessionCase(
            "a state that is begun again",
            of: snapshot,
            [
                .pieces(s10), .gap(13), .pieces(s13), .synced(13),
            ]
        ),
        SessionCase("a state that was not closed", of: snapshot, [.pieces(s13)]),
        SessionCase("from a revision", of: from10, at: 18, [c11, c12, c13, .progress(13), c14]),
        SessionCase("from a hole", of: .init(["/"], .from(15)), at: 18, [c16, c18]),
        SessionCase(
            "a gap for another epoch",
            of: .init(["/"], .from(10, epoch: "f")),
            at: 13,
            [.gap(13), .pieces(s13), .synced(13), c14]
        ),
        SessionCase(
            "a gap for a revision of the future",
            of: .init(["/"], .from(14)),
            at: 13,
            [.gap(13), .pieces(s13), .synced(13), c14]
        ),
        SessionCase(
            "a gap for what was compacted",
            of: from10,
            at: 13,
            [.gap(13, compacted: 11), .pieces(s13), .synced(13), c14]
        ),
        SessionCase(
            "a gap for what was compacted after some of it had been told",
            of: from10,
            at: 13,
            [c11, .gap(13, compacted: 12), .pieces(s13), .synced(13), .progress(13), c14]
        ),
        SessionCase(
            "rounds without what was replaced meanwhile",
            of: latest,
            [
                change(11, .init("b/1", nil)),
                change(12, .init("a/1", "twelve"), .init("a/3", "twelve")), c13, c14, .synced(14),
                .synced(15), c16, c18, .synced(18),
            ]
        ),
        SessionCase(
            "a round from a revision on, of which only the last of each key is told",
            of: .init(["/"], .from(9), isLatest: true),
            at: 18,
            [
                change(12, .init("a/3", "twelve")), c13, c16, c18, .synced(18),
            ]
        ),
        SessionCase(
            "a state and then rounds",
            of: .init(["a/"], .snapshot, isLatest: true),
            [
                .pieces(Array(s10[..<2])), .synced(10), change(12, .init("a/3", "twelve")), c13,
                change(18, .init("a/1", "eighteen")), .synced(18),
            ]
        ),
    ]
}
