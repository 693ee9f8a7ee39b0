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

    @Test(arguments: ["", "{", "{a", "{a:", "[1,", "{a:}", "{:::}", "\"", "/*", "[[[", "{'\\"])
    func `a text that is no JSON5 ends the search`(text: String) {
        _ = OptionPlaces(text).place(of: OptionPath().member("a"))
    }
}
