import Glibc

/// A run over many recordings, shared among processes.
struct Run {
    private let plan: Plan
    private let options: [String: String]
    private let recordings: [Int]
    private let jobCount: Int
    /// Which of the processes this is; nil for the one that starts them.
    let job: Int?

    init?(_ options: [String: String]) {
        func number(_ name: String) -> Int? { options[name].flatMap { Int($0) } }
        guard let program = options["--program"], let directory = options["--directory"],
            !program.isEmpty, !directory.isEmpty
        else { return nil }
        self.options = options
        job = number("--job")
        jobCount = max(1, number("--jobs") ?? 1)
        var plan = Plan()
        plan.program = program
        plan.seed = UInt64(number("--seed") ?? 1)
        plan.ignoresSyncs = options["--no-sync"] == "yes"
        plan.kept = options["--kept"].flatMap { $0.isEmpty ? nil : $0 }
        plan.directory = StateDirectory(path: "\(directory)/\(job ?? 0)")
        self.plan = plan
        let count = max(1, ((number("--states") ?? 3_000) * 4 / 5 + plan.states - 1) / plan.states)
        recordings = number("--recording").map { [$0] } ?? Array(0..<count)
    }

    /// Starts the processes, and sums up what they say.
    func startJobs() -> Int32 {
        var jobs: [pid_t] = []
        for job in 0..<min(jobCount, recordings.count) {
            var words = [CommandLine.arguments[0], "--job", "\(job)"]
            for (name, value) in options where name != "--job" { words += [name, value] }
            var arguments = words.map { strdup($0) }
            arguments.append(nil)
            var process: pid_t = 0
            guard posix_spawn(&process, "/proc/self/exe", nil, nil, arguments, environ) == 0 else {
                return 1
            }
            jobs.append(process)
        }
        var code: Int32 = 0
        for job in jobs {
            var status: Int32 = 0
            while waitpid(job, &status, 0) < 0, errno == EINTR {}
            if status != 0 { code = 1 }
        }
        return code
    }

    /// Checks this process's share of the recordings; one line for each recording and each difference.
    func work() -> Int32 {
        var code: Int32 = 0
        for number in recordings where recordings.count == 1 || number % jobCount == job {
            var checker = Checker(plan, recording: number)
            do throws(Failure) {
                let findings = try checker.run()
                print(
                    "recording \(number) \(checker.kind.rawValue): \(findings.eventCount) events, \(findings.commitCount) commits, \(findings.stateCount) states, \(findings.secondCrashCount) of them crashed twice, \(findings.differences.count) differences"
                )
                for (difference, state) in findings.differences {
                    code = 1
                    print("difference \(difference.kind): \(difference.text)\n    \(state)")
                }
            } catch {
                code = 1
                print("failure of recording \(number) \(checker.kind.rawValue): \(error)")
            }
        }
        return code
    }
}
