import Glibc
import StateTestSupport
import Testing

/// `Tests/PythonClient`: a client that was written from docs/protocol.md alone.
struct PythonClientTests {
    @Test func `a client written from the protocol page does what the page says`() throws {
        let result = try runPythonTests(in: "Tests/PythonClient")
        #expect(result.exitCode == 0, "\(result)")
    }
}

/// Runs Python's unit tests of a directory of this package, with the programs that were built.
func runPythonTests(in directory: String) throws -> CommandResult {
    let words = ["-B", "-m", "unittest", "discover", "-s", packageRoot + "/" + directory]
    let programs = ["STATED": builtProgram("stated"), "STATECTL": builtProgram("statectl")]
    return try RunningCommand("python3", words.map { Array($0.utf8) }, environment: programs)
        .finish(within: .seconds(300))
}
