import Glibc
import StateServer

/// Messages in the journal or on standard error; the caller does not wait until they are written.
///
/// If standard error is the journal, a message goes there as an entry with fields, by the journal's
/// own protocol. If nobody listens there, it is a line on standard error that begins with its level
/// as `<6>`, which the journal removes and stores
/// (https://www.freedesktop.org/software/systemd/man/latest/sd-daemon.html). Elsewhere a line begins
/// with the level's name.
struct Log: Sendable {
    private let isJournal: Bool
    private let writer: LineWriter

    private init(isJournal: Bool) {
        self.isJournal = isJournal
        let journal = isJournal ? JournalSocket() : nil
        writer = LineWriter(STDERR_FILENO, journal) { count in
            let text = "\(count) log lines were dropped: the reader of the log was too slow"
            return Log.line(LogMessage(.warning, .linesDropped, text), isJournal)
        }
    }

    /// The beginning of a line.
    private static func prefix(_ level: LogLevel, _ isJournal: Bool) -> String {
        isJournal ? "<\(level.rawValue)>" : "stated: \(level.word): "
    }

    /// The log on standard error, in the form that its reader expects.
    static func standardError() -> Log {
        var status = stat()
        guard let stream = Environment["JOURNAL_STREAM"], fstat(STDERR_FILENO, &status) == 0 else {
            return Log(isJournal: false)
        }
        // Children of a service inherit the variable; only the same stream is the journal.
        return Log(isJournal: stream == "\(status.st_dev):\(status.st_ino)")
    }

    func write(_ level: LogLevel, _ event: LogEvent, _ text: String) {
        write(LogMessage(level, event, text))
    }

    /// Logs a message and the lines that belong to it: one entry of the journal, or as many lines.
    func write(_ message: LogMessage) {
        writer.add(Log.line(message, isJournal))
        guard !isJournal else { return }
        for detail in message.details { writer.add(LogLine(text: Log.shown(detail) + "\n")) }
    }

    /// The line of a message, and its entry for the journal.
    private static func line(_ message: LogMessage, _ isJournal: Bool) -> LogLine {
        let text = shown(message.text)
        let prefix = prefix(message.level, isJournal)
        guard isJournal else { return LogLine(text: "\(prefix)\(text)\n") }
        let lines = [text] + message.details.map(shown)
        return LogLine(
            text: lines.map { "\(prefix)\($0)\n" }.joined(),
            entry: message.journalEntry(lines.joined(separator: "\n"))
        )
    }

    /// Logs a failure that lasts from now on, or its end.
    func write(
        failure: String?,
        _ failing: LogEvent,
        orEnd end: String,
        _ restored: LogEvent
    ) {
        if let failure { write(.warning, failing, failure) } else { write(.notice, restored, end) }
    }

    /// Logs that the reserved revision cannot be raised, or can be again.
    func writeReservation(failure: String?) {
        write(
            failure: failure,
            .reservationFailed,
            orEnd: "the reserved revision can be raised again",
            .reservationRestored
        )
    }

    /// A text without control characters.
    private static func shown(_ message: String) -> String {
        var line = ""
        for scalar in message.unicodeScalars {
            if scalar.properties.generalCategory == .control {
                line += "\\x" + (scalar.value < 16 ? "0" : "") + String(scalar.value, radix: 16)
            } else {
                line.unicodeScalars.append(scalar)
            }
        }
        return line
    }

    /// How many lines were dropped because the reader was too slow.
    var droppedCount: Int { writer.droppedCount }

    /// Waits until all lines are written, for two seconds at most.
    func flush() { writer.flush(nanoseconds: 2_000_000_000) }
}

/// A number and a noun for a sentence: `1 rule`, `2 rules`.
func counted(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }

/// The environment, as it is now.
enum Environment {
    /// The value of a variable; nil if it is not set or empty.
    static subscript(name: String) -> String? {
        guard let value = getenv(name), value[0] != 0 else { return nil }
        return String(cString: value)
    }
}

extension LogLevel {
    /// The readable name of the level.
    fileprivate var word: String {
        switch self {
        case .error: "error"
        case .warning: "warning"
        case .notice: "notice"
        case .info: "info"
        case .debug: "debug"
        }
    }
}
