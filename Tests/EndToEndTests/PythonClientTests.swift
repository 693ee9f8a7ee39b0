import Glibc
import StateTestSupport
import Testing

/// `Tests/PythonClient`: a client that was written from docs/protocol.md alone.
struct PythonClientTests {
    @Test func `a client written from the protocol page does what the page says`() throws {
        let result = try RunningCommand(
            "env",
            [
                "STATED=\(builtProgram("stated"))", "STATECTL=\(builtProgram("statectl"))",
                "python3", "-B", "-m", "unittest", "discover", "-s",
                packageRoot + "/Tests/PythonClient",
            ]
            .map { Array($0.utf8) }
        )
        .finish(within: .seconds(300))
        #expect(result.exitCode == 0, "\(result)")
    }
}
