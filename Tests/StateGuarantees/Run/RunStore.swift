import StateEngine
import StateTestSupport
import StateWire

/// What the daemon knows of STATE.WATCH, STATE.COMPACT and STATE.CHANGES.
struct RunAbilities: Sendable {
    var hasFrom = false
    var hasLatest = false
    var hasCompaction = false
    var hasChanges = false
}

/// The store of a run, as its clients see it.
struct RunStore: Sendable {
    let socketPath: String
    /// The epoch, which must never be another one.
    let epoch: String
    let abilities: RunAbilities

    /// Asks a daemon that has just made it.
    init(_ daemon: Daemon) throws {
        socketPath = daemon.socketPath
        let ask = try Self.asking(socketPath)
        let watch = try ask(["STATE.WATCH", "a/"].bytes)
        guard let epoch = watch["epoch"]?.textValue else {
            throw SystemFailure("STATE.WATCH was answered with \(watch)")
        }
        self.epoch = epoch
        func knows(_ words: String...) throws -> Bool {
            guard case .error(let error) = try ask(words.bytes) else { return true }
            return error.code != .err
        }
        abilities = RunAbilities(
            hasFrom: try knows("STATE.WATCH", "a/", "FROM", "0"),
            hasLatest: try knows("STATE.WATCH", "a/", "LATEST"),
            hasCompaction: try knows("STATE.COMPACT", "TO", "0"),
            hasChanges: try knows("STATE.CHANGES", "SINCE", "0", "a/")
        )
    }

    /// A connection that is not lost, with which commands are answered.
    static func asking(_ socketPath: String) throws -> ([[UInt8]]) throws -> Reply {
        guard let connection = try RunConnection(socketPath) else {
            throw SystemFailure("nobody answers at \(socketPath)")
        }
        return { command in
            guard let reply = try connection.ask(command) else {
                throw SystemFailure("the connection was lost at '\(command[0].text)'")
            }
            return reply
        }
    }
}
