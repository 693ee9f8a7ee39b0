import StateContainers
import StateRules
import Testing

/// Options are found in the text that a person wrote.
struct OptionPlacesTests {
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

    private func place(_ steps: OptionPath.Step...) -> String? {
        let path = steps.reduce(OptionPath()) { path, step in
            switch step {
            case .member(let name): path.member(name)
            case .element(let index): path.element(index)
            }
        }
        return OptionPlaces(text).place(of: path)?.description
    }

    @Test func `numbers keep the digits in which they are written, where what was read has others`()
    {
        let text =
            "{ a: 9007199254740993.5, b: [1.50, 12345678901234567890123456789012345678901, 1e3], c: 0x10 }"
        let read = JSONValue.object([
            "a": .number("9007199254740993"),
            "b": .array([
                .number("1.5"), .number("12345678901234567890123456789012345678900"),
                .number("1000"),
            ]),
            "c": .number("16"),
        ])
        let exact = JSONValue.object([
            "a": .number("9007199254740993.5"),
            "b": .array([
                .number("1.5"), .number("12345678901234567890123456789012345678901"),
                .number("1000"),
            ]),
            "c": .number("16"),
        ])
        #expect(OptionPlaces(text).exact(read) == exact)
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

    @Test func `a member that stands twice is found, however it is quoted`() {
        #expect(OptionPlaces("{a: 1, b: {c: 1}, 'a': 2}").repeated?.description == "a")
        #expect(
            OptionPlaces("{a: {x: 1}, b: {x: 1, y: 2, \"\\u0078\": 3}}").repeated?.description
                == "b.x"
        )
        #expect(OptionPlaces("[{a: 1}, {a: 1}]").repeated == nil)
    }

    @Test(arguments: [
        ("", "1:1: a value is missing"), ("{", "1:2: '}' is missing"),
        ("{a", "1:3: ':' is missing behind a"), ("{a:", "1:4: a value is missing"),
        ("[1,", "1:4: ']' is missing"), ("{a: 1,, }", "1:7: a name is missing"),
        ("{\n  a: 1\n  b: 2\n}", "3:3: ',' or '}' is missing"),
        ("{a: tru}", "1:5: 'tru' is no value; a text stands in quotes"),
        ("{a: /x}", "1:5: a value is missing"), ("{a: 'x\n'}", "1:5: a text has no end"),
        ("{} {}", "1:4: something follows the configuration"),
        ("/* x", "1:1: a comment has no end"),
        ("{a-b: 1}", "1:2: the name 'a-b' needs quotes"),
        ("{a: 01}", "1:5: '01' is no value; a text stands in quotes"),
        ("{a: 1..2}", "1:5: '1..2' is no value; a text stands in quotes"),
        ("{'\\", "1:2: a text has no end"),
        ("[[[", "1:4: ']' is missing"), ("{:::}", "1:2: a name is missing"),
    ])
    func `a text that is no JSON5 is told where it ceases to be`(text: String, message: String) {
        let fault = OptionPlaces(text).fault
        #expect(fault.map { "\($0.place): \($0.message)" } == message)
    }

    @Test(arguments: [
        "null", "{}", "[]", "[1, 2, ]", "{a: 1, }",
        "[.5, 5., -.5e3, +1, 0x1F, 1E+2, Infinity, -NaN]",
        "{$a: 1, _b: 2, é: 3, 'a b': 4}", "// only\n{} // a\n/* comment */", "['a\\\nb', \"it's\"]",
        "\u{FEFF}{}", "{a\n:\n1\n}",
    ])
    func `what is JSON5 has no fault`(text: String) {
        #expect(OptionPlaces(text).fault == nil)
    }
}
