import StateEngine
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
