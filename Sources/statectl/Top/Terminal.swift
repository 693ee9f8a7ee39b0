import CLinux
import Glibc
import StateModel

/// A terminal that one program has for itself: the other screen, no cursor, no echo, keys at once.
///
/// ``end()`` restores it. Signals are read from a descriptor, so none ends the program before that.
struct Terminal: ~Copyable {
    /// What happened on it.
    enum Event {
        case quit
        case resized
        case timePassed
    }

    private var saved: termios
    private let signals: Int32

    private init(_ saved: termios, _ signals: Int32) {
        (self.saved, self.signals) = (saved, signals)
    }

    /// Takes the terminal.
    ///
    /// - Throws: ``Failure/usage(_:)`` if standard input and output are not a terminal.
    static func begin() throws(Failure) -> Terminal {
        var saved = termios()
        guard isatty(STDOUT_FILENO) == 1, tcgetattr(STDIN_FILENO, &saved) == 0 else {
            throw .usage("top: standard input and output are not a terminal; give --once")
        }
        let signals = clinux_terminal_signalfd()
        guard signals >= 0 else { throw .file("signalfd: \(lastError)") }
        var raw = saved
        raw.c_lflag &= ~tcflag_t(ICANON | ECHO)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw)
        // The other screen, no cursor, and no line goes on in the next.
        _ = writeAll("\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l".bytes, to: STDOUT_FILENO)
        return Terminal(saved, signals)
    }

    /// Restores it.
    mutating func end() {
        _ = writeAll("\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l".bytes, to: STDOUT_FILENO)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &saved)
    }

    /// Columns and rows.
    static var size: (columns: Int, rows: Int) {
        var (columns, rows): (Int32, Int32) = (0, 0)
        if clinux_window_size(STDOUT_FILENO, &columns, &rows) == 0, columns > 0, rows > 0 {
            return (Int(columns), Int(rows))
        }
        let given = ["COLUMNS", "LINES"].map { environmentVariable($0).flatMap { Int($0) } ?? 0 }
        return (given[0] > 0 ? given[0] : 80, given[1] > 0 ? given[1] : 24)
    }

    /// Shows lines in one write, over those that are there: nothing is cleared before.
    ///
    /// - Throws: ``Failure/brokenPipe`` if the terminal has gone.
    func show(_ lines: [String]) throws(Failure) {
        let text = lines.joined(separator: "\u{1B}[K\r\n")
        let number = writeAll("\u{1B}[H\(text)\u{1B}[K\u{1B}[J".bytes, to: STDOUT_FILENO)
        guard number == 0 else { throw .brokenPipe }
    }

    /// Waits until something happens, or for so long.
    func wait(milliseconds: Int64) -> Event {
        let deadline = clinux_monotonic_nanoseconds() + milliseconds * 1_000_000
        while true {
            let left = (deadline - clinux_monotonic_nanoseconds() + 999_999) / 1_000_000
            guard left > 0 else { return .timePassed }
            var waiting = [STDIN_FILENO, signals].map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            guard poll(&waiting, 2, Int32(min(left, 60_000))) > 0 else { continue }
            if waiting[1].revents != 0 {
                return clinux_read_signal(signals) == SIGWINCH ? .resized : .quit
            }
            guard hasKey else { continue }
            return .quit
        }
    }

    /// Whether a key was typed that quits; at the end of input, too.
    private var hasKey: Bool {
        var key: UInt8 = 0
        guard read(STDIN_FILENO, &key, 1) == 1 else { return errno != EINTR }
        return key == UInt8(ascii: "q") || key == UInt8(ascii: "Q")
    }
}
