import CLinux
import StateEngine
import StateWire

/// The way of every answer: it leaves, or it is held until what it depends on is durable.
///
/// Everything belongs to the loop thread.
final class ReplyGate {
    let settings: Settings
    let turn: Turn
    /// What clients can have logged again and again.
    let repeated = RepeatedLines()
    private let registry: Registry
    private let flushes: FlushList
    private let timers: TimerQueue

    init(
        _ settings: Settings,
        _ turn: Turn,
        _ registry: Registry,
        _ flushes: FlushList,
        _ timers: TimerQueue
    ) {
        (self.settings, self.turn) = (settings, turn)
        (self.registry, self.flushes, self.timers) = (registry, flushes, timers)
    }

    /// Makes and sends an answer that comes later than its command.
    func answer(
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ body: (inout CommandContext) throws(StateError) -> Void
    ) {
        let start = connection.outbound.bytes.count
        var context = CommandContext(connection, in: core, at: turn.time)
        do throws(StateError) {
            try body(&context)
        } catch {
            refuse(error, from: start, context)
        }
        send(from: start, context)
        turn.note(&context)
    }

    /// Writes an error in the place of the answer that begins at `start` in the output.
    func refuse(_ error: StateError, from start: Int, _ context: borrowing CommandContext) {
        context.output.truncate(to: start)
        context.output.writeError(error)
        logDenial(context)
    }

    /// Sends the answer that begins at `start` in the output, or keeps it back until what it depends on is durable.
    func send(from start: Int, _ context: borrowing CommandContext) {
        let connection = context.connection
        // The answer comes later: from the history.
        guard connection.outbound.bytes.count > start else { return }
        let isHeld = context.receipt.revision > context.core.revisions.durable
        if isHeld || !connection.outbound.held.isEmpty {
            if connection.outbound.held.isEmpty { connection.outbound.isConfirmationHeld = false }
            let reply = connection.outbound.bytes.bytes.slice(
                start,
                connection.outbound.bytes.count
            )
            connection.outbound.held.append(
                reply,
                behind: isHeld ? context.receipt.revision : 0,
                reporting: context.receipt.reportedRevision,
                isFinal: context.receipt.isFinal
            )
            connection.outbound.bytes.truncate(to: start)
            registry.addHolding(connection)
        } else if context.receipt.reportedRevision > 0 {
            registry.early.append(context.receipt.reportedRevision)
        }
        flushes.add(connection)
    }

    /// Logs what the command at hand was refused by the rules: of each user and rule once a minute, then how often.
    private func logDenial(_ context: borrowing CommandContext) {
        guard let denial = context.core.admission.lastDenial else { return }
        context.core.admission.lastDenial = nil
        let connection = context.connection
        let uid = connection.peer.uid
        let kind = RepeatedLines.Kind(subject: .denial(rule: denial.rule), uid: uid)
        write(kind, .notice) {
            let rule = denial.rule.map { "rule \($0 + 1)" } ?? "no rule"
            return "client \(connection.number) (uid \(uid), pid \(connection.peer.pid), "
                + "\(connection.shownPeerCommand)) is refused: \(denial.action.rawValue), \(rule)"
        }
    }

    /// Logs a line unless one of its kind was logged within the last minute.
    func write(_ kind: RepeatedLines.Kind, _ level: LogLevel, _ line: () -> String) {
        repeated.write(
            kind,
            level,
            at: SystemClock.monotonicMilliseconds(),
            to: settings.options.log,
            line
        )
        timers.set(.repeatedLines, at: repeated.dueAt)
    }
}

extension Connection {
    /// A process chooses its name: nothing in it may look like another line.
    fileprivate var shownPeerCommand: String {
        var name = peerCommand
        return name.withUTF8 { StateError.quoted(Bytes($0)) }
    }
}
