import Glibc

/// Measures how long ordinary clients wait beside an abuser of each kind, and what memory the
/// daemon needs for it.
enum AbuseCommand {
    private static let keyCount = 20_000

    static func run(_ options: Options) throws(BenchError) {
        let kinds = try self.kinds(options.text("kinds", standard: AbuseKind.names))
        let socket = try options.text("socket")
        let seconds = try options.number("seconds", standard: 3)
        let rounds = try options.number("rounds", standard: 1)
        let enough = try options.number("enough-us", standard: 0, least: 0)
        let server = try options.number("pid", standard: 0, least: 0)
        try fill(socket)
        let clients = try OrdinaryClients(socket: socket, keyCount: keyCount)
        // Not counted: the first second includes connecting and the first replies.
        _ = try clients.run(seconds: 1)
        print("idle", [Round(try clients.run(seconds: seconds), peak: try peak(of: server))])
        for kind in kinds {
            var measured: [Round] = []
            repeat {
                try forgetPeak(of: server)
                let abuser = try start(kind, options)
                // It first sets what it needs.
                let isLarge =
                    kind.largeByteCount > 0 || kind.leavesTogether || kind.bystanderCount > 0
                MonotonicClock.pause(microseconds: isLarge ? 1_000_000 : 300_000)
                let report = try clients.run(seconds: seconds)
                measured.append(Round(report, peak: try peak(of: server)))
                try end(abuser)
                try settle(clients)
            } while measured.count < rounds
                && (measured.map(\.pingMaximum).min() ?? 0) > Double(enough)
            print(kind.rawValue, measured)
        }
    }

    /// Waits until a PING takes at most 20 ms for a second, because the abuser's commands are done;
    /// at most a minute.
    private static func settle(_ clients: OrdinaryClients) throws(BenchError) {
        let end = MonotonicClock.now + 60_000_000_000
        while try clients.run(seconds: 1).pings.microseconds(at: 1) > 20_000 {
            guard MonotonicClock.now < end else { return }
        }
    }

    /// The results of one round.
    private struct Round {
        var getHigh: Double
        var pingMaximum: Double
        var setMaximum: Double
        var peak: Int

        init(_ report: OrdinaryClients.Report, peak: Int) {
            getHigh = report.gets.microseconds(at: 0.99)
            pingMaximum = report.pings.microseconds(at: 1)
            setMaximum = report.sets.microseconds(at: 1)
            self.peak = peak
        }
    }

    /// The best of the rounds, because others use the machine too; and the most memory.
    private static func print(_ name: String, _ rounds: [Round]) {
        Swift.print("\(name)_get_p99_us \(rounds.map(\.getHigh).min() ?? 0)")
        Swift.print("\(name)_ping_max_us \(rounds.map(\.pingMaximum).min() ?? 0)")
        Swift.print("\(name)_set_max_us \(rounds.map(\.setMaximum).min() ?? 0)")
        Swift.print("\(name)_peak_bytes \(rounds.map(\.peak).max() ?? 0)")
        fflush(nil)
    }

    private static func kinds(_ list: String) throws(BenchError) -> [AbuseKind] {
        var kinds: [AbuseKind] = []
        for name in list.split(separator: ",") {
            guard let kind = AbuseKind(rawValue: String(name)) else {
                throw .usage("--kinds expects some of \(AbuseKind.names), not '\(name)'")
            }
            kinds.append(kind)
        }
        return kinds
    }

    private static func fill(_ socket: String) throws(BenchError) {
        var plan = Plan(
            socket: socket,
            clients: 4,
            pipeline: 128,
            requests: keyCount,
            keys: keyCount,
            valueByteCount: 64,
            writePercent: 100,
            seed: 1
        )
        plan.isSequential = true
        _ = try ClosedLoop(plan).run()
    }

    // MARK: The abuser

    private static func start(
        _ kind: AbuseKind,
        _ options: Options
    ) throws(BenchError) -> pid_t {
        var command = ["/proc/self/exe", "abuser", "--kind", kind.rawValue]
        command += ["--socket", try options.text("socket")]
        let user = options.text("user", standard: "")
        if !user.isEmpty { command += ["--user", user] }
        return try ProcessTable.start(command)
    }

    /// Ends the abuser; it must still have been running.
    private static func end(_ abuser: pid_t) throws(BenchError) {
        kill(abuser, SIGKILL)
        let status = try ProcessTable.end(of: abuser)
        guard status & 0x7F == SIGKILL else {
            throw .failed("the abuser ended with status \(status)")
        }
    }

    // MARK: Memory

    /// The peak memory of a process since it was last reset; 0 if no process is named.
    ///
    /// VmHWM of proc_pid_status(5).
    private static func peak(of pid: Int) throws(BenchError) -> Int {
        guard pid > 0 else { return 0 }
        guard let text = TextFile.read("/proc/\(pid)/status") else {
            throw .failed("process \(pid) does not exist")
        }
        let line = text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        let words = line?.split(whereSeparator: { $0 == " " || $0 == "\t" }) ?? []
        return words.count > 1 ? (Int(words[1]) ?? 0) << 10 : 0
    }

    private static func forgetPeak(of pid: Int) throws(BenchError) {
        guard pid > 0 else { return }
        let file = open("/proc/\(pid)/clear_refs", O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { throw .system("open /proc/\(pid)/clear_refs") }
        defer { close(file) }
        guard write(file, "5", 1) == 1 else { throw .system("write /proc/\(pid)/clear_refs") }
    }
}
