import Glibc

/// What `scripts/faults --states` starts: crash states of the daemon, built from what it did to
/// files.
///
/// ```
/// crashstates --program stated --directory DIR [--states N] [--seed S] [--jobs N]
///             [--recording N]      this one alone
///             [--each N]           so many states of each, and those that crash twice
///             [--no-sync all]      takes syncs for nothing: then losses have to be found
///             [--no-sync TEXT]     the same of files with this in their path, or at its end: db$
///             [--kept DIR]         where states with differences are put
/// ```
@main
enum CrashStates {
    static func main() {
        signal(SIGPIPE, SIG_IGN)
        var options = [
            "--program": "", "--directory": "", "--states": "3000", "--seed": "1", "--jobs": "4",
            "--recording": "", "--no-sync": "", "--kept": "", "--job": "",
            "--each": "24",
        ]
        var arguments = CommandLine.arguments.dropFirst()
        while let name = arguments.popFirst() {
            guard options[name] != nil, let value = arguments.popFirst() else {
                end(
                    2,
                    "crashstates takes a value with "
                        + options.keys.sorted().joined(separator: ", ")
                )
            }
            options[name] = value
        }
        guard let run = Run(options) else { end(2, "crashstates needs --program and --directory") }
        exit(run.job == nil ? run.startJobs() : run.work())
    }

    private static func end(_ code: Int32, _ sentence: String) -> Never {
        let line = Array((sentence + "\n").utf8)
        _ = write(STDERR_FILENO, line, line.count)
        exit(code)
    }
}
