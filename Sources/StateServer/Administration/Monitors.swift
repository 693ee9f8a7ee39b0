import StateEngine
import StateWire

/// The connections that MONITOR sends every command to.
///
/// A line is sent before its command runs. Only administrators may use it, and nobody is sent a
/// command with a key that rules hide from them. Used only by the loop thread.
final class Monitors {
    private var connections: [Int: Connection] = [:]
    private let settings: Settings
    private let registry: Registry
    private let flushes: FlushList

    init(_ settings: Settings, _ registry: Registry, _ flushes: FlushList) {
        (self.settings, self.registry, self.flushes) = (settings, registry, flushes)
    }

    func begin(_ context: borrowing CommandContext) throws(StateError) {
        guard !context.isExecuting else {
            throw StateError(.err, "MONITOR is not allowed inside MULTI")
        }
        try context.requireAdmin("MONITOR")
        context.connection.session.isMonitor = true
        connections[context.connection.number] = context.connection
        registry.hasMonitors = true
        context.output.writeOK()
    }

    func end(_ connection: Connection) {
        guard connection.session.isMonitor else { return }
        connection.session.isMonitor = false
        connections[connection.number] = nil
        registry.hasMonitors = !connections.isEmpty
    }

    /// Sends a command that is about to run.
    func send(_ verb: Verb, _ arguments: Arguments, _ context: borrowing CommandContext) {
        // Passwords are nobody's business.
        if verb.name == .auth || verb.name == .hello { return }
        let line = Monitors.line(arguments, context)
        for connection in connections.values
        where connection !== context.connection && maySee(verb, arguments, connection, context) {
            connection.outbound.bytes.append(line.bytes)
            flushes.add(connection)
            // A reader that does not keep up ends, as with messages.
            if connection.outbound.waitingByteCount > settings.options.outputByteCount {
                connection.isEnding = true
                connection.isLetGo = true
            }
        }
    }

    private func maySee(
        _ verb: Verb,
        _ arguments: Arguments,
        _ connection: Connection,
        _ context: borrowing CommandContext
    ) -> Bool {
        let visibility = context.core.visibility(of: connection.subject)
        guard !visibility.showsEverything else { return true }
        guard let places = verb.keyPlaces(arguments), !verb.name.rawValue.hasPrefix("state.") else {
            return false
        }
        return places.allSatisfy { visibility.mayEverReveal(.read, about: arguments[$0], .any) }
    }

    private static func line(
        _ arguments: Arguments,
        _ context: borrowing CommandContext
    ) -> ByteBuffer {
        let (seconds, rest) = context.time.quotientAndRemainder(dividingBy: 1_000)
        let digits = String(rest * 1_000)
        var text = "+\(seconds)." + String(repeating: "0", count: 6 - digits.count) + digits
        text += " [0 \(context.connection.address)]"
        var line = ByteBuffer()
        append(text, to: &line)
        for index in 0..<arguments.count {
            append(" \"", to: &line)
            for byte in arguments[index] { append(byte, to: &line) }
            append("\"", to: &line)
        }
        append("\r\n", to: &line)
        return line
    }

    private static func append(_ text: String, to line: inout ByteBuffer) {
        var text = text
        text.withUTF8 { line.append(Bytes($0)) }
    }

    /// As Redis quotes bytes.
    private static func append(_ byte: UInt8, to line: inout ByteBuffer) {
        let character = Character(UnicodeScalar(byte))
        switch byte {
        case UInt8(ascii: "\\"), UInt8(ascii: "\""): append("\\\(character)", to: &line)
        case 10: append("\\n", to: &line)
        case 13: append("\\r", to: &line)
        case 9: append("\\t", to: &line)
        case 7: append("\\a", to: &line)
        case 8: append("\\b", to: &line)
        case 0x20...0x7E: append(String(character), to: &line)
        default:
            let digits = String(byte, radix: 16)
            append("\\x\(digits.count == 1 ? "0" : "")\(digits)", to: &line)
        }
    }
}
