import Glibc
import StateTestSupport
import Testing

/// What `statectl` prints on a terminal, and what only there.
@Suite(.enabled(if: isInstalled("script"), "script is not installed"))
struct TerminalOutputTests {
    private let daemon: Daemon

    init() throws {
        daemon = try Daemon()
        #expect(try Statectl.run(daemon, "set", "k/a=1", "k/b=2").exitCode == 0)
        #expect(try Statectl.run(daemon, "set", "k/a", "3").exitCode == 0)
    }

    /// Runs `statectl` in a terminal of its own, with these variables.
    private func run(_ words: String, _ variables: [String: String] = [:]) throws -> String {
        let line = "\(builtProgram("statectl")) --socket \(daemon.socketPath) \(words)"
        let result = try runCommand(
            "script",
            ["--quiet", "--return", "--command", line, "/dev/null"],
            environment: ["TERM": "xterm", "NO_COLOR": "1"].merging(variables) { $1 }
        )
        #expect(result.exitCode == 0, "\(result)")
        return result.text.replacing("\r\n", with: "\n")
    }

    private static let pager = "sed 's/^/page: /'"

    @Test func `a list on a terminal goes through the user's pager`() throws {
        let pages = "page: k/a = 3\npage: k/b = 2\n"
        #expect(try run("list", ["PAGER": Self.pager]) == pages)
        #expect(try run("list --keys", ["PAGER": Self.pager]) == "page: k/a\npage: k/b\n")
    }

    @Test(arguments: [
        ("list --no-pager", ["PAGER": pager]), ("list", ["PAGER": ""]), ("list", [:]),
        ("list", ["PAGER": pager, "TERM": "dumb"]), ("list", ["PAGER": "cat"]),
        ("list | cat", ["PAGER": pager]),
    ])
    func `it does not otherwise`(words: String, variables: [String: String]) throws {
        #expect(try run(words, variables) == "k/a = 3\nk/b = 2\n")
    }

    @Test func `a pager that is left early, or cannot be run, is no error`() throws {
        #expect(try run("list", ["PAGER": "head -n 1"]) == "k/a = 3\n")
        #expect(try run("list", ["PAGER": "no-such-pager 2>/dev/null"]) == "")
    }

    @Test func `keys of a list and lines of a diff have colours`() throws {
        let colours = ["NO_COLOR": ""]
        #expect(
            try run("list", colours)
                == "\u{1B}[1mk/a\u{1B}[m = 3\n\u{1B}[1mk/b\u{1B}[m = 2\n"
        )
        #expect(
            try run("diff 1 2", colours)
                == "\u{1B}[31m- k/a = 1\u{1B}[m\n\u{1B}[32m+ k/a = 3\u{1B}[m\n"
        )
    }

    @Test(arguments: [
        ("list", ["NO_COLOR": "1"]), ("list", ["NO_COLOR": "", "TERM": "dumb"]),
        ("list | cat", ["NO_COLOR": ""]),
    ])
    func `NO_COLOR, a simple terminal and a pipe have none`(
        words: String,
        variables: [String: String]
    ) throws {
        #expect(try run(words, variables) == "k/a = 3\nk/b = 2\n")
    }
}
