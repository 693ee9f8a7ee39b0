import CLinux
package import StateEngine

/// Log lines that clients can cause repeatedly: at most one of each kind a minute, then the number
/// of the others.
///
/// Kinds are kept apart up to a bound for each user, so that nobody can hide what others do, and up
/// to one for all users, as one person can have many uids. Beyond either, the lines of a user are
/// one kind for each event; beyond a number of such users, those of all users are.
///
/// Used only by the loop thread.
package final class RepeatedLines {
    /// Lines of one kind report the same about the same user.
    package struct Kind: Hashable {
        package enum Subject: Hashable {
            /// A rule refused something; nil for no rule.
            case denial(rule: Int?)
            /// A soft limit was exceeded.
            case softLimit(KeyLimit, rule: Int)
            /// A connection was ended for this reason.
            case letGo(LetGoReason)
            /// No more file descriptors.
            case descriptors
            /// A connection of the daemon's last run was not continued.
            case handover
            /// A user read keys with `audit: "reads"`, by a command.
            case read(keys: [UInt8], command: String)
            /// All further kinds of an event, if there are too many.
            case rest(LogEvent)
        }

        var subject: Subject
        /// Nil if the line is not about a user, or about many.
        package var uid: UInt32?

        package init(subject: Subject, uid: UInt32? = nil) {
            self.subject = subject
            self.uid = uid
        }
    }

    /// How often a rule refused something.
    package internal(set) var denialCount = 0

    private struct Window {
        var kind: Kind
        var message: LogMessage
        /// On the monotonic clock, in milliseconds.
        var end: Int64
    }

    private static let milliseconds: Int64 = 60_000
    /// How many kinds of one user are kept apart.
    package static let kindsOfUser = 256
    /// How many kinds of all users are, and for how many users and events the further ones are.
    package static let capacity = 4_096

    /// How many lines of each kind were suppressed in its window.
    private var leftOut: [Kind: Int] = [:]
    /// In the order of their ends, as all are equally long.
    private var windows: [Window] = []
    private var first = 0
    private var leftOutCount = 0
    /// How many kinds of each user are kept apart, without the further ones.
    private var kindCounts: [UInt32?: Int] = [:]
    private var kindCount = 0
    private var restCount = 0

    package init() {}

    /// Logs a line, unless one of its kind was logged within the last minute.
    ///
    /// - Complexity: O(1) amortized; the line is only made if it is logged.
    package func write(
        _ kind: Kind,
        _ level: LogLevel,
        at now: Int64,
        to log: (LogMessage) -> Void,
        _ line: () -> (text: String, fields: [LogField])
    ) {
        endWindows(at: now, log)
        let event = kind.event
        let kind = keptApart(kind)
        if let count = leftOut[kind] {
            leftOut[kind] = count + 1
            leftOutCount += 1
            return
        }
        let (text, fields) = line()
        let message = LogMessage(level, event, text, fields)
        begin(kind)
        windows.append(
            Window(kind: kind, message: message, end: now + RepeatedLines.milliseconds)
        )
        log(message)
    }

    /// When a window ends, on the monotonic clock, in milliseconds; nil if no line was suppressed.
    package var dueAt: Int64? {
        leftOutCount > 0 && first < windows.count ? windows[first].end : nil
    }

    /// Logs the number of suppressed lines of each kind whose minute is over.
    package func endWindows(
        at now: Int64,
        _ log: (LogMessage) -> Void
    ) {
        while first < windows.count, windows[first].end <= now {
            let window = windows[first]
            first += 1
            guard let count = end(window.kind), count > 0 else { continue }
            leftOutCount -= count
            log(window.kind.summary(of: count, window.message))
        }
        if first == windows.count {
            windows.removeAll(keepingCapacity: windows.capacity <= 64)
            first = 0
        } else if first >= 64, first * 2 > windows.count {
            windows.removeFirst(first)
            first = 0
        }
    }

    /// The kind itself, or what stands for it if there are too many.
    private func keptApart(_ kind: Kind) -> Kind {
        if leftOut[kind] != nil { return kind }
        if kindCount < RepeatedLines.capacity,
            kindCounts[kind.uid, default: 0] < RepeatedLines.kindsOfUser
        {
            return kind
        }
        let rest = Kind(subject: .rest(kind.event), uid: kind.uid)
        let isKnown = leftOut[rest] != nil || restCount < RepeatedLines.capacity
        return isKnown ? rest : Kind(subject: .rest(kind.event))
    }

    private func begin(_ kind: Kind) {
        leftOut[kind] = 0
        guard !kind.isRest else {
            restCount += 1
            return
        }
        kindCount += 1
        kindCounts[kind.uid, default: 0] += 1
    }

    /// - Returns: How many of its lines were suppressed.
    private func end(_ kind: Kind) -> Int? {
        guard let count = leftOut.removeValue(forKey: kind) else { return nil }
        guard !kind.isRest else {
            restCount -= 1
            return count
        }
        kindCount -= 1
        let remaining = kindCounts[kind.uid, default: 1] - 1
        kindCounts[kind.uid] = remaining > 0 ? remaining : nil
        return count
    }
}

extension RepeatedLines.Kind {
    fileprivate var isRest: Bool {
        if case .rest = subject { true } else { false }
    }

    /// The line for suppressed ones; `message` is the one that was logged.
    fileprivate func summary(of count: Int, _ message: LogMessage) -> LogMessage {
        var message = message
        guard isRest else {
            message.text = "\(count) more in a minute like this: \(message.text)"
            return message
        }
        let others = uid == nil ? "other users" : "other kinds"
        message.text = "\(count) more in a minute like this, some of \(others): \(message.text)"
        // Its other fields are those of one line among many.
        message.fields = uid.map { [.uid($0)] } ?? []
        return message
    }

    /// The event that its lines are of.
    fileprivate var event: LogEvent {
        switch subject {
        case .denial: .accessDenied
        case .read: .auditRead
        case .softLimit: .softLimitExceeded
        case .letGo: .clientDisconnected
        case .rest(let event): event
        case .descriptors: .clientsRefused
        case .handover: .connectionsLost
        }
    }
}

extension ReplyGate {
    /// Logs why rules refused the current command: once a minute for each user and rule, then the
    /// number.
    ///
    /// - Returns: Whether one did.
    func logDenial(_ context: borrowing CommandContext) -> Bool {
        guard let denial = context.core.admission.lastDenial else { return false }
        context.core.admission.lastDenial = nil
        repeated.denialCount += 1
        let connection = context.connection
        let uid = connection.peer.uid
        let kind = RepeatedLines.Kind(subject: .denial(rule: denial.rule?.index), uid: uid)
        write(kind, .notice) {
            let text =
                "client \(connection.number) (uid \(uid), pid \(connection.peer.pid), "
                + "\(connection.shownPeerCommand)) was refused: \(denial.action.rawValue), \(denial.place)"
            let rule = denial.rule.map { [LogField.rule($0.index)] } ?? []
            let action = LogField.action(denial.action.rawValue)
            return (text, connection.logFields + [action] + rule)
        }
        return true
    }

    /// Logs a line unless one of its kind was logged within the last minute.
    func write(
        _ kind: RepeatedLines.Kind,
        _ level: LogLevel,
        _ line: () -> (text: String, fields: [LogField])
    ) {
        repeated.write(
            kind,
            level,
            at: SystemClock.monotonicMilliseconds(),
            to: settings.options.writeLog,
            line
        )
        timers.set(.repeatedLines, at: repeated.dueAt)
    }
}

extension Connection {
    /// Whom a message is about.
    var logFields: [LogField] { [.uid(peer.uid), .pid(peer.pid), .command(peerCommand)] }

    var shownPeerCommand: String { peerCommand.shownAsCommand }
}

extension String {
    /// The name of a process in a line of the log.
    ///
    /// A process chooses its own name, so it is quoted, and can neither end the quotation nor look
    /// like another line.
    var shownAsCommand: String {
        var name = ""
        for scalar in unicodeScalars {
            switch scalar {
            case "'": name += "\\x27"
            case "\\": name += "\\x5C"
            default: name.unicodeScalars.append(scalar)
            }
        }
        return "'\(StateError.printable(name))'"
    }
}
