import Glibc

/// A run over many recordings, shared among processes.
///
/// Each process says on standard output what it has checked, and leaves what it found in a file of
/// its own; the one that started them sums up.
struct Run {
    private let plan: Plan
    private let options: [String: String]
    private let recordings: [Int]
    private let jobCount: Int
    private let directory: String
    /// Which of the processes this is; nil for the one that starts them.
    let job: Int?

    init?(_ options: [String: String]) {
        func number(_ name: String) -> Int? { options[name].flatMap { Int($0) } }
        guard let program = options["--program"], let directory = options["--directory"],
            !program.isEmpty, !directory.isEmpty
        else { return nil }
        (self.options, self.directory) = (options, directory)
        job = number("--job")
        jobCount = max(1, number("--jobs") ?? 1)
        var plan = Plan()
        plan.program = program
        plan.states = max(2, number("--each") ?? plan.states)
        plan.seed = UInt64(number("--seed") ?? 1)
        plan.ignored = options["--no-sync"].flatMap { $0.isEmpty ? nil : $0 == "all" ? "" : $0 }
        plan.kept = options["--kept"].flatMap { $0.isEmpty ? nil : $0 }
        plan.directory = StateDirectory(path: "\(directory)/\(job ?? 0)")
        self.plan = plan
        let count = ((number("--states") ?? 3_000) + plan.states - 1) / plan.states
        recordings = number("--recording").map { [$0] } ?? Array(0..<max(1, count))
    }

    // MARK: The processes

    /// Starts the processes, and sums up what they found.
    ///
    /// - Returns: The exit status: 0 if there is no difference; with syncs that do nothing, if losses
    ///   were found.
    func startJobs() -> Int32 {
        let jobs = (0..<min(jobCount, recordings.count)).map(start)
        var isWhole = true
        for job in jobs {
            var status: Int32 = 0
            while waitpid(job, &status, 0) < 0, errno == EINTR {}
            isWhole = isWhole && status == 0
        }
        var total = Findings()
        for job in jobs.indices {
            guard let text = try? Files.contents(of: outcome(job)) else { return 1 }
            total.add(String(decoding: text, as: UTF8.self))
            unlink(outcome(job))
        }
        print(total.summary)
        return isWhole && isExpected(total) ? 0 : 1
    }

    private func isExpected(_ total: Findings) -> Bool {
        guard plan.ignored == nil else {
            return total.differences.contains { $0.difference.kind == .lost }
        }
        return total.differences.isEmpty
    }

    private func start(job: Int) -> pid_t {
        var words = [CommandLine.arguments[0]]
        for (name, value) in options where name != "--job" { words += [name, value] }
        words += ["--job", "\(job)"]
        var arguments = words.map { strdup($0) }
        arguments.append(nil)
        defer { for argument in arguments { free(argument) } }
        var process: pid_t = 0
        posix_spawn(&process, "/proc/self/exe", nil, nil, arguments, environ)
        return process
    }

    private func outcome(_ job: Int) -> String { "\(directory)/outcome\(job)" }

    /// Checks this process's share of the recordings.
    func work() -> Int32 {
        var total = Findings()
        var code: Int32 = 0
        for number in recordings where recordings.count == 1 || number % jobCount == job {
            var checker = Checker(plan, recording: number)
            do throws(Failure) {
                let findings = try checker.run()
                total.add(findings)
                print("recording \(number), \(checker.kind.rawValue): \(findings.counts)")
                fflush(nil)
            } catch {
                code = 1
                print("recording \(number), \(checker.kind.rawValue), failed: \(error)")
            }
        }
        Files.remove(plan.directory.path)
        guard let job, (try? Files.write(total.text, to: outcome(job))) != nil else { return 1 }
        return code
    }
}
