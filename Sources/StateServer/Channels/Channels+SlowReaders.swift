import StateEngine
import StateWire

/// Readers that do not keep up.
extension Channels {
    /// Whether the messages that wait for a connection are within its limit; tries to send if not.
    ///
    /// Its replies do not count: a large reply must not cost a reader its subscriptions.
    func hasRoom(_ connection: Connection) -> Bool {
        for isSecondLook in [false, true] {
            let waiting = min(
                connection.outbound.messageByteCount,
                connection.outbound.waitingByteCount
            )
            connection.outbound.messageByteCount = waiting
            if waiting < settings.options.outputByteCount { return true }
            guard !isSecondLook, connection.flush() else { return false }
        }
        return false
    }

    /// Ends a connection and drops its waiting messages: a Redis client has no way to learn of a
    /// gap.
    ///
    /// `isBehind`: it reads, but messages wait because the subscriptions of its user take too long.
    func letGo(_ connection: Connection, isBehind: Bool = false) {
        connection.ending.isDue = true
        connection.ending.isLetGo = true
        connection.ending.isBehind = isBehind
        connection.outbound.bytes.removeAll()
        connection.outbound.bytes.shrink(to: 0)
        memory.count(connection)
        flushes.add(connection)
    }
}
