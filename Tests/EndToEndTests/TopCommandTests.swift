import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// `statectl top` without a terminal.
struct TopCommandTests {
    let daemon: Daemon

    init() throws { daemon = try Daemon() }

    @Test func `once prints the rates of one interval, the busiest keys and who writes them`()
        throws
    {
        let traffic = try TopTraffic(on: daemon)
        defer { traffic.end() }
        let watch = try Statectl.start(daemon, "watch", "busy/")
        defer { _ = try? watch.finish() }
        try traffic.waitUntilBusy()
        let json = try Statectl.run(daemon, "top", "--once", "--json", "--interval", "500ms").text
        for part in [
            #""commitsPerSecond":"#, #""syncMilliseconds99":"#, #""keys":[{"key":"busy/1","#,
            #""command":"statectl""#, #""storage":"ok""#, #""patterns":"busy/""#,
        ] { #expect(json.contains(part), "\(part): \(json)") }
        let lines = try Statectl.run(daemon, "top", "--once", "--interval", "500ms").lines
        #expect(lines[0].hasPrefix("stated "))
        #expect(lines.contains { $0.hasSuffix("  busy/1") })
        #expect(lines.count <= 24 && lines.allSatisfy { $0.count <= 80 })
        Glibc.kill(watch.pid, SIGKILL)
    }

    @Test func `a daemon that stores nothing has rates, too`() throws {
        let memory = try Daemon("--memory")
        let traffic = try TopTraffic(on: memory)
        defer { traffic.end() }
        try traffic.waitUntilBusy()
        let json = try Statectl.run(memory, "top", "--once", "--json", "--interval", "500ms").text
        for name in ["commitsPerSecond", "changesPerSecond", "bytesPerSecond"] {
            #expect(json.contains("\"\(name)\":") && !json.contains("\"\(name)\":0.0,"), "\(json)")
        }
    }

    @Test func `it is for administrators and terminals, and says so`() throws {
        #expect(try Statectl.run(daemon, "top").exitCode == 2)
        #expect(
            try Statectl.run(daemon, "top", "--json", "--once", "--interval", "1h").exitCode == 2
        )
        let rules = "{ rules: [{ keys: 'a', read: ['root'] }] }"
        let directory = try TemporaryDirectory()
        let other = try Daemon("--config", directory.write(rules, to: "c.json5"))
        #expect(try Statectl.run(other, "top", "--once", "--interval", "100ms").exitCode == 0)
    }

    @Test func `a key that is busy now is the first, although others changed more before`() throws {
        let client = try daemon.connect()
        _ = try client.activity()
        for number in 0..<4_800 { try client.set([], for: Key("old\(number % 120)")) }
        let deadline = Deadline(after: .seconds(60))
        var rows: [Client.ActivityCount] = []
        repeat {
            try #require(!deadline.hasPassed, "\(rows.first.map { "\($0)" } ?? "none")")
            try client.set([], for: "hot")
            usleep(200_000)
            rows = try client.activity().keys
        } while rows.first?.name != Array("hot".utf8)
        #expect(rows[0].changes < rows[1].changes && rows[0].changesPerSecond < 20)
        let json = try Statectl.run(daemon, "top", "--once", "--json", "--interval", "100ms").text
        #expect(json.contains(#""keys":[{"key":"hot","#), "\(json)")
    }

    @Test func `what nobody looks at is not counted, and is no watch`() throws {
        let client = try daemon.connect()
        #expect(try client.activity().keys.isEmpty)
        for number in 0..<3_000 { try client.set([], for: Key("k\(number % 2_500)")) }
        let counted = try client.activity()
        #expect(counted.keys.count == 100)
        #expect(counted.writers.first?.changes == 3_000)
        let status = try client.status()
        #expect(status.first { $0.name == "watches" }?.number == 0)
    }
}

/// Keys that change all the time, by a process of their own.
private final class TopTraffic {
    private let writer: RunningCommand
    private let daemon: Daemon

    init(on daemon: Daemon) throws {
        self.daemon = daemon
        let program = builtProgram("statectl")
        let loop = """
            while :; do "$0" --socket "$1" set busy/1 x; "$0" --socket "$1" set busy/1 y; \
            "$0" --socket "$1" set busy/2 z; done
            """
        let words = ["-c", loop, program, daemon.socketPath]
        writer = try RunningCommand("/bin/sh", words.map { Array($0.utf8) })
    }

    func waitUntilBusy() throws {
        let client = try daemon.connect()
        let deadline = Deadline(after: .seconds(20))
        while try client.count(of: .everything) < 2, !deadline.hasPassed { usleep(10_000) }
    }

    func end() { Glibc.kill(writer.pid, SIGKILL) }
}

/// `statectl top` in a terminal of tmux.
@Suite(.enabled(if: access("/usr/bin/tmux", X_OK) == 0, "tmux is not installed"))
struct TopTerminalTests {
    let daemon: Daemon
    let directory: TemporaryDirectory

    init() throws {
        daemon = try Daemon()
        directory = try TemporaryDirectory()
    }

    @discardableResult
    private func tmux(_ words: String...) throws -> CommandResult {
        try runCommand(
            "/usr/bin/tmux",
            ["-u", "-S", directory.path(of: "tmux"), "-f", "/dev/null"] + words,
            environment: ["LC_ALL": "C.UTF-8", "TERM": "xterm"]
        )
    }

    private func start(columns: Int, rows: Int) throws {
        let top = "\(builtProgram("statectl")) --socket \(daemon.socketPath) top --interval 200ms"
        let command =
            "stty -a > \(directory.path(of: "before")); \(top); echo ended $?; "
            + "stty -a > \(directory.path(of: "after")); exec sleep 1000"
        let size = ["-x", "\(columns)", "-y", "\(rows)"]
        let started = try runCommand(
            "/usr/bin/tmux",
            ["-u", "-S", directory.path(of: "tmux"), "-f", "/dev/null", "new-session", "-d"] + size
                + [command],
            environment: ["LC_ALL": "C.UTF-8", "TERM": "xterm"]
        )
        try #require(started.exitCode == 0, "\(started)")
    }

    private func end() { _ = try? tmux("kill-server") }

    private func screen() throws -> [String] {
        try tmux("capture-pane", "-p").text.split(separator: "\n", omittingEmptySubsequences: false)
            .map(String.init)
    }

    private func waitForScreen(_ isMeant: ([String]) -> Bool) throws -> [String] {
        let deadline = Deadline(after: .seconds(30))
        while true {
            let shown = try screen()
            if isMeant(shown) { return shown }
            try #require(!deadline.hasPassed, "\(shown.joined(separator: "\n"))")
            usleep(50_000)
        }
    }

    private func isComplete(_ shown: [String]) -> Bool {
        shown[0].hasPrefix("stated ") && shown.contains { $0.contains("busy/1") }
    }

    @Test(arguments: [(80, 24), (200, 50)])
    func `the screen has its rows and tables where they belong`(columns: Int, rows: Int) throws {
        let traffic = try TopTraffic(on: daemon)
        defer { traffic.end() }
        let watch = try Statectl.start(daemon, "watch", "busy/")
        defer { Glibc.kill(watch.pid, SIGKILL) }
        try start(columns: columns, rows: rows)
        defer { end() }
        let shown = try waitForScreen { isComplete($0) && $0.contains { $0.contains("synced") } }
        let names = ["stated ", "commits/s ", "changes/s ", "bytes/s ", "commands/s ", "sync ms "]
        for (line, name) in zip(shown, names) { #expect(line.hasPrefix(name), "\(line)") }
        #expect(shown.allSatisfy { $0.count <= columns })
        #expect(shown[1].contains { "▁▂▃▄▅▆▇█".contains($0) })
        let keys = try #require(shown.firstIndex { $0.hasPrefix("CHANGES/S  BYTES/S  KEY") })
        let writers = try #require(
            shown.firstIndex { $0.contains("PID") && $0.contains("COMMAND") }
        )
        let watches = try #require(shown.firstIndex { $0.hasPrefix("LAG") })
        #expect(keys == 7 && watches > keys)
        // Beside each other if there is room.
        #expect(columns < 120 ? writers > keys && writers < watches : writers == keys)
        #expect(shown[watches + 1].hasSuffix("busy/"))
        #expect(shown.dropFirst(watches + 1).contains { $0.contains("synced") })
    }

    @Test func `it follows the size of the terminal`() throws {
        let traffic = try TopTraffic(on: daemon)
        defer { traffic.end() }
        try start(columns: 80, rows: 24)
        defer { end() }
        _ = try waitForScreen(isComplete)
        try tmux("resize-window", "-x", "160", "-y", "40")
        _ = try waitForScreen { shown in
            shown.contains { $0.contains("KEY") && $0.contains("COMMAND") }
        }
        try tmux("resize-window", "-x", "60", "-y", "12")
        _ = try waitForScreen { shown in
            shown.count <= 13 && shown[0].hasPrefix("stated ")
                && shown.allSatisfy {
                    $0.count <= 60 && !($0.contains("KEY") && $0.contains("PID"))
                }
        }
    }

    @Test(arguments: ["q", "C-c", "SIGTERM"])
    func `it ends and leaves the terminal as it was`(how: String) throws {
        let traffic = try TopTraffic(on: daemon)
        defer { traffic.end() }
        try start(columns: 80, rows: 24)
        defer { end() }
        _ = try waitForScreen(isComplete)
        if how == "SIGTERM" {
            let list = try runCommand("/bin/ps", ["-eo", "pid,args"]).lines
            let line = list.first {
                $0.contains("\(daemon.socketPath) top") && !$0.contains("stty")
            }
            let pid = try #require(line.flatMap { Int32($0.split(separator: " ")[0]) })
            Glibc.kill(pid, SIGTERM)
        } else {
            try tmux("send-keys", how)
        }
        let left = try waitForScreen { $0.contains { $0.hasPrefix("ended ") } }
        // The other screen is gone with all that was on it.
        #expect(left[0] == "ended 0" && left.dropFirst().allSatisfy { $0.isEmpty }, "\(left)")
        let deadline = Deadline(after: .seconds(20))
        func settings(_ name: String) -> [UInt8] { (try? readFile(directory.path(of: name))) ?? [] }
        while settings("after").isEmpty, !deadline.hasPassed { usleep(10_000) }
        #expect(settings("before") == settings("after") && !settings("after").isEmpty)
        #expect(try tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}").text == "0 1\n")
    }
}
