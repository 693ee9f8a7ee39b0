import StateContainers
import StateJSON
import StateRules
import Testing

/// Options are found in the text that a person wrote.
struct JSON5DocumentTests {
    private let text = """
        // The daemon.
        {
          socket: { path: '/run/s', "mode": "0660" },   /* both
          kinds of quotes */ data: "/var",
          rules: [
            { keys: "a/", limits: { keys: +0x10, }, },
            { keys: 'a\\'b', default: [1, { x: .5 }] },
          ],
        }
        """

    private func place(_ steps: JSONPath.Step...) -> String? {
        let path = steps.reduce(JSONPath()) { path, step in
            switch step {
            case .member(let name): path.member(name)
            case .element(let index): path.element(index)
            }
        }
        return (try? JSON5Document(text))?.place(of: path)?.description
    }

    @Test func `a value is what is written, with all of its digits`() throws {
        let text = """
            { a: 9007199254740993.5, 'b': [1.50, 12345678901234567890123456789012345678901, 1e3],
              c: [0x10, -0XfF, +7, .5, -5., 1E+2, -0, 1e30, 0.001e3, 18446744073709551615],
              d: [true, false, null, {}, []], }
            """
        let expected = JSONValue.object([
            "a": .number("9007199254740993.5"),
            "b": .array(
                ["1.50", "12345678901234567890123456789012345678901", "1000"].map { .number($0) }
            ),
            "c": .array(
                ["16", "-255", "7", "0.5", "-5", "100", "0", "1e30", "1", "18446744073709551615"]
                    .map { .number($0) }
            ),
            "d": .array([.bool(true), .bool(false), .null, .object([:]), .array([])]),
        ])
        #expect(try JSON5Document(text).value == expected)
    }

    @Test(arguments: [
        (#"'a\n\t\r\b\f\v\0'"#, "a\n\t\r\u{8}\u{C}\u{B}\0"),
        (#""\x41\u00e9\'\/\\""#, "A\u{E9}'/\\"),
        (#"'\ud83d\uDE00'"#, "\u{1F600}"), ("'a\\\nb\\\r\nc'", "abc"),
        ("'it\u{2028}s\t'", "it\u{2028}s\t"),
    ])
    func `a string is what its escapes stand for`(text: String, expected: String) throws {
        #expect(try JSON5Document(text).value == .string(expected))
    }

    @Test func `each option has its line and column`() {
        #expect(place() == "2:1")
        #expect(place(.member("socket")) == "3:3")
        #expect(place(.member("socket"), .member("mode")) == "3:29")
        #expect(place(.member("data")) == "4:22")
        #expect(place(.member("rules"), .element(0)) == "6:5")
        #expect(place(.member("rules"), .element(0), .member("limits"), .member("keys")) == "6:29")
        #expect(place(.member("rules"), .element(1), .member("default"), .element(1)) == "7:34")
        #expect(
            place(.member("rules"), .element(1), .member("default"), .element(1), .member("x"))
                == "7:36"
        )
    }

    @Test func `what is missing has the place of what it is missing in`() {
        #expect(place(.member("rules"), .element(1), .member("schema"), .member("type")) == "7:5")
        #expect(place(.member("history")) == "2:1")
    }

    @Test func `a member that appears twice is found, however it is quoted`() throws {
        func faults(_ text: String) -> [String] {
            JSON5Document(Array(text.utf8)).faults.map(\.description)
        }
        #expect(faults("{a: 1, b: {c: 1}, 'a': 2}") == ["1:19: a: this option appears twice"])
        #expect(
            faults("{a: {x: 1}, b: {x: 1, y: 2, \"\\u0078\": 3}}")
                == ["1:29: b.x: this option appears twice"]
        )
        #expect(faults("[{a: 1}, {a: 1}]").isEmpty)
        let forms = faults("{\"\u{E9}\": 1, \"e\u{301}\": 2}")
        #expect(forms.count == 1 && forms[0].contains("only its Unicode form"))
    }

    @Test(arguments: [
        ("", "1:1: expected a value"), ("{", "1:2: expected '}'"),
        ("{a", "1:3: expected ':' after a"), ("{a:", "1:4: expected a value"),
        ("[1,", "1:4: expected ']'"), ("{a: 1,, }", "1:7: expected a name"),
        ("{\n  a: 1\n  b: 2\n}", "3:3: expected ',' or '}'"),
        (
            "{a: tru}",
            "1:5: unexpected 'tru'; expected a number, true, false, null, or a string in quotes"
        ),
        ("{a: /x}", "1:5: expected a value"),
        ("{a: 'x\n'}", "1:5: this string has no closing quote"),
        ("{} {}", "1:4: unexpected text after the value"),
        ("/* x", "1:1: this comment has no closing '*/'"),
        ("/*/", "1:1: this comment has no closing '*/'"),
        ("{a-b: 1}", "1:2: the name 'a-b' needs quotes"),
        ("{\\u002d: 1}", "1:2: the name '\\u002d' needs quotes"),
        (
            "{a: 01}",
            "1:5: unexpected '01'; expected a number, true, false, null, or a string in quotes"
        ),
        (
            "{a: 1..2}",
            "1:5: unexpected '1..2'; expected a number, true, false, null, or a string in quotes"
        ),
        ("[.]", "1:2: unexpected '.'; expected a number, true, false, null, or a string in quotes"),
        (
            "[0x]",
            "1:2: unexpected '0x'; expected a number, true, false, null, or a string in quotes"
        ),
        (
            "[0x0x]",
            "1:2: unexpected '0x0x'; expected a number, true, false, null, or a string in quotes"
        ),
        (
            "[0x+1]",
            "1:2: unexpected '0x+1'; expected a number, true, false, null, or a string in quotes"
        ),
        ("[-NaN]", "1:2: '-NaN' cannot be stored: JSON has no such number"),
        (
            "[+-1]",
            "1:2: unexpected '+-1'; expected a number, true, false, null, or a string in quotes"
        ),
        (
            "[1e]",
            "1:2: unexpected '1e'; expected a number, true, false, null, or a string in quotes"
        ),
        ("{'\\", "1:2: this string has no closing quote"),
        ("['a\\1']", "1:4: '\\1' is not an escape; write a backslash of the text twice"),
        ("['\\01']", "1:3: '\\0' is not an escape; write a backslash of the text twice"),
        (
            "['\\xg0']",
            "1:3: expected 2 hexadecimal digits in this escape; write a backslash of the text twice"
        ),
        (
            "['\\u12']",
            "1:3: expected 4 hexadecimal digits in this escape; write a backslash of the text twice"
        ),
        (
            "['\\ud800x']",
            "1:3: this escape is half of a surrogate pair; write a backslash of the text twice"
        ),
        (
            "['\\ud800\\u0041']",
            "1:3: this escape is half of a surrogate pair; write a backslash of the text twice"
        ),
        ("\u{FEFF}{a", "1:3: expected ':' after a"),
        (
            "[\u{85}]",
            "1:2: unexpected '\u{85}'; expected a number, true, false, null, or a string in quotes"
        ),
        ("[[[", "1:4: expected ']'"), ("{:::}", "1:2: expected a name"),
    ])
    func `a text that is not JSON5 is refused with the place`(text: String, message: String) {
        let fault = #expect(throws: JSON5Document.Fault.self) { try JSON5Document(text) }
        #expect(fault?.description == message)
    }

    @Test func `nesting has a limit`() throws {
        let limit = JSON5Document.depthLimit
        let text = { (depth: Int) in
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        _ = try JSON5Document(text(limit))
        #expect(throws: JSON5Document.Fault.self) { try JSON5Document(text(limit + 1)) }
    }

    @Test(arguments: [
        "null", "{}", "[]", "[1, 2, ]", "{a: 1, }",
        "[.5, 5., -.5e3, +1, 0x1F, 1E+2]",
        "{$a: 1, _b: 2, é: 3, 'a b': 4}", "// only\n{} // a\n/* comment */", "['a\\\nb', \"it's\"]",
        "\u{FEFF}{}", "\u{A0}{\u{2003}}\u{2028}", "{a\n:\n1\n}",
    ])
    func `JSON5 is taken`(text: String) throws { _ = try JSON5Document(text) }
}

extension JSON5Document {
    /// A text without faults.
    init(_ text: String) throws(Fault) {
        self.init(Array(text.utf8))
        if let fault = faults.first { throw fault }
    }
}
