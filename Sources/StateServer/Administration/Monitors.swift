import CLinux
import StateEngine
import StateWire

/// The connections that MONITOR sends every command to.
///
/// A line is sent before its command runs. Only administrators from whom rules hide nothing may use
/// it, since the arguments of any command may be hidden keys or their values. Used only by the loop
/// thread.
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
        guard context.showsEverything else {
            throw StateError(
                .noPermission,
                "MONITOR would show commands with keys that uid \(context.connection.peer.uid) may "
                    + "not read"
            )
        }
        context.connection.session.isMonitor = true
        connections[context.connection.number] = context.connection
        registry.observers.hasMonitors = true
        context.output.writeOK()
    }

    func end(_ connection: Connection) {
        guard connection.session.isMonitor else { return }
        connection.session.isMonitor = false
        connections[connection.number] = nil
        registry.observers.hasMonitors = !connections.isEmpty
    }

    /// Sends a command that is about to run.
    func send(_ verb: Verb, _ arguments: Arguments, _ context: borrowing CommandContext) {
        // Passwords are nobody's business.
        if verb.name == .auth || verb.name == .hello { return }
        let line = Monitors.line(arguments, context)
        for connection in connections.values
        where connection !== context.connection {
            connection.outbound.bytes.append(line.bytes)
            flushes.add(connection)
            // A reader that does not keep up ends, as with messages.
            if connection.outbound.waitingByteCount > settings.options.outputByteCount {
                connection.ending.isDue = true
                connection.ending.isLetGo = true
            }
        }
    }

    /// Ends those who may no longer use it.
    func accessChanged(_ core: KeyspaceCore) {
        for connection in connections.values
        where core.adminDenial(of: connection.subject) != nil
            || !core.visibility(of: connection.subject).showsEverything
        {
            end(connection)
            connection.ending.isDue = true
            connection.ending.isLetGo = true
            flushes.add(connection)
        }
    }

    private static func line(
        _ arguments: Arguments,
        _ context: borrowing CommandContext
    ) -> ByteBuffer {
        let (seconds, rest) = context.time.quotientAndRemainder(dividingBy: 1_000)
        let digits = String(rest * 1_000)
        var text = "+\(seconds)." + String(repeating: "0", count: 6 - digits.count) + digits
        text += " [0 \(context.connection.address)]"
        var line = Array(text.utf8)
        for index in 0..<arguments.count {
            line += [0x20, UInt8(ascii: "\"")]
            for byte in arguments[index] { append(byte, to: &line) }
            line.append(UInt8(ascii: "\""))
        }
        line += [13, 10]
        var buffer = ByteBuffer()
        line.withUnsafeBytes { buffer.append($0) }
        return buffer
    }

    /// As Redis quotes bytes.
    private static func append(_ byte: UInt8, to line: inout [UInt8]) {
        switch byte {
        case UInt8(ascii: "\\"), UInt8(ascii: "\""): line += [UInt8(ascii: "\\"), byte]
        case 10: line += "\\n".utf8
        case 13: line += "\\r".utf8
        case 9: line += "\\t".utf8
        case 7: line += "\\a".utf8
        case 8: line += "\\b".utf8
        case 0x20...0x7E: line.append(byte)
        default:
            let digits = Array("0123456789abcdef".utf8)
            line += "\\x".utf8
            line += [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
    }
}
