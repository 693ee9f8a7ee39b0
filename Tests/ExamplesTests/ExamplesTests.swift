import StateTestSupport
import Testing

struct ExamplesTests {
    @Test(arguments: [
        "numbers-simple", "numbers-reducer", "effect-styles", "why-did-it-change", "redux-qbchat",
        "view-state", "aggregate-root",
    ])
    func `the pattern runs and all that it says of itself holds`(name: String) throws {
        let result = try runCommand(builtProgram("Examples"), [name])
        #expect(result.exitCode == 0, "\(result)")
        #expect(result.text.contains("  holds: "), "\(result)")
        // The output of a test names its cases only where they fail.
        print("pattern: \(result.lines.first ?? name)")
    }

    @Test func `without an argument each pattern is named on a line`() throws {
        let result = try runCommand(builtProgram("Examples"), [])
        #expect(result.exitCode == 0)
        #expect(result.lines.allSatisfy { $0.contains(": ") })
        #expect(result.lines.count == 7)
    }

    @Test func `a pattern that is not there is an error`() throws {
        #expect(try runCommand(builtProgram("Examples"), ["numbers"]).exitCode == 64)
    }
}
