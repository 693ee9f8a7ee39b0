import Glibc
import StateTestSupport
import Testing

#if DEBUG
private let isOptimised = false
#else
private let isOptimised = true
#endif

/// What a client without rights costs the others, however it abuses the daemon.
@Suite(.serialized, .enabled(if: isOptimised, "it measures what is optimised"))
struct AbuseTests {
    private static func rules(_ directory: String) -> String {
        """
        { rules: [
          { keys: "/", write: ["\(geteuid())"], admin: ["\(geteuid())"] },
          { keys: "abuse/", write: ["*"] },
          { keys: "abuse/files/", backing: "file", directory: "\(directory)" },
        ] }
        """
    }
    private static let kinds = [
        "keys", "exec", "glob", "scan", "list", "watches", "patterns", "endings", "delete",
        "transactions", "leases", "history", "half", "deaf", "errors", "arrivals",
        "copies", "watched", "channels", "values", "appends", "files",
    ]

    /// A PING waits for 100 ms at most, or three times as long as the longest of one second without an abuser.
    ///
    /// This machine has other work: the best of three rounds of a second counts. The abuser is another user where the test is root's.
    @Test(arguments: kinds)
    func `one client without rights keeps no other waiting`(kind: String) throws {
        let directory = try TemporaryDirectory()
        chmod(directory.path, 0o711)
        let files = directory.path + "/files"
        mkdir(files, 0o755)
        let file = try directory.write(AbuseTests.rules(files), to: "stated.json5")
        let daemon = try Daemon(["--config", file, "--socket-mode", "0666"], directory: directory)
        let arguments = [
            "abuse", "--socket", daemon.socketPath, "--pid", "\(daemon.pid)", "--kinds", kind,
            "--user", "nobody", "--seconds", "1", "--rounds", "3", "--enough-us", "50000",
        ]
        let bench = try RunningCommand(builtProgram("statebench"), arguments.map { Array($0.utf8) })
        let result = try bench.finish(within: .seconds(180))
        try #require(result.exitCode == 0, "\(result.errorText.prefix(300))")
        let found = AbuseTests.numbers(result.text)
        let (alone, beside) = (
            try #require(found["idle_ping_max_us"]), try #require(found["\(kind)_ping_max_us"])
        )
        #expect(beside <= max(100_000, 3 * alone), "\(beside) us beside it, \(alone) us without")
        // The budget of all clients together, and what the daemon has without them.
        let memory = try #require(found["\(kind)_peak_bytes"])
        let machine = sysconf(Int32(_SC_PHYS_PAGES)) * sysconf(Int32(_SC_PAGESIZE))
        let budget = Double(min(512 << 20, machine / 4))
        let idle = try #require(found["idle_peak_bytes"])
        #expect(memory <= idle + budget, "\(memory) bytes beside it, \(idle) without")
    }

    /// Of lines `name value`.
    private static func numbers(_ text: String) -> [String: Double] {
        var numbers: [String: Double] = [:]
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count == 2 else { continue }
            numbers[String(words[0])] = Double(words[1])
        }
        return numbers
    }
}
