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
    private let arguments = ArgumentStore()
    /// Of the commands as they came.
    private(set) var byteCount = 0
    /// About how much memory it takes.
    var footprint: Int {
        arguments.footprint + commands.capacity * MemoryLayout<Queued>.stride
    }
    var count: Int { commands.count }
    private(set) var hasWrites = false
    /// What its commands cost, but for what they list.
    private(set) var steps = 0
    /// The keys of its commands that live in files.
    var files = FileKeys()
    /// A command was refused while queuing: EXEC will refuse all.
    var isRefused = false

    /// Adds a command that came in `byteCount` bytes.
    ///
    /// - Throws: Why it is none, or none for a transaction; it is not added then.
    func append(
        _ verb: Verb,
        _ arguments: Arguments,
        byteCount: Int
    ) throws(StateError) {
        let command = try Command(verb, self.arguments.copy(arguments))
        if let reason = command.reasonAgainstTransaction { throw reason }
        commands.append(Queued(name: verb.name, command: command))
        self.byteCount += byteCount
        steps += verb.steps(argumentCount: arguments.count)
        if verb.isWrite { hasWrites = true }
    }
}
