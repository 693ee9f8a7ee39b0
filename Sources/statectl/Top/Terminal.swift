import CLinux
import Glibc
import StateModel

/// A terminal that one program has for itself: the other screen, no cursor, no echo, keys at once.
///
/// ``end()`` restores it, and so does stopping (Ctrl-Z). Signals are read from a descriptor, so none
/// ends or stops the program before that. While another program has the terminal, nothing is read
/// from it, written to it or set: the kernel would stop this one.
final class Terminal {
    /// What happened on it.
    enum Event {
        case quit
        /// It has another size, or is taken again: what it shows is to be written anew.
        case changed
    }

    /// Readable when there is an event.
    let events: Int32
    private var saved: termios
    private let signals: Int32
    private var isTaken = false

    /// Takes the terminal.
    ///
    /// - Throws: ``Failure/usage(_:)`` if standard input and output are not a terminal.
    init() throws(Failure) {
        saved = termios()
        guard isatty(STDOUT_FILENO) == 1, tcgetattr(STDIN_FILENO, &saved) == 0 else {
            throw .usage("top: standard input and output are not a terminal; give --once")
        }
        signals = clinux_terminal_signalfd()
        guard signals >= 0 else { throw .file("signalfd: \(lastError)") }
        events = clinux_epoll_create()
        guard clinux_epoll_add(events, STDIN_FILENO, UInt32(POLLIN), 0) == 0,
            clinux_epoll_add(events, signals, UInt32(POLLIN), 0) == 0
        else { throw .file("epoll: \(lastError)") }
        take()
    }

    private func take() {
        isTaken = true
        var raw = saved
        raw.c_lflag &= ~tcflag_t(ICANON | ECHO)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw)
        // The other screen, no cursor, and no line goes on in the next.
        _ = writeAll("\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l".bytes, to: STDOUT_FILENO)
    }

    /// Restores it.
    func end() {
        guard isTaken, isOwn else { return }
        isTaken = false
        _ = writeAll("\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l".bytes, to: STDOUT_FILENO)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &saved)
    }

    /// Whether this program may use it now, and not the shell or another job.
    private var isOwn: Bool {
        let group = tcgetpgrp(STDIN_FILENO)
        // A terminal that has gone says so when it is read.
        return group < 0 || group == getpgrp()
    }

    /// Columns and rows.
    static var size: (columns: Int, rows: Int) {
        var (columns, rows): (Int32, Int32) = (0, 0)
        if clinux_window_size(STDOUT_FILENO, &columns, &rows) == 0, columns > 0, rows > 0 {
            return (min(Int(columns), mostCells), min(Int(rows), mostCells))
        }
        func given(_ name: String, or standard: Int) -> Int {
            let number = environmentVariable(name).flatMap { Int($0) } ?? 0
            return number > 0 ? min(number, mostCells) : standard
        }
        return (given("COLUMNS", or: 80), given("LINES", or: 24))
    }

    /// The most columns, and rows, that are used.
    private static let mostCells = 4_096

    /// Shows lines in one write, over those that are there: nothing is cleared before.
    ///
    /// - Throws: ``Failure/brokenPipe`` if the terminal has gone.
    func show(_ lines: [String]) throws(Failure) {
        guard isOwn else { return }
        if !isTaken { take() }
        let text = lines.joined(separator: "\u{1B}[K\r\n")
        let number = writeAll("\u{1B}[H\(text)\u{1B}[K\u{1B}[J".bytes, to: STDOUT_FILENO)
        guard number == 0 else { throw .brokenPipe }
    }

    /// Waits for an event; returns false if none came before `deadline`, on the monotonic clock in
    /// nanoseconds.
    func wait(until deadline: Int64) -> Bool {
        while true {
            let left = (deadline - clinux_monotonic_nanoseconds() + 999_999) / 1_000_000
            guard left > 0 else { return false }
            var waiting = pollfd(fd: events, events: Int16(POLLIN), revents: 0)
            if poll(&waiting, 1, Int32(min(left, 60_000))) > 0 { return true }
        }
    }

    /// Takes one event; nil if it was none, such as a key that does nothing.
    func event() -> Event? {
        switch clinux_read_signal(signals) {
        case SIGWINCH: return .changed
        case SIGTSTP:
            end()
            clinux_stop_by_terminal()
            return .changed
        case SIGCONT:
            // It may have been stopped by SIGSTOP, after which the shell set the terminal.
            if isOwn { take() }
            return .changed
        case -1: return hasKey ? .quit : nil
        default: return .quit
        }
    }

    /// Whether a key was typed that quits; at the end of input, too.
    private var hasKey: Bool {
        guard isOwn else {
            // The key is for another program, which takes it soon.
            usleep(50_000)
            return false
        }
        var waiting = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        guard poll(&waiting, 1, 0) > 0 else { return false }
        var key: UInt8 = 0
        guard read(STDIN_FILENO, &key, 1) == 1 else { return errno != EINTR }
        return key == UInt8(ascii: "q") || key == UInt8(ascii: "Q")
    }
}
