import Glibc
import StateServer

/// Lines on standard error, one for each event; whoever logs one does not wait until it is written.
///
/// Under systemd a line begins with its level as `<6>`, which the journal takes off and keeps
/// (https://www.freedesktop.org/software/systemd/man/latest/sd-daemon.html); elsewhere with the level's word.
struct Log: Sendable {
    private let isJournal: Bool
    private let writer: LineWriter

    private init(isJournal: Bool) {
        self.isJournal = isJournal
        let mark = Log.mark(.warning, isJournal)
        writer = LineWriter(STDERR_FILENO) { count in
            "\(mark)\(count) log lines were dropped: nobody read those before them in time\n"
        }
    }

    /// What a line begins with.
    private static func mark(_ level: LogLevel, _ isJournal: Bool) -> String {
        isJournal ? "<\(level.rawValue)>" : "stated: \(level.word): "
    }

    /// Writes in the form that whoever reads standard error understands.
    static func standardError() -> Log {
        var status = stat()
        guard let stream = Environment["JOURNAL_STREAM"], fstat(STDERR_FILENO, &status) == 0 else {
            return Log(isJournal: false)
        }
        // The variable is inherited by whoever a service starts; only the same stream is the journal.
        return Log(isJournal: stream == "\(status.st_dev):\(status.st_ino)")
    }

    func write(_ level: LogLevel, _ message: String) {
        writer.add(formatted(level, message))
    }

    /// Logs what fails from now on, or that it does no longer.
    func write(failure: String?, orEnd end: String) {
        write(failure == nil ? .notice : .warning, failure ?? end)
    }

    /// Logs that the reserved revision cannot be raised, or can be again.
    func writeCeiling(failure: String?) {
        write(failure: failure, orEnd: "the reserved revision is raised again")
    }

    private func formatted(_ level: LogLevel, _ message: String) -> String {
        var line = Log.mark(level, isJournal)
        for scalar in message.unicodeScalars {
            if scalar.properties.generalCategory == .control {
                line += "\\x" + (scalar.value < 16 ? "0" : "") + String(scalar.value, radix: 16)
            } else {
                line.unicodeScalars.append(scalar)
            }
        }
        return line + "\n"
    }

    /// How many lines were dropped because nobody read those before them.
    var droppedCount: Int { writer.droppedCount }

    /// Waits until all lines are written, for two seconds at most.
    func flush() { writer.flush(nanoseconds: 2_000_000_000) }
}

/// A number of things, as a sentence names it: `1 rule`, `2 rules`.
func counted(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }

/// The environment, as it is now.
enum Environment {
    /// The value of a variable; nil where it is not set or empty.
    static subscript(name: String) -> String? {
        guard let value = getenv(name), value[0] != 0 else { return nil }
        return String(cString: value)
    }
}

extension LogLevel {
    /// The level as a person reads it.
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
