import StateClient
import StateEngine
import StateTestSupport
import Testing

struct ExamplesTests {
    private static let alone = [
        "app-state", "listeners", "persistence-by-subclass", "api-responses", "caching",
        "preferences", "analytics", "protected-items", "numbers-simple", "numbers-reducer",
        "effect-styles", "why-did-it-change", "redux-qbchat", "view-state", "aggregate-root",
        "budget", "live-query", "validation-levels", "main-actor-store", "main-actor-listener",
        "scoped-state", "observation", "state-value", "search", "child-reducers",
        "static-containers", "test-scope", "query-sections", "migrations", "secret-state",
        "kept-history", "set-and-overwrite", "own-names",
    ]
    private static let withDaemon = ["feature-toggle", "who-changed-it", "budget-everywhere"]
    private static let twice = ["redux-qbchat-shared", "budget-shared"]

    @Test(arguments: alone)
    func `the pattern runs and all that it says of itself holds`(name: String) throws {
        check(name, try runCommand(builtProgram("Examples"), [name]))
    }

    @Test(arguments: withDaemon)
    func `the pattern runs on a daemon`(name: String) throws {
        let daemon = try Daemon()
        let environment = ["STATED_SOCKET": daemon.socketPath]
        check(name, try runCommand(builtProgram("Examples"), [name], environment: environment))
        #expect(try daemon.connect().count(of: "examples/") == 0, "it leaves nothing behind")
    }

    @Test(arguments: twice)
    func `the pattern runs in two processes on one daemon`(name: String) throws {
        let daemon = try Daemon()
        let environment = ["STATED_SOCKET": daemon.socketPath]
        let processes = try (0..<2).map { _ in
            try RunningCommand(
                builtProgram("Examples"),
                [Array(name.utf8)],
                environment: environment
            )
        }
        for process in processes { check(name, try process.finish()) }
        #expect(try daemon.connect().count(of: "examples/") == 0, "they leave nothing behind")
    }

    @Test func `without an argument each pattern is named on a line`() throws {
        let result = try runCommand(builtProgram("Examples"), [])
        #expect(result.exitCode == 0)
        let names = result.lines.compactMap { $0.split(separator: ":").first.map(String.init) }
        #expect(Set(names) == Set(Self.alone + Self.withDaemon + Self.twice))
        #expect(names.count == 38)
    }

    @Test func `a pattern that is not there is an error`() throws {
        #expect(try runCommand(builtProgram("Examples"), ["numbers"]).exitCode == 64)
    }

    @Test func `a pattern that does not hold is an error`() throws {
        let environment = ["STATED_SOCKET": "/nonexistent/socket"]
        let result = try runCommand(
            builtProgram("Examples"),
            ["feature-toggle"],
            environment: environment
        )
        #expect(result.exitCode == 1)
        #expect(result.text.contains("DOES NOT HOLD: UNREACHABLE"), "\(result)")
    }

    private func check(_ name: String, _ result: CommandResult) {
        #expect(result.exitCode == 0, "\(result)")
        #expect(result.text.contains("  holds: "), "\(result)")
        #expect(result.lines.first?.hasPrefix("\(name): ") == true, "\(result)")
        // The output of a test names its cases only where they fail.
        print("pattern: \(result.lines.first ?? name)")
    }
}
