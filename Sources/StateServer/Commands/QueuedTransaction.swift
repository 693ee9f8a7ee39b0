import StateEngine
import StateWire

/// The commands between MULTI and EXEC, read and checked when they came.
final class QueuedTransaction {
    struct Queued {
        let name: Verb.Name
        let command: Command
    }

    private(set) var commands: [Queued] = []
    /// What the commands refer to.
    private var arguments = ArgumentStore()
    /// Of the commands as they came.
    private(set) var byteCount = 0
    /// About how much memory it takes; a command of many steps has a list of them.
    var footprint: Int {
        arguments.footprint + commands.capacity * MemoryLayout<Queued>.stride
            + steps * MemoryLayout<Command.ApplyStep>.stride
    }
    var count: Int { commands.count }
    private(set) var hasWrites = false
    /// What its commands cost, but for what they list.
    private(set) var steps = 0
    /// The keys of its commands that live in files.
    var files = FileKeys()
    /// A command was refused while queuing: EXEC will refuse all.
    private(set) var isRefused = false

    /// EXEC will refuse all: nothing is kept for it any more.
    func refuse() {
        isRefused = true
        commands = []
        arguments = ArgumentStore()
        (byteCount, steps, hasWrites, files) = (0, 0, false, FileKeys())
    }

    /// Adds a command that came in `byteCount` bytes; of a refused transaction it is only checked.
    ///
    /// - Throws: What is wrong with the command, or why a transaction may not have it; it is not added then.
    func append(
        _ verb: Verb,
        _ arguments: Arguments,
        byteCount: Int
    ) throws(StateError) {
        let kept = isRefused ? arguments : self.arguments.copy(arguments)
        let command = try Command(verb, kept)
        if let reason = command.reasonAgainstTransaction { throw reason }
        guard !isRefused else { return }
        commands.append(Queued(name: verb.name, command: command))
        self.byteCount += byteCount
        steps += verb.steps(argumentCount: arguments.count)
        if verb.isWrite { hasWrites = true }
    }
}
