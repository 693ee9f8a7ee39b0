import CLinux
import Glibc
import StateClient
import StateModel

/// A copy of this process that looks after a key while the process runs a command.
///
/// The process itself becomes the command: so signals, the exit code and the lifetime of the key are
/// those of the command, and nobody has to pass them on. The copy ends when the command does.
struct Companion {
    /// What happens if the key is gone.
    enum Duty {
        /// The command is stopped: it has lost the lock of that name, whose token this is.
        case stop(name: String, token: Int64)
        /// The key is set again with this value.
        case set([UInt8])
    }

    private let invocation: Invocation
    private let key: Key
    private let duty: Duty
    /// A descriptor of the command's process.
    private let process: Int32

    /// How long the command has to end after SIGTERM.
    private static let patience = Duration.seconds(10)

    /// Becomes the command; returns only by an error.
    ///
    /// - Parameters:
    ///   - command: The program, found by PATH, and its arguments.
    ///   - variables: Added to its environment.
    ///   - invocation: Names the daemon.
    ///   - key: What the copy looks after.
    ///   - duty: How.
    /// - Throws: ``Failure/file(_:)`` if there can be no copy; the command does not run then.
    static func become(
        _ command: [[UInt8]],
        adding variables: [[UInt8]],
        _ invocation: Invocation,
        _ key: Key,
        _ duty: Duty
    ) throws(Failure) -> Never {
        var process: Int32 = -1
        switch clinux_start_companion(&process) {
        case 0: break
        case 1:
            Companion(invocation: invocation, key: key, duty: duty, process: process).run()
            exit(0)
        default: throw .file("cannot start a process that looks after \(key): \(lastError)")
        }
        let environment = cStrings(inheritedEnvironment(without: variables) + variables)
        clinux_become(cStrings(command), environment)
        let program = String(decoding: command[0], as: UTF8.self)
        Output.report("cannot run \(StateError.printable(program)): \(lastError)")
        // As shells do.
        exit(errno == ENOENT ? 127 : 126)
    }

    // MARK: The copy

    private func run() {
        var backOff = BackOff(first: .milliseconds(20), last: .seconds(1))
        while !hasEnded(within: .zero) {
            do throws(StateError) {
                let client = try invocation.newClient()
                backOff = BackOff(first: .milliseconds(20), last: .seconds(1))
                if try !look(after: client) { return }
            } catch {
                guard ResumedWatch.isLoss(error) else { return Output.report(error.message) }
            }
            if hasEnded(within: backOff.next()) { return }
        }
    }

    /// - Returns: Whether to go on; false if the command has ended, or was stopped.
    private func look(after client: Client) throws(StateError) -> Bool {
        // Order matters: what happens after the watch has begun is an event.
        _ = try client.watch([try Pattern(literal: key.bytes)])
        let entry = try client.entry(for: key)
        guard isKept(entry) else { return try replace(client) }
        while let event = try client.nextEvent(until: nil, unless: .end(process: process)) {
            guard case .commit(_, _, let changes) = event, changes.last?.value == nil else {
                // After a gap everything is looked at again.
                if case .gap = event { return true }
                continue
            }
            switch duty {
            case .stop: return try replace(client)
            // Somebody has deleted it: that is meant.
            case .set: return false
            }
        }
        return false
    }

    private func isKept(_ entry: Client.Entry?) -> Bool {
        switch duty {
        case .stop(_, let token): entry?.created == token
        case .set: entry != nil
        }
    }

    /// The key is gone.
    private func replace(_ client: Client) throws(StateError) -> Bool {
        switch duty {
        case .set(let value):
            try client.set(value, for: key, if: .absent, livingAs: .process)
            return true
        case .stop(let name, _):
            guard !hasEnded(within: .zero) else { return false }
            Output.report("lock \(name) is lost, because its key was deleted: stopping the command")
            clinux_signal_process(process, SIGTERM)
            if !hasEnded(within: Companion.patience) { clinux_signal_process(process, SIGKILL) }
            return false
        }
    }

    /// Whether the command has ended, or does so in that time.
    private func hasEnded(within time: Duration) -> Bool {
        let deadline = Deadline(after: time)
        var waiting = pollfd(fd: process, events: Int16(POLLIN), revents: 0)
        while true {
            let count = poll(&waiting, 1, deadline.millisecondsLeft)
            if count > 0 { return true }
            if count == 0 || errno != EINTR { return false }
        }
    }
}
