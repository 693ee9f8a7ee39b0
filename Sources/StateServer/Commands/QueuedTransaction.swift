import StateEngine
import StateWire

/// The commands between MULTI and EXEC, parsed and checked when they arrived.
final class QueuedTransaction {
    struct Queued {
        let name: Verb.Name
        let command: Command
        /// As they arrived.
        let arguments: Arguments
    }

    private(set) var commands: [Queued] = []
    /// The arguments of the commands.
    private var arguments = ArgumentStore()
    /// The bytes of the commands as received.
    private(set) var byteCount = 0
    /// Its approximate memory; a command of many steps has a list of them.
    var footprint: Int {
        arguments.footprint + commands.capacity * MemoryLayout<Queued>.stride
            + steps * MemoryLayout<Command.ApplyStep>.stride
    }
    var count: Int { commands.count }
    private(set) var hasWrites = false
    /// The cost of its commands, without listings.
    private(set) var steps = 0
    /// The keys of its commands that are stored in files.
    var files = FileKeys()
    /// Whether a command was refused while queuing: EXEC will refuse all.
    private(set) var isRefused = false

    /// The commands as they arrived.
    func frames() -> [UInt8] {
        var frames = ByteBuffer()
        for queued in commands {
            frames.writeArray(queued.arguments.count)
            for index in 0..<queued.arguments.count { frames.writeBulk(queued.arguments[index]) }
        }
        return Array(frames.bytes)
    }

    /// Frees the queued commands, because EXEC will refuse all.
    func refuse() {
        isRefused = true
        commands = []
        arguments = ArgumentStore()
        (byteCount, steps, hasWrites, files) = (0, 0, false, FileKeys())
    }

    /// Adds a command of `byteCount` bytes.
    ///
    /// In a refused transaction it is only checked.
    ///
    /// - Throws: The error of the command, or why it is not allowed in a transaction; it is not
    ///   added then.
    func append(
        _ verb: Verb,
        _ arguments: Arguments,
        byteCount: Int
    ) throws(StateError) {
        let kept = isRefused ? arguments : self.arguments.copy(arguments)
        let command = try Command(verb, kept)
        if let reason = command.reasonAgainstTransaction { throw reason }
        guard !isRefused else { return }
        commands.append(Queued(name: verb.name, command: command, arguments: kept))
        self.byteCount += byteCount
        steps += verb.steps(argumentCount: arguments.count)
        if verb.isWrite { hasWrites = true }
    }
}
