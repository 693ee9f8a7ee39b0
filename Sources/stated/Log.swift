import Glibc
import StateServer

/// Lines on standard error, one for each event; the caller does not wait until they are written.
///
/// Under systemd a line begins with its level as `<6>`, which the journal removes and stores
/// (https://www.freedesktop.org/software/systemd/man/latest/sd-daemon.html); elsewhere it begins
/// with the level's name.
struct Log: Sendable {
    private let isJournal: Bool
    private let writer: LineWriter

    private init(isJournal: Bool) {
        self.isJournal = isJournal
        let prefix = Log.prefix(.warning, isJournal)
        writer = LineWriter(STDERR_FILENO) { count in
            "\(prefix)\(count) log lines were dropped: the reader of the log was too slow\n"
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

    func write(_ level: LogLevel, _ message: String) {
        writer.add(formatted(Log.prefix(level, isJournal), message))
    }

    /// Logs a message and lines that belong to it.
    func write(_ level: LogLevel, _ message: String, details: [String]) {
        write(level, message)
        let prefix = isJournal ? Log.prefix(level, isJournal) : ""
        for line in details { writer.add(formatted(prefix, line)) }
    }

    /// Logs a failure that lasts from now on, or its end.
    func write(failure: String?, orEnd end: String) {
        write(failure == nil ? .notice : .warning, failure ?? end)
    }

    /// Logs that the reserved revision cannot be raised, or can be again.
    func writeReservation(failure: String?) {
        write(failure: failure, orEnd: "the reserved revision can be raised again")
    }

    private func formatted(_ prefix: String, _ message: String) -> String {
        var line = prefix
        for scalar in message.unicodeScalars {
            if scalar.properties.generalCategory == .control {
                line += "\\x" + (scalar.value < 16 ? "0" : "") + String(scalar.value, radix: 16)
            } else {
                line.unicodeScalars.append(scalar)
            }
        }
        return line + "\n"
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
