import CLinux
@preconcurrency import Glibc
import StateModel

/// The command that a watch runs for each change, one at a time.
///
/// It gets SIGTERM if the watch ends while it runs, even by SIGKILL. Otherwise it would continue
/// beside the same command of the next watch.
struct ChildCommand {
    /// The program, found by PATH, and its arguments.
    let arguments: [[UInt8]]

    /// - Parameters:
    ///   - arguments: The program, found by PATH, and its arguments.
    ///   - verb: Who runs it, for the message.
    /// - Throws: ``Failure/usage(_:)`` if there is no such program now, so that a mistake is seen
    ///   before the first change.
    init(arguments: [[UInt8]], of verb: String = "watch") throws(Failure) {
        self.arguments = arguments
        let program = String(decoding: arguments[0], as: UTF8.self)
        let path = environmentVariable("PATH") ?? "/usr/bin:/bin"
        let directories = path.split(separator: ":", omittingEmptySubsequences: false)
        let places = directories.map { "\($0.isEmpty ? "." : $0)/\(program)" }
        let candidates = program.contains("/") ? [program] : places
        guard candidates.contains(where: { access($0, X_OK) == 0 }) else {
            throw .usage("\(verb): there is no program '\(program)' that may be run")
        }
    }

    /// Runs the command and waits until it ends.
    ///
    /// The command gets the change in its environment and `input` on its standard input. It need
    /// not read that: writing then ends with EPIPE.
    ///
    /// - Returns: A sentence if it failed or could not be started; nil if it ended with 0.
    func run(key: [UInt8], operation: String, revision: Int64, input: [UInt8]) -> String? {
        let environment = [
            "STATED_KEY=".bytes + key, "STATED_OP=\(operation)".bytes,
            "STATED_REVISION=\(revision)".bytes,
        ]
        let about =
            key.isEmpty
            ? "the command for the gap"
            : "the command for \(key.withUnsafeBytes { StateError.quoted($0) })"
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            return "\(about) could not be started: pipe: \(lastError)"
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let (status, child) = spawn(adding: environment, standardInput: ends[0])
        close(ends[0])
        if status == 0 { _ = writeAll(input, to: ends[1]) }
        close(ends[1])
        guard status == 0 else {
            return "\(about) could not be started: \(String(cString: strerror(status)))"
        }
        return failure(of: child).map { "\(about) \($0)" }
    }

    /// Starts the command; it gets SIGTERM when this process ends.
    ///
    /// - Returns: 0 and its pid, or why it could not be started, as of errno(3).
    func spawn(
        adding variables: [[UInt8]],
        standardInput: Int32,
        standardOutput: Int32 = STDOUT_FILENO
    ) -> (status: Int32, child: pid_t) {
        // The parent process may ignore SIGCHLD: then the system keeps no child's exit code.
        signal(SIGCHLD, SIG_DFL)
        var child: pid_t = 0
        let arguments = cStrings(arguments)
        let environment = cStrings(inheritedEnvironment(without: variables) + variables)
        defer { for string in arguments + environment { free(string) } }
        let status = clinux_spawn_bound(
            &child,
            arguments,
            environment,
            standardInput,
            standardOutput
        )
        return (status, child)
    }
}
