package import Glibc
import StateClient

/// A process that a test started, with pipes to its standard input, output and error.
///
/// One thread at a time. A process that still runs when the last reference goes is killed.
package final class RunningCommand {
    /// How a process ended: its exit code, or 128 and the number of the signal.
    package typealias ExitCode = Int32

    /// Its process identifier.
    package let pid: pid_t
    private var input: Int32
    private let output: Int32
    private let error: Int32
    private var exitCode: ExitCode?
    private var unread: [UInt8] = []

    /// What standard error had so far, as far as it was read.
    package private(set) var errorBytes: [UInt8] = []

    /// Starts a program, found by PATH where it has no `/`, with variables beside those of this process.
    package init(
        _ path: String,
        _ arguments: [[UInt8]],
        environment: [String: String] = [:]
    ) throws {
        // A process that ends before it has read its input must not end the tests.
        Glibc.signal(SIGPIPE, SIG_IGN)
        let pipes = try (0..<3).map { _ in try makePipe() }
        (input, output, error) = (pipes[0].write, pipes[1].read, pipes[2].read)
        let ends = [pipes[0].read, pipes[1].write, pipes[2].write]
        defer { for end in ends { close(end) } }
        pid = try spawn(path, arguments, environment, descriptors: ends)
        for end in [input, output, error] {
            _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK)
        }
    }

    deinit {
        if exitCode == nil {
            kill(pid, SIGKILL)
            var status: Int32 = 0
            waitpid(pid, &status, 0)
        }
        for descriptor in [input, output, error] where descriptor >= 0 { close(descriptor) }
    }

    /// Sends a signal to the process, if it has not ended.
    package func signal(_ number: Int32) {
        if exitCode == nil { kill(pid, number) }
    }

    /// Ends what the process can read.
    package func closeInput() {
        if input >= 0 { close(input) }
        input = -1
    }

    /// Closes the reading end of its standard output: nobody reads any more.
    package func closeOutput() { shutOutput() }

    private func shutOutput() {
        // The descriptor stays taken, so that no other file gets its number.
        let null = open("/dev/null", O_RDONLY | O_CLOEXEC)
        dup2(null, output)
        close(null)
    }

    /// The next line of standard output, without its newline.
    ///
    /// - Throws: ``SystemFailure`` where the output ends, or the time passes, before there is one.
    package func nextLine(within timeout: Duration = .seconds(20)) throws -> String {
        let deadline = Deadline(after: timeout)
        while true {
            if let newline = unread.firstIndex(of: UInt8(ascii: "\n")) {
                defer { unread.removeSubrange(...newline) }
                return String(decoding: unread[..<newline], as: UTF8.self)
            }
            guard try transfer([], until: deadline).outputIsOpen else {
                throw SystemFailure("the output ended: \(errorText)")
            }
        }
    }

    /// Writes `input`, closes it, reads to the end of both outputs, and waits for the end of the process.
    package func finish(
        input bytes: [UInt8] = [],
        within timeout: Duration = .seconds(60)
    ) throws -> CommandResult {
        let deadline = Deadline(after: timeout)
        var rest = bytes[...]
        var state = (outputIsOpen: true, errorIsOpen: true)
        while state.outputIsOpen || state.errorIsOpen {
            if rest.isEmpty { closeInput() }
            let (outputIsOpen, errorIsOpen, sent) = try transfer(rest, until: deadline)
            rest = rest.dropFirst(sent)
            state = (outputIsOpen, errorIsOpen)
        }
        closeInput()
        let output = unread
        unread = []
        return CommandResult(exitCode: wait(), output: output, error: errorBytes)
    }

    /// Waits for the end of the process.
    package func wait() -> ExitCode {
        if let exitCode { return exitCode }
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        let code = status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
        exitCode = code
        return code
    }

    private var errorText: String { String(decoding: errorBytes, as: UTF8.self) }

    /// Moves what can be moved now; waits where nothing can.
    private func transfer(
        _ bytes: ArraySlice<UInt8>,
        until deadline: Deadline
    ) throws -> (outputIsOpen: Bool, errorIsOpen: Bool, sent: Int) {
        var waiting = [
            pollfd(fd: bytes.isEmpty ? -1 : input, events: Int16(POLLOUT), revents: 0),
            pollfd(fd: output, events: Int16(POLLIN), revents: 0),
            pollfd(fd: error, events: Int16(POLLIN), revents: 0),
        ]
        let count = poll(&waiting, 3, deadline.millisecondsLeft)
        guard count > 0 || !deadline.hasPassed else {
            throw SystemFailure("the time is over; standard error has: \(errorText)")
        }
        var sent = 0
        if waiting[0].revents != 0 {
            sent = bytes.withUnsafeBytes { write(input, $0.baseAddress, $0.count) }
            // A process that does not read its input is no fault of the test.
            if sent < 0 { sent = errno == EAGAIN || errno == EINTR ? 0 : bytes.count }
        }
        let outputIsOpen = waiting[1].revents == 0 || take(output, &unread)
        let errorIsOpen = waiting[2].revents == 0 || take(error, &errorBytes)
        return (outputIsOpen, errorIsOpen, sent)
    }

    /// Takes what is there; false at the end.
    private func take(_ descriptor: Int32, _ bytes: inout [UInt8]) -> Bool {
        var room = [UInt8](repeating: 0, count: 64 << 10)
        let count = read(descriptor, &room, room.count)
        if count > 0 { bytes += room[0..<count] }
        return count > 0 || count < 0 && (errno == EAGAIN || errno == EINTR)
    }
}

/// How a command ended, and what it wrote.
package struct CommandResult: Sendable, CustomStringConvertible {
    /// Its exit code, or 128 and the number of the signal that ended it.
    package let exitCode: Int32
    /// All of its standard output.
    package let output: [UInt8]
    /// All of its standard error.
    package let error: [UInt8]

    /// Standard output as text.
    package var text: String { String(decoding: output, as: UTF8.self) }
    /// Standard error as text.
    package var errorText: String { String(decoding: error, as: UTF8.self) }
    /// Standard output in lines, without the newlines.
    package var lines: [String] { text.split(separator: "\n").map(String.init) }

    /// All of it, for a test that failed.
    package var description: String { "exit \(exitCode)\n\(text)\(errorText)" }
}

/// Runs a program to its end.
package func runCommand(
    _ path: String,
    _ arguments: [String],
    input: [UInt8] = [],
    environment: [String: String] = [:]
) throws -> CommandResult {
    let bytes = arguments.map { Array($0.utf8) }
    return try RunningCommand(path, bytes, environment: environment).finish(input: input)
}
