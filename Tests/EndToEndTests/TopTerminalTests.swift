import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// Keys that change all the time, by a process of their own.
final class TopTraffic {
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
@Suite(.enabled(if: isInstalled("tmux"), "tmux is not installed"))
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
            "tmux",
            ["-u", "-S", directory.path(of: "tmux"), "-f", "/dev/null"] + words,
            environment: ["LC_ALL": "C.UTF-8", "TERM": "xterm"]
        )
    }

    /// With `inShell`, the shell is one that has jobs.
    private func start(columns: Int, rows: Int, inShell: Bool = false) throws {
        let top = "\(builtProgram("statectl")) --socket \(daemon.socketPath) top --interval 200ms"
        var command =
            "stty -a > \(directory.path(of: "before")); \(top); echo ended $?; "
            + "stty -a > \(directory.path(of: "after")); exec sleep 1000"
        if inShell {
            let names = "PS1='$ ' top='\(top)' dir='\(directory.path)'\n"
            let first = try directory.write(names, to: "first")
            command = "exec bash --noprofile --rcfile \(first) -i"
        }
        let size = ["-x", "\(columns)", "-y", "\(rows)"]
        let started = try runCommand(
            "tmux",
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
        try send(how)
        try checkEnd()
    }

    @Test(arguments: ["q", "C-c", "C-\\", "SIGTERM"])
    func `it ends also while the daemon does not answer`(how: String) throws {
        try start(columns: 80, rows: 24)
        defer { end() }
        _ = try waitForScreen { $0[0].hasPrefix("stated ") }
        Glibc.kill(daemon.pid, SIGSTOP)
        defer { Glibc.kill(daemon.pid, SIGCONT) }
        // It waits for an answer then.
        usleep(500_000)
        // What it does not know does nothing.
        try tmux("send-keys", "x")
        try tmux("resize-window", "-x", "100", "-y", "30")
        try send(how)
        try checkEnd()
    }

    @Test(arguments: [false, true])
    func `Ctrl-Z gives the terminal back, and going on takes it again`(isHanging: Bool) throws {
        try start(columns: 80, rows: 24, inShell: true)
        defer { end() }
        _ = try waitForScreen { $0[0].hasPrefix("$") }
        try tmux("send-keys", "stty -a > $dir/before; $top", "Enter")
        _ = try waitForScreen { $0[0].hasPrefix("stated ") }
        if isHanging { Glibc.kill(daemon.pid, SIGSTOP) }
        defer { Glibc.kill(daemon.pid, SIGCONT) }
        if isHanging { usleep(500_000) }
        try tmux("send-keys", "C-z")
        _ = try waitForScreen { $0.contains { $0.contains("Stopped") } }
        #expect(try terminalModes() == "0 1\n")
        let next = "stty -a > $dir/stopped; fg; echo ended $?; stty -a > $dir/after"
        try tmux("send-keys", next, "Enter")
        _ = try waitForScreen { $0[0].hasPrefix("stated ") }
        #expect(try terminalModes() == "1 0\n")
        #expect(try settings("stopped").contains(" icanon "))
        Glibc.kill(daemon.pid, SIGCONT)
        try tmux("send-keys", "q")
        try checkEnd(isFirstLine: false)
    }

    private func send(_ how: String) throws {
        guard how == "SIGTERM" else {
            try tmux("send-keys", how)
            return
        }
        let list = try runCommand("ps", ["-eo", "pid,args"]).lines
        let line = list.first { $0.contains("\(daemon.socketPath) top") && !$0.contains("stty") }
        let pid = try #require(line.flatMap { Int32($0.split(separator: " ")[0]) })
        Glibc.kill(pid, SIGTERM)
    }

    private func terminalModes() throws -> String {
        try tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}").text
    }

    /// What `stty -a` wrote.
    private func settings(_ name: String) throws -> String {
        let deadline = Deadline(after: .seconds(20))
        while true {
            let text = (try? readFile(directory.path(of: name))) ?? []
            if !text.isEmpty { return String(decoding: text, as: UTF8.self) }
            try #require(!deadline.hasPassed)
            usleep(10_000)
        }
    }

    /// The settings without the first line, which has the size.
    private func modes(_ name: String) throws -> [Substring] {
        try Array(settings(name).split(separator: "\n").dropFirst())
    }

    /// It has ended with 0, and the terminal is as it was before.
    private func checkEnd(isFirstLine: Bool = true) throws {
        let left = try waitForScreen { $0.contains { $0.hasPrefix("ended ") } }
        #expect(left.contains("ended 0"), "\(left)")
        // The other screen is gone with all that was on it.
        if isFirstLine {
            #expect(left[0] == "ended 0" && left.dropFirst().allSatisfy { $0.isEmpty }, "\(left)")
        }
        #expect(try modes("before") == modes("after"))
        #expect(try terminalModes() == "0 1\n")
    }
}
