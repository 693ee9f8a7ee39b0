import StateEngine
import StateTestSupport
import Testing

@Suite struct PatternSetTests {
    private static let keys = [
        "a", "a/b", "a/b/c", "a/c", "a0", "ab", "abc", "b", "b/", "c", "c/d", "\u{E9}/x",
    ].filter { !$0.hasSuffix("/") }

    private let stage: Stage

    init() throws {
        stage = try Stage()
        for key in PatternSetTests.keys { try stage.set(key, key) }
        try stage.commit()
    }

    @Test(
        arguments: [
            (["/"], keys),
            (["a"], ["a"]),
            (["a/"], ["a/b", "a/b/c", "a/c"]),
            (["a/", "a/b"], ["a/b", "a/b/c", "a/c"]),
            (["a/b", "a/b/", "a/"], ["a/b", "a/b/c", "a/c"]),
            (["b", "a", "b"], ["a", "b"]),
            (["c/", "a*", "ab*"], ["a", "a/b", "a/b/c", "a/c", "a0", "ab", "abc", "c/d"]),
            (["*b", "a/b", "ab"], ["a/b", "ab", "b"]),
            (["a?", "a"], ["a", "a0", "ab"]),
            (["*/x", "c"], ["c", "\u{E9}/x"]),
            (["absent", "absent/", "absent*"], []),
            ([], []),
        ] as [([String], [String])]
    )
    func `overlapping patterns list each key once and in order`(
        texts: [String],
        expected: [String]
    ) throws {
        let set = PatternSet(try texts.map { try Pattern($0) })
        #expect(list(set) == expected)
        for bound in PatternSetTests.keys + ["", "a/", "b0"] {
            #expect(list(set, after: bound) == expected.filter { bytes(bound, precede: $0) })
        }
        #expect(list(set, limit: 2) == Array(expected.prefix(2)))
    }

    @Test func `listing leaves out what is deleted, and what is not durable where asked`() throws {
        let set = PatternSet([.everything])
        try stage.delete("a/b")
        try stage.set("d", "new")
        #expect(!list(set).contains("a/b") && list(set).contains("d"))
        let durable = stage.durable()
        #expect(durable["a/b"] != nil && durable["d"] == nil)
    }

    @Test(arguments: Seed.each(4)) func `random sets list what their patterns match`(
        seed: UInt64
    ) throws {
        var random = SplitMix(seed: seed)
        let texts = [
            "/", "a", "a/", "a/b", "a*", "a/b*", "*", "?", "*c", "ab", "b", "c/", "[ab]*", "a/[bc]",
        ]
        for _ in 0..<200 {
            let count = Int.random(in: 1...4, using: &random)
            let patterns = try (0..<count).map { _ in
                try Pattern(texts.randomElement(using: &random) ?? "/")
            }
            let expected = PatternSetTests.keys.filter { key in
                patterns.contains { $0.matches(key) }
            }
            #expect(list(PatternSet(patterns)) == expected, "\(patterns)")
        }
    }

    private func bytes(_ left: String, precede right: String) -> Bool {
        left.utf8.lexicographicallyPrecedes(right.utf8)
    }

    private func list(_ set: PatternSet, after bound: String? = nil, limit: Int = .max) -> [String]
    {
        stage.withCore { core in
            var keys: [String] = []
            func collect(_ bound: Bytes?) {
                core.forEachNewest(set, after: bound) { record in
                    keys.append(record.key.text)
                    return keys.count < limit
                }
            }
            if let bound { Array(bound.utf8).withUnsafeBytes { collect($0) } } else { collect(nil) }
            return keys
        }
    }
}
