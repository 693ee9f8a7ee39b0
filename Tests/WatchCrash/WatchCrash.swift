import Glibc
import StateGuarantees
import StateTestSupport

/// What `scripts/crash watch` starts: watchers and writers on a daemon that is killed, and the six guarantees.
///
/// ```
/// watchcrash --directory DIR --seed N --seconds N --kills N
/// watchcrash judge
/// ```
///
/// The second form checks what another program has recorded; see ``SessionJudge``.
@main
enum WatchCrash {
    static func main() throws {
        signal(SIGPIPE, SIG_IGN)
        var options = ["--directory": "/tmp", "--seed": "1", "--seconds": "600", "--kills": "10"]
        var arguments = CommandLine.arguments.dropFirst()
        if Array(arguments) == ["judge"] {
            var judge = SessionJudge()
            if let line = judge.run() { end(2, "watchcrash judge cannot read '\(line)'") }
            return
        }
        while let name = arguments.popFirst() {
            guard options[name] != nil, let value = arguments.popFirst() else {
                end(2, "watchcrash takes --directory, --seed, --seconds and --kills with a value")
            }
            options[name] = value
        }
        func number(_ name: String) -> Int { options[name].flatMap { Int($0) } ?? 0 }
        var plan = RunPlan(seed: UInt64(number("--seed")))
        (plan.seconds, plan.killCount) = (number("--seconds"), number("--kills"))
        try run(plan, in: TemporaryDirectory(in: options["--directory"] ?? "/tmp"))
    }

    private static func run(_ plan: RunPlan, in directory: TemporaryDirectory) {
        var report = RunReport()
        var sentences: [String]
        do {
            let run = try GuaranteeRun(plan, in: directory)
            defer { report = run.report }
            run.tell = {
                print($0)
                fflush(nil)
            }
            sentences = try run.run().map(\.description)
        } catch {
            sentences = ["\(error)"]
        }
        print(report)
        guard !sentences.isEmpty else { return }
        for session in report.brokenSessions {
            let name = "session-\(session.watcher)-\(session.number).txt"
            _ = try? directory.write(session.transcript, to: name)
        }
        // What is left must outlive this process.
        _ = Unmanaged.passRetained(directory)
        let places =
            "seed \(plan.seed); the data, the sessions and the log are left in \(directory.path)"
        end(1, (sentences.prefix(20) + [places]).joined(separator: "\n"))
    }

    private static func end(_ code: Int32, _ sentence: String) -> Never {
        let line = Array((sentence + "\n").utf8)
        _ = write(STDERR_FILENO, line, line.count)
        exit(code)
    }
}
