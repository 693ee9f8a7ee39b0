import Glibc
import StateTestSupport
import Testing

/// The manual: every command, configuration and script of README.md and docs/ runs.
///
/// `OutsidePackageTests` compiles the Swift.
struct DocumentationTests {
    private func check(_ arguments: String...) throws -> CommandResult {
        let command = packageRoot + "/scripts/check-docs"
        return try RunningCommand(command, arguments.map { Array($0.utf8) })
            .finish(within: .seconds(600))
    }

    @Test func `every link leads somewhere, and every page keeps to its form`() throws {
        let result = try check("--links")
        #expect(result.exitCode == 0, "\(result)")
    }

    @Test(
        arguments: [
            ("Checked: `let limit = 1` is in `Sources/Sample.swift`.", nil),
            ("Checked: `let limit = 2` is not in `Sources`.", nil),
            ("Checked: the test `a limit holds` is in `Sources/Sample.swift`.", nil),
            ("Checked: `let limit = 2` is in `Sources`.", "'let limit = 2' is in Sources"),
            ("Checked: `let limit = 1` is not in `Sources`.", "'let limit = 1' is not in Sources"),
            ("Checked: the test `a limit` is in `Sources`.", "the test 'a limit' is in Sources"),
            ("Checked: `let limit = 1` is in `Sources/Gone.swift`.", "there is no Swift file"),
            ("Checked by people.", "each decision has lines 'Checked: …'"),
        ] as [(String, String?)]
    )
    func `a decision whose claim about the source is false is named`(
        claim: String,
        failure: String?
    ) throws {
        let directory = try TemporaryDirectory()
        for folder in ["docs", "docs/decisions", "Sources"] {
            #expect(mkdir(directory.path(of: folder), 0o755) == 0)
        }
        let copy = try runCommand("cp", ["-r", packageRoot + "/scripts", directory.path])
        #expect(copy.exitCode == 0, "\(copy)")
        let source = "let limit = 1\nfunc `a limit holds`() {}\n"
        try directory.write(source, to: "Sources/Sample.swift")
        let page = "# Title\n\nDecided 2026-11-23, reviewed 2026-11-29. \(claim)\n"
        let path = try directory.write(page, to: "docs/decisions/sample.md")
        let result = try runCommand(directory.path(of: "scripts/check-docs"), ["--links", path])
        #expect(result.exitCode == (failure == nil ? 0 : 1), "\(result)")
        #expect(result.errorText.contains(failure ?? ""), "\(result)")
    }

    @Test func `every command of the manual prints what the manual shows`() throws {
        let programs = String(builtProgram("stated").dropLast("/stated".count))
        let result = try check("--programs", programs)
        #expect(result.exitCode == 0, "\(result)")
    }
}
