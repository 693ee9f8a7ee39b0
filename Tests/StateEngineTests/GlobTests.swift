import StateEngine
import StateTestSupport
import Testing

@Suite struct GlobTests {
    /// What `stringmatchlen` of Redis says (https://github.com/redis/redis/blob/7.0/src/util.c).
    @Test(arguments: [
        ("", "", true), ("", "a", false), ("*", "", true), ("*", "a/b", true), ("**", "ab", true),
        ("?", "", false), ("?", "/", true), ("a?c", "abc", true), ("a?c", "ac", false),
        ("h*llo", "hllo", true), ("h*llo", "heeeello", true), ("h*llo", "hell", false),
        ("*b", "ab", true), ("*b", "abc", false), ("a*b*c", "aXbYbZc", true), ("a*", "b", false),
        ("h[ae]llo", "hello", true), ("h[ae]llo", "hillo", false), ("h[^e]llo", "hallo", true),
        ("h[^e]llo", "hello", false), ("[a-c]", "b", true), ("[a-c]", "d", false),
        ("[c-a]", "b", true), ("[^a-c]", "d", true), ("[^a-c]", "a", false), ("[a-cx]", "x", true),
        ("[a-c]d", "bd", true), ("[-a]", "-", true), ("[]", "a", false), ("[]a]", "]", false),
        ("[^]", "a", true), ("[\\]]", "]", true), ("[\\-]", "-", true), ("[a\\]b]", "b", true),
        // An escaped byte of a class begins no range; a `]` may end one.
        ("[\\a-c]", "b", false), ("[\\a-c]", "-", true), ("[\\a-c]", "c", true),
        ("[a-]", "_", true), ("[a-]", "-", false), ("[a-]]", "]", true), ("[a-]]", "_]", false),
        // A class without an end ends with the pattern.
        ("[", "a", false), ("[^", "a", true), ("[ab", "b", true), ("[ab", "c", false),
        ("[a-", "a", true), ("[a-", "-", true), ("[a-", "b", false), ("x[a-c", "xb", true),
        ("\\*", "*", true), ("\\*", "a", false), ("\\\\", "\\", true), ("a\\", "a\\", true),
        ("a\\", "a", false), ("\\a", "a", true), ("*\\", "a\\", true), ("[\\", "\\", true),
        ("a*a*b", "aab", true), ("a*a*b", "ab", false), ("*[a-c]?", "zzbz", true),
    ])
    func `a glob matches what it matches in Redis`(glob: String, text: String, matches: Bool) {
        #expect(
            Array(glob.utf8).withUnsafeBytes { Pattern(redisGlob: $0) }.matches(text) == matches
        )
    }

    @Test func `a question mark takes one byte, not one character`() {
        #expect(!glob("?").matches("ä"))
        #expect(glob("??").matches("ä"))
    }

    @Test func `many stars against a long text without a match end at once`() {
        let text = String(repeating: "a", count: 1_000)
        let stars = glob(String(repeating: "a*", count: 500) + "b")
        // Backtracking through every star would not end while the sun shines.
        let took = ContinuousClock().measure { #expect(!stars.matches(text)) }
        #expect(took < .seconds(1))
        #expect(glob(String(repeating: "a*", count: 500)).matches(text))
        #expect(!glob(String(repeating: "*[b-z]", count: 150)).matches(text))
    }

    private func glob(_ text: String) -> Pattern {
        Array(text.utf8).withUnsafeBytes { Pattern(redisGlob: $0) }
    }
}

/// The linear way against the definition of a glob, which a table of all pairs of ends states.
@Suite struct GlobSearchTests {
    @Test(arguments: 0..<40) func `random globs match as the definition says`(seed: UInt64) {
        var random = SplitMix(seed: seed)
        for _ in 0..<500 {
            let glob = bytes("ab*?[]^-\\", upTo: 12, &random)
            let text = bytes("abc]-", upTo: 10, &random)
            let expected = GlobSearchTests.matches(glob[...], text[...])
            let found = glob.withUnsafeBytes { glob in
                text.withUnsafeBytes { GlobSearch.matches(glob, $0) }
            }
            #expect(found == expected, "\(String(decoding: glob, as: UTF8.self)), \(text)")
        }
    }

    @Test func `a segment longer than a word of bits is found`() {
        let segment = String(repeating: "a?[ab]", count: 60)
        let text = String(repeating: "a", count: 179) + "b" + String(repeating: "a", count: 400)
        #expect(matches("*\(segment)b*", text + String(repeating: "a", count: 179) + "b"))
        #expect(!matches("*\(segment)c*", text))
        #expect(matches("x*\(segment)*y", "x" + String(repeating: "a", count: 180) + "zy"))
    }

    private func matches(_ glob: String, _ text: String) -> Bool {
        Array(glob.utf8).withUnsafeBytes { glob in
            Array(text.utf8).withUnsafeBytes { GlobSearch.matches(glob, $0) }
        }
    }

    private func bytes(
        _ alphabet: String,
        upTo count: Int,
        _ random: inout SplitMix
    ) -> [UInt8] {
        (0..<Int.random(in: 0...count, using: &random)).map { _ in
            Array(alphabet.utf8).randomElement(using: &random) ?? 0
        }
    }

    /// Recursive, as slow as it is short.
    private static func matches(_ glob: ArraySlice<UInt8>, _ text: ArraySlice<UInt8>) -> Bool {
        guard let first = glob.first else { return text.isEmpty }
        if first == UInt8(ascii: "*") {
            return matches(glob.dropFirst(), text)
                || !text.isEmpty && matches(glob, text.dropFirst())
        }
        guard let byte = text.first else { return false }
        // An element against one byte is what the table of GlobTests is about.
        for length in stride(from: glob.count, through: 1, by: -1) {
            let element = Array(glob.prefix(length))
            guard isElement(element, endsGlob: length == glob.count) else { continue }
            let isMet = element.withUnsafeBytes { element in
                [byte].withUnsafeBytes { Pattern(redisGlob: element).matches($0) }
            }
            return isMet && matches(glob.dropFirst(length), text.dropFirst())
        }
        return false
    }

    /// Whether these bytes are one element: a class up to its first `]`, an escape, or a byte.
    private static func isElement(_ bytes: [UInt8], endsGlob: Bool) -> Bool {
        switch bytes[0] {
        case UInt8(ascii: "["):
            var index = 1
            if index < bytes.count, bytes[index] == UInt8(ascii: "^") { index += 1 }
            while index < bytes.count, bytes[index] != UInt8(ascii: "]") {
                if bytes[index] == UInt8(ascii: "\\"), index + 1 < bytes.count {
                    index += 1
                } else if index + 2 < bytes.count, bytes[index + 1] == UInt8(ascii: "-") {
                    index += 2
                }
                index += 1
            }
            return index == bytes.count - 1 || (index >= bytes.count && endsGlob)
        case UInt8(ascii: "\\"): return bytes.count == 2 || (bytes.count == 1 && endsGlob)
        default: return bytes.count == 1
        }
    }

    @Test func `classes of a glob count as what they cost`() {
        func steps(_ element: String) -> Int {
            let glob =
                "*" + String(repeating: element, count: 9) + "Z"
                + String(repeating: element, count: 28) + "NN*"
            let pattern = Array(glob.utf8).withUnsafeBytes { Pattern(redisGlob: $0) }
            var left = 0
            let key = [UInt8](repeating: 97, count: 200)
            #expect(!key.withUnsafeBytes { pattern.matches($0, counting: &left) })
            return -left
        }
        // The key has one byte, which is compared with each class.
        #expect(steps("?") < steps("[^]") && steps("[^]") < 5_000)
    }

    @Test func `a glob of classes takes little longer than one of question marks`() {
        let key = [UInt8](repeating: UInt8(ascii: "a"), count: 400)
        func time(_ element: String) -> Duration {
            let glob = "*" + String(repeating: element, count: 300) + "Z*"
            let pattern = Array(glob.utf8).withUnsafeBytes { Pattern(redisGlob: $0) }
            let rounds = (0..<5).map { _ in
                ContinuousClock().measure {
                    for _ in 0..<20 { #expect(!key.withUnsafeBytes { pattern.matches($0) }) }
                }
            }
            return rounds.min() ?? .zero
        }
        #expect(time("[^]") < time("?") * 10)
    }

    @Test func `a debt of steps stays until it is paid`() {
        let allowance = GlobAllowance(fullStepCount: 1_000)
        #expect(allowance.isFull(at: 0))
        allowance.take(3_000)
        allowance.refill(at: 19_990)
        #expect(!allowance.hasSteps)
        allowance.refill(at: 20_010)
        #expect(allowance.hasSteps && !allowance.isFull(at: 29_000))
        #expect(allowance.isFull(at: 40_000))
    }
}
