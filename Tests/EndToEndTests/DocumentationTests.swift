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

    @Test func `every command of the manual prints what the manual shows`() throws {
        let programs = String(builtProgram("stated").dropLast("/stated".count))
        let result = try check("--programs", programs)
        #expect(result.exitCode == 0, "\(result)")
    }
}
