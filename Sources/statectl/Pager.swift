import CLinux
@preconcurrency import Glibc

/// The program of `$PAGER`, which shows long output a screen at a time.
///
/// While it runs, standard output is a pipe to it. The terminal's signals are its own.
struct Pager {
    private let child: pid_t

    /// Starts the program if there is one, and makes it the reader of standard output.
    ///
    /// - Returns: Nil if standard output is not a terminal, or if no pager is set or can be started:
    ///   then the output is written as it is.
    static func start() -> Pager? {
        guard isatty(STDOUT_FILENO) == 1, environmentVariable("TERM") != "dumb",
            let program = environmentVariable("PAGER"), program != "cat"
        else { return nil }
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { for end in ends { close(end) } }
        // It shows colours, ends at once if all fits on the screen, and leaves the text there.
        let options = environmentVariable("LESS") == nil ? ["LESS=FRX".bytes] : []
        // The variable is shell code: it may contain options.
        let arguments = cStrings(["/bin/sh", "-c", program].map(\.bytes))
        let environment = cStrings(inheritedEnvironment(without: options) + options)
        defer { for string in arguments + environment { free(string) } }
        signal(SIGCHLD, SIG_DFL)
        var child: pid_t = 0
        let status = clinux_spawn_bound(&child, arguments, environment, ends[0], STDOUT_FILENO)
        guard status == 0 else { return nil }
        for number in [SIGINT, SIGQUIT] { signal(number, SIG_IGN) }
        dup2(ends[1], STDOUT_FILENO)
        return Pager(child: child)
    }

    /// Waits until its user has seen enough; everything must have been written.
    func wait() {
        close(STDOUT_FILENO)
        _ = failure(of: child)
    }
}

/// Colours and the like for a terminal.
enum Style: String {
    case bold = "1"
    case red = "31"
    case green = "32"

    /// Whether standard output shows them: a terminal, unless `NO_COLOR` says otherwise.
    ///
    /// https://no-color.org
    static var isShown: Bool {
        isatty(STDOUT_FILENO) == 1 && environmentVariable("NO_COLOR") == nil
            && environmentVariable("TERM").map { $0 != "dumb" } ?? false
    }
}
