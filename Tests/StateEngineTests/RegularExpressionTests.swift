import StateEngine
import Testing

@Suite struct RegularExpressionTests {
    @Test(
        arguments: [
            ("", "", true), ("", "abc", true), ("b", "abc", true), ("^b", "abc", false),
            ("^a", "abc", true), ("c$", "abc", true), ("b$", "abc", false), ("^$", "", true),
            ("^$", "a", false), ("^abc$", "abc", true), ("^a.c$", "a\nc", false),
            ("^a.c$", "a😀c", true), ("^a*$", "aaa", true), ("^a*$", "", true),
            ("^a+$", "", false), ("^a?b$", "b", true), ("^a?b$", "aab", false),
            ("^a{2}$", "aa", true), ("^a{2}$", "aaa", false), ("^a{2,}$", "aaaa", true),
            ("^a{2,}$", "a", false), ("^a{1,3}$", "aaa", true), ("^a{1,3}$", "aaaa", false),
            ("^a{0}$", "", true), ("^a{0}$", "a", false), ("^a{0,2}b$", "aab", true),
            ("^a+?b*?$", "aabb", true), ("^(ab|cd)+$", "abcdab", true),
            ("^(ab|cd)+$", "abc", false), ("^(?:a|b|)c$", "c", true), ("^(?<name>a)$", "a", true),
            ("^(a*)*$", "aaa", true), ("^(a|a)*b$", "aaab", true), ("a|b", "xb", true),
            ("^a|b$", "ax", true), ("^[abc]$", "b", true), ("^[^abc]$", "b", false),
            ("^[^abc]$", "d", true), ("^[a-f0-3]+$", "f3a0", true), ("^[a-f]+$", "g", false),
            ("^[a-]$", "-", true), ("^[]$", "a", false), ("^[^]$", "a", true),
            ("^[\\]\\-\\\\]+$", "]-\\", true), ("^[\\d_]+$", "1_2", true), ("^[^\\s]$", " ", false),
            ("^[\\b]$", "\u{8}", true), ("^\\d{3}-\\d$", "123-4", true), ("^\\D$", "5", false),
            ("^\\w+$", "aZ_9", true), ("^\\w$", "é", false), ("^\\W$", "é", true),
            ("^\\s+$", " \t\n\u{A0}\u{3000}", true), ("^\\S$", "x", true),
            ("\\bcat\\b", "a cat sat", true), ("\\bcat\\b", "concat", false),
            ("\\Bcat", "concat", true), ("^\\x41\\u0042\\u{1F600}\\ud83d\\ude00$", "AB😀😀", true),
            ("^\\t\\n\\v\\f\\r\\0\\cA$", "\t\n\u{B}\u{C}\r\0\u{1}", true),
            ("^\\^\\$\\.\\*\\+\\?\\(\\)\\[\\]\\{\\}\\|\\/\\\\$", "^$.*+?()[]{}|/\\", true),
            ("^日本$", "日本", true), ("^[α-ω]+$", "λογος", true), ("^.$", "e\u{301}", false),
            ("^..$", "e\u{301}", true), ("^a.c$", "a\rc", false), ("(^|,)b(,|$)", "a,b,c", true),
            ("(^|,)b(,|$)", "a,bc", false), ("x*", "y", true), ("^(?:a{0}){5}$", "", true),
        ] as [(String, String, Bool)]
    )
    func `a text matches as in ECMA 262`(pattern: String, text: String, matches: Bool) throws {
        var steps = 10_000
        #expect(try RegularExpression(pattern).matches(text, within: &steps) == matches)
        #expect((1..<10_000).contains(steps))
    }

    @Test(
        arguments: [
            ("(a", "'(' without ')' at 0"), ("a)", "')' without '(' at 1"),
            ("[a", "'[' without ']' at 0"), ("*a", "nothing to repeat at 0"),
            ("a**", "nothing to repeat at 2"), ("^*", "nothing to repeat at 1"),
            ("a{2,1}", "the maximum is below the minimum at 1"), ("a{", "a count is missing at 2"),
            ("a{1", "'}' is missing at 3"), ("a]", "']' needs a '\\' before it at 1"),
            ("\\", "'\\' ends the pattern at 0"), ("\\q", "'\\q' is not an escape sequence at 0"),
            ("(a)\\1", "back-references are not supported at 3"),
            ("(?<n>a)\\k<n>", "back-references are not supported at 7"),
            ("(?=a)", "look-ahead is not supported at 0"),
            ("(?!a)", "look-ahead is not supported at 0"),
            ("(?<=a)", "look-behind is not supported at 0"),
            ("(?<!a)", "look-behind is not supported at 0"), ("[b-a]", "not a range at 1"),
            ("[a-\\d]", "not a range at 1"),
            ("\\u{110000}", "not a code point (above U+10FFFF) at 0"),
            ("\\xg0", "a hexadecimal digit is missing at 2"),
            ("(?i:a)", "unknown kind of group after '(?' at 0"),
            ("a{10001}", "more than 10000 instructions"),
            ("((a{100}){100}){100}", "more than 10000 instructions"),
            ("a{99999999999999999999}", "more than 10000 instructions"),
        ]
    )
    func `what is no pattern is refused with the place`(pattern: String, words: String) {
        let error = #expect(throws: StateError.self) { try RegularExpression(pattern) }
        #expect(error?.code == .err)
        #expect(error?.message.contains(words) == true, "\(String(describing: error))")
    }

    @Test func `groups nested without end are refused`() {
        let pattern = String(repeating: "(", count: 100_000)
        let error = #expect(throws: StateError.self) { try RegularExpression(pattern) }
        #expect(error?.message.contains("deeper than 100") == true)
    }

    @Test(arguments: ["^(a*)*$", "^(a|a)*$", "^(a?){50}a{50}$", "(x+x+)+y", "^(([a-z])+.)+[A-Z]$"])
    func `no pattern and text take more than linear time`(pattern: String) throws {
        let expression = try RegularExpression(pattern)
        let letter = pattern.contains("x") ? "x" : "a"
        let text = String(repeating: letter, count: 20_000) + "!"
        var steps = RegularExpression.stepLimit
        #expect(expression.matches(text, within: &steps) == false)
        let taken = RegularExpression.stepLimit - steps
        // The pattern has 300 instructions at most, of which each is looked at twice at most for a character.
        #expect((20_000...20_000 * 600).contains(taken))
        steps = taken / 2
        #expect(expression.matches(text, within: &steps) == nil)
        #expect((-1_000...0).contains(steps))
    }
}
