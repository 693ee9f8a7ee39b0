import Glibc
import StateTestSupport
import Testing

/// Packages of others: they build this one anew, so this runs if `STATED_OUTSIDE` is set, as in `.ci/run`.
@Suite(.enabled(if: getenv("STATED_OUTSIDE") != nil, "run with STATED_OUTSIDE=1"))
struct OutsidePackageTests {
    @Test func `a package outside builds what it imports, and links nothing else`() throws {
        let result = try RunningCommand(packageRoot + "/scripts/outside", [])
            .finish(within: .seconds(1_800))
        #expect(result.exitCode == 0, "\(result)")
        for name in ["containers", "client", "sqlite", "manual"] {
            let libraries = result.lines.first { $0.hasPrefix("\(name): ") } ?? ""
            #expect(libraries.contains("libswiftCore"), "\(name)")
            #expect(
                libraries.contains("libsqlite3") == ["sqlite", "manual"].contains(name),
                "\(libraries)"
            )
            #expect(!libraries.contains("Foundation") || name == "client", "\(libraries)")
        }
    }
}
