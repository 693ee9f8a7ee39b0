import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// Times in place of revisions: `list --at`, `revert --to`, `diff` and `history --since`.
struct MomentTests {
    let daemon: Daemon

    init() throws { daemon = try Daemon() }

    private func run(_ arguments: String...) throws -> CommandResult {
        try Statectl.run(["--socket", daemon.socketPath] + arguments)
    }

    /// Sets a key, and waits until the wall clock shows a later millisecond than the commit has.
    @discardableResult
    private func set(_ value: String, for key: Key) throws -> (revision: Int64, time: Int64) {
        let client = try daemon.connect()
        let revision = try client.set(Array(value.utf8), for: key).revision
        let time = try #require(try client.entry(for: key)).time
        while MomentTests.now <= time + 1 { usleep(500) }
        return (revision, time)
    }

    /// Milliseconds since 1970.
    private static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    @Test func `the newest revision at each time is found`() throws {
        var commits: [(revision: Int64, time: Int64)] = []
        for number in 0..<40 {
            commits.append(try set("\(number)", for: try Key("k\(number % 3)")))
        }
        let client = try daemon.connect()
        for commit in commits {
            #expect(try client.revision(at: commit.time) == commit.revision)
            #expect(try client.revision(at: commit.time - 1) == commit.revision - 1)
        }
        #expect(try client.revision(at: 0) == 0)
        #expect(try client.revision(at: .max / 2) == commits.last?.revision)
    }

    @Test func `commits under a clock that was ahead do not hide later ones`() throws {
        let directory = try TemporaryDirectory()
        let clock = try MovedClock(in: directory)
        let daemon = try Daemon(directory: directory, environment: clock.environment)
        let client = try daemon.connect()
        func commit(_ count: Int) throws -> [(revision: Int64, time: Int64)] {
            try (0..<count).map { number in
                let revision = try client.set([UInt8(number)], for: "k").revision
                let time = try #require(try client.entry(for: "k")).time
                usleep(2_500)
                return (revision, time)
            }
        }
        let before = try commit(20)
        try clock.moveAhead()
        let ahead = try commit(30)
        try clock.moveBack()
        let after = try commit(10)
        for commit in before.dropLast() + after {
            #expect(try client.revision(at: commit.time) == commit.revision)
        }
        #expect(try client.revision(at: MomentTests.now) == after.last?.revision)
        #expect(try #require(ahead.first).time > MomentTests.now)
        try daemon.stop()
    }

    @Test func `a time that history prints means the state with that change`() throws {
        for value in ["1", "2", "3"] { try set(value, for: "a") }
        for line in try run("history", "a").lines {
            let words = line.split(separator: "\t")
            let shown = try #require(words.first { $0.contains("T") && $0.contains(":") })
            #expect(try run("get", "a", "--at", String(shown)).text == "\(words.last ?? "")\n")
        }
        let whole = "2999-01-01T00:00:00"
        for good in [".1", ".123456789", "Z", ".5Z", ".123+01:00", "-05:30"] {
            #expect(try run("get", "a", "--at", whole + good).text == "3\n", "\(good)")
        }
    }

    @Test func `what is no time is refused`() throws {
        let long = Array(repeating: "999999999w", count: 16).joined() + " ago"
        let bads = [
            "2026-11-25 08:30.garbage", "2026-11-25 08:30.5", "2026-11-25 08:30:01.",
            "2026-11-25 08:30:01.1234567890", "2026-11-25 08:30:01.5x", "2026-02-31",
            "2025-02-29T00:00:00Z", "08:30+01:00", "2026-11-25T08:30:00+25:00",
            "@9223372036854775807", long,
        ]
        for bad in bads {
            let refused = try run("get", "a", "--at=\(bad)")
            #expect(refused.exitCode == 2, "\(bad)")
            #expect(refused.errorText.contains("--at takes a revision"), "\(bad)")
        }
    }

    @Test func `a time before the history is an error, not an empty state`() throws {
        let first = try set("1", for: "a")
        try set("2", for: "a")
        let last = try set("3", for: "a")
        #expect(try run("compact", "--to", "\(last.revision)").exitCode == 0)
        let error = #expect(throws: StateError.self) {
            try daemon.connect().revision(at: first.time)
        }
        #expect(error?.code == .compacted)
        #expect(try run("list", "--at", "1 week ago").exitCode == 5)
        #expect(try run("list", "--at", "now").text == "a = 3\n")
    }

    @Test func `verbs take times in place of revisions`() throws {
        try set("1", for: "a")
        try set("2", for: "a")
        try set("x", for: "b")
        #expect(try run("list", "--at", "today").exitCode == 0)
        #expect(try run("list", "--at", "yesterday").text.isEmpty)
        #expect(try run("list", "--at", "@99999999999").text == "a = 2\nb = x\n")
        #expect(try run("get", "a", "--at", "1h ago").exitCode == 1)
        #expect(try run("get", "a", "--at", "2999-01-01").text == "2\n")
        #expect(try run("diff", "yesterday", "now").text == "+ a = 2\n+ b = x\n")
        #expect(try run("diff", "1", "now", "a").text == "- a = 1\n+ a = 2\n")
        #expect(try run("diff", "-2h", "b").text == "+ b = x\n")
        #expect(try run("history", "a", "--since", "1 minute ago").lines.count == 2)
        #expect(try run("history", "a", "--since", "2").lines.count == 1)
        #expect(try run("history", "a", "--since", "2999-01-01T00:00:00Z").exitCode == 0)
        #expect(try run("revert", "b", "--to", "10 minutes ago").text == "1\n")
        #expect(try run("list").text == "a = 2\n")
        for bad in ["soon", "5 minutes", "1 fortnight ago", "2026-13-01", "25:00", "", "ago"] {
            let refused = try run("revert", "a", "--to", bad)
            #expect(refused.exitCode == 2 && refused.errorText.contains("--to takes a revision"))
        }
        #expect(try run("revert", "a", "--to", "now").exitCode == 2)
    }
}
