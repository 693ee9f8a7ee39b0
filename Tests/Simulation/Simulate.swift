import Glibc

/// What `scripts/simulate` starts: the whole daemon with its threads, time and clients drawn from a seed.
///
/// ```
/// simulate --program stated --kernel kernel.so --directory DIR [--seed S] [--runs N] [--jobs N]
///          [--trace]            one line for each run
///          [--twice]            each seed twice: both must be the same, call for call
///          [--record FILE]      each call of one run
///          [--lost-write N]     every so many writes are lost without a word: that has to be found
/// ```
@main
enum Simulate {
    static func main() {
        signal(SIGPIPE, SIG_IGN)
        var options = [
            "--program": "", "--kernel": "", "--directory": "", "--seed": "1", "--runs": "100",
            "--jobs": "1", "--lost-write": "0", "--record": "",
        ]
        var switches: Set<String> = []
        var arguments = CommandLine.arguments.dropFirst()
        while let name = arguments.popFirst() {
            if ["--twice", "--trace"].contains(name) {
                switches.insert(name)
            } else if options[name] != nil, let value = arguments.popFirst() {
                options[name] = value
            } else {
                end(
                    2,
                    "simulate takes a value with " + options.keys.sorted().joined(separator: ", ")
                )
            }
        }
        guard let program = options["--program"], !program.isEmpty,
            let kernel = options["--kernel"], !kernel.isEmpty,
            let directory = options["--directory"], !directory.isEmpty,
            let seed = options["--seed"].flatMap({ UInt64($0) }),
            let count = options["--runs"].flatMap({ UInt64($0) }),
            let jobCount = options["--jobs"].flatMap({ UInt64($0) }), jobCount > 0,
            let lostWrite = options["--lost-write"].flatMap({ UInt64($0) })
        else { end(2, "simulate needs --program, --kernel and --directory, and numbers") }
        // Each job is a process of its own, as a run has one thread.
        let jobs = (0..<jobCount).map { job -> pid_t in
            let child = fork()
            guard child == 0 else { return child }
            var (isGood, total) = (true, Total())
            for seed in stride(from: seed + job, to: seed + count, by: Int(jobCount)) {
                let place = Run.Place(
                    program: program,
                    kernel: kernel,
                    directory: "\(directory)/\(job)",
                    lostWrite: lostWrite,
                    record: options["--record"].flatMap { $0.isEmpty ? nil : $0 }
                )
                isGood = check(seed, at: place, switches, &total) && isGood
            }
            say("\(total)", to: STDOUT_FILENO)
            exit(isGood ? 0 : 1)
        }
        var isGood = true
        for job in jobs {
            var status: Int32 = 0
            waitpid(job, &status, 0)
            isGood = status == 0 && isGood
        }
        exit(isGood ? 0 : 1)
    }

    /// What the runs of a job did.
    private struct Total: CustomStringConvertible {
        var (seedCount, operationCount, lifeCount, stepCount) = (0, 0, 0, 0 as UInt64)

        var description: String {
            "\(seedCount) seeds: \(operationCount) operations, \(lifeCount) lives, \(stepCount) steps"
        }
    }

    private static func check(
        _ seed: UInt64,
        at place: Run.Place,
        _ switches: Set<String>,
        _ total: inout Total
    ) -> Bool {
        let run = Run(seed: seed, place)
        var faults = run.run()
        total.seedCount += 1
        total.operationCount += run.operationCount
        total.lifeCount += run.trace.count
        total.stepCount += run.steps
        if switches.contains("--twice"), faults.isEmpty {
            let again = Run(seed: seed, place)
            _ = again.run()
            if run.trace != again.trace {
                faults.append("two runs differ: \(run.trace) and \(again.trace)")
            }
        }
        if switches.contains("--trace") { say("seed \(seed): \(run.summary)", to: STDOUT_FILENO) }
        for fault in faults { say("seed \(seed): \(fault)", to: STDOUT_FILENO) }
        return faults.isEmpty
    }

    private static func end(_ code: Int32, _ sentence: String) -> Never {
        say(sentence, to: STDERR_FILENO)
        exit(code)
    }

    private static func say(_ text: String, to file: Int32) {
        let line = Array((text + "\n").utf8)
        _ = write(file, line, line.count)
    }
}
