import StateEngine
import StateWire

/// EVAL of the scripts that are known: each is one commit.
extension StringCommands {
    func run(
        _ script: KnownScript,
        _ keys: Arguments,
        _ arguments: Arguments,
        _ context: inout CommandContext
    ) throws(StateError) {
        let needed = script.needs
        guard keys.count >= needed.keys, arguments.count >= needed.arguments else {
            throw StateError(
                .err,
                "the script needs \(needed.keys) keys and \(needed.arguments) arguments; it got "
                    + "\(keys.count) and \(arguments.count)"
            )
        }
        let (connection, time) = (context.connection, context.time)
        let result = try context.write { (transaction) throws(StateError) -> ScriptRun.Result in
            var run = ScriptRun(keys: keys, arguments: arguments, time: time)
            return try run.carryOut(script, &transaction)
        }
        connection.outbound.bytes.write(result, connection.session.version)
    }
}

extension KnownScript {
    /// How many keys and arguments it uses at least.
    fileprivate var needs: (keys: Int, arguments: Int) {
        switch self {
        case .release, .releaseOrFail, .timeLeft, .anyTimeLeft, .timeLeftOrMinus3, .timeLeftOrFail,
            .countInSeconds, .countInMilliseconds, .raise, .unlock:
            (1, 1)
        case .releaseAll: (0, 1)
        case .expireInMilliseconds, .expireInSeconds, .acquireOrRenew, .acquireOrFail, .relock,
            .addWithin:
            (1, 2)
        case .extend: (1, 3)
        case .extendAll, .acquireAll: (0, 2)
        case .windowCounts: (2, 1)
        case .acquireInWindow: (2, 3)
        case .resetLock, .deleteMatches: (1, 0)
        case .resetLocks: (0, 0)
        }
    }
}

extension ByteBuffer {
    fileprivate mutating func write(_ result: ScriptRun.Result, _ version: ProtocolVersion) {
        switch result {
        case .number(let number): writeInteger(number)
        case .null: writeNull(version)
        case .ok: writeOK()
        case .bytes(let bytes): writeBulk(bytes)
        case .values(let values):
            writeArray(values.count)
            for value in values { write(value, version) }
        }
    }
}
