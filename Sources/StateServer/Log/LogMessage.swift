public import StateModel

/// How serious a log message is: the levels of syslog(3), which journald reads.
public enum LogLevel: Int, Sendable {
    /// Something failed.
    case error = 3
    /// Something is wrong but does not stop the work.
    case warning = 4
    /// Worth noticing.
    case notice = 5
    /// What happens normally.
    case info = 6
    /// For debugging.
    case debug = 7
}

/// One message of the log.
public struct LogMessage: Sendable {
    /// How serious it is.
    public var level: LogLevel
    /// Its kind.
    public var event: LogEvent
    /// One sentence, with the values in it.
    public var text: String
    /// Lines that belong to it.
    public var details: [String] = []
    /// What it is about, for those who search.
    public var fields: [LogField] = []

    /// Makes a message.
    public init(_ level: LogLevel, _ event: LogEvent, _ text: String, _ fields: [LogField] = []) {
        (self.level, self.event, self.text, self.fields) = (level, event, text, fields)
    }

    /// The approximate memory that it takes, in bytes.
    package var byteCount: Int {
        details.reduce(text.utf8.count) { $0 + $1.utf8.count }
            + fields.reduce(0) { $0 + $1.value.count + 16 }
    }
}

/// Something that a message is about, as a field of the journal.
public struct LogField: Sendable {
    /// Upper-case letters, digits and `_`.
    public let name: String
    /// Any bytes.
    public let value: [UInt8]

    private init(_ name: String, _ value: [UInt8]) { (self.name, self.value) = (name, value) }

    private init(_ name: String, _ number: some BinaryInteger) {
        self.init(name, Array(String(number).utf8))
    }

    /// The key, as it is.
    public static func key(_ key: Bytes) -> LogField { LogField("STATED_KEY", Array(key)) }

    /// The number of the rule, from 1.
    public static func rule(_ index: Int) -> LogField { LogField("STATED_RULE", index + 1) }

    /// The user that caused it.
    public static func uid(_ uid: UInt32) -> LogField { LogField("STATED_UID", uid) }

    /// The process that caused it.
    public static func pid(_ pid: Int32) -> LogField { LogField("STATED_PID", pid) }

    /// The program of that process, as it calls itself; or the command of a client.
    public static func command(_ name: String) -> LogField {
        LogField("STATED_COMMAND", Array(name.utf8))
    }

    /// The revision of the change.
    public static func revision(_ revision: Int64) -> LogField {
        LogField("STATED_REVISION", revision)
    }

    /// What was done or refused, in a word.
    public static func action(_ word: String) -> LogField {
        LogField("STATED_ACTION", Array(word.utf8))
    }
}
