import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// The command of `statectl watch`: what it leaves behind, and what waits for it.
struct WatchCommandTests {
    private let daemon: Daemon
    private let log: String

    init() throws {
        daemon = try Daemon()
        log = daemon.directory.path(of: "handled")
    }

    /// Runs `script` for each change below `w/`, with the words in front of `statectl`.
    private func start(
        behind words: [String] = [],
        _ options: [String],
        _ script: String
    ) throws -> RunningCommand {
        let statectl = [builtProgram("statectl"), "--socket", daemon.socketPath, "watch", "w/"]
        let all = words + statectl + options + ["--", "sh", "-c", script]
        return try RunningCommand(
            all[0],
            all.dropFirst().map { Array($0.utf8) },
            environment: ["LOG": log]
        )
    }

    private var lines: [String] {
        let bytes = (try? readFile(log)) ?? []
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    private func waitForLine(_ line: String) throws {
        guard eventually({ lines.contains(line) }) else {
            throw SystemFailure("no line '\(line)' in \(lines)")
        }
    }

    @Test(arguments: [SIGKILL, SIGTERM])
    func `a command is asked to end with the watch that runs it, however that ends`(
        signal: Int32
    ) throws {
        let watch = try start(
            ["--name", "h"],
            """
            trap 'echo ended >> "$LOG"; exit' TERM
            echo begun >> "$LOG"
            for turn in $(seq 400); do sleep 0.05; done
            """
        )
        try daemon.connect().set([0x76], for: "w/k")
        try waitForLine("begun")
        watch.signal(signal)
        try waitForLine("ended")
        #expect(watch.wait() == 128 + signal)
        #expect(lines == ["begun", "ended"])
    }

    @Test func `a command's end is known also where who started the watch ignores it`() throws {
        let watch = try start(
            behind: ["env", "--ignore-signal=CHLD"],
            ["--name", "h", "--from", "0", "--count", "2"],
            #"echo "$STATED_KEY" >> "$LOG""#
        )
        for key in ["w/1", "w/2"] as [Key] { try daemon.connect().set([0x76], for: key) }
        try waitForLine("w/2")
        #expect(watch.wait() == 0)
        #expect(lines == ["w/1", "w/2"])
    }

    @Test func `past compaction the command is run for the gap, then once for each key`() throws {
        let client = try daemon.connect()
        let script = #"echo "$STATED_OP $STATED_KEY $(cat)" >> "$LOG""#
        try client.set([0x31], for: "w/a")
        #expect(try start(["--name", "h", "--from", "0", "--count", "1"], script).wait() == 0)
        for value in [0x32, 0x33] as [UInt8] { try client.set([value], for: "w/b") }
        let last = try client.set([0x34], for: "w/c").revision + 1
        #expect(try Statectl.run(daemon, "delete", "w/c").exitCode == 0)
        #expect(try Statectl.run(daemon, "compact", "--to", "\(last)").exitCode == 0)
        #expect(try start(["--name", "h", "--count", "2"], script).wait() == 0)
        #expect(lines == ["set w/a 1", "gap  ", "snapshot w/a 1", "snapshot w/b 3"])
        let revision = try client.set([0x35], for: "w/b").revision
        #expect(try start(["--name", "h", "--count", "1"], script).wait() == 0)
        #expect(lines.dropFirst(4) == ["set w/b 5"])
        #expect(try client.handlers().map(\.position) == [revision])
    }

    @Test func `what waits for the command waits in the daemon`() throws {
        let client = try daemon.connect()
        let value = [UInt8](repeating: 0x76, count: 32 << 10)
        for _ in 0..<1_500 { try client.set(value, for: "w/k") }
        let watch = try start(
            ["--name", "h", "--from", "0", "--count", "80"],
            #"grep VmHWM "/proc/$PPID/status" >> "$LOG""#
        )
        #expect(watch.wait() == 0)
        let peaks = lines.compactMap { line in
            line.split { !$0.isNumber }.first.flatMap { Int($0) }
        }
        #expect(peaks.count == 80)
        // The first have made room for what is read at once.
        #expect(peaks[79] - peaks[9] < 4 << 10, "KiB: \(peaks)")
    }
}
