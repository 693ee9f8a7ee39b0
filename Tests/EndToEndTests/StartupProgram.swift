import Glibc
import Testing

/// A program that a test started: what it writes, as it comes, and how it ended.
///
/// One that is still there when the test ends is killed. Used by one test, on one thread.
final class Program {
    let pid: pid_t
    private(set) var output = ""
    private(set) var errors = ""

    private var outputEnd: Int32
    private var errorsEnd: Int32
    private var status: Int32?

    /// - Parameters:
    ///   - arguments: The program, looked up in `PATH`, and what it is told.
    ///   - environment: All that it has of an environment, beside `PATH`.
    ///   - errorPipe: What its standard error is, where the test has to know that before.
    /// - Throws: where it cannot be started.
    init(
        _ arguments: [String],
        environment: [String: String] = [:],
        errorPipe: Pipe? = nil
    ) throws {
        let outputs = try Pipe()
        let errors = try errorPipe ?? Pipe()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, outputs.writeEnd, 1)
        posix_spawn_file_actions_adddup2(&actions, errors.writeEnd, 2)
        let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
        var variables = ["PATH": path]
        variables.merge(environment) { $1 }
        var argv: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        var envp: [UnsafeMutablePointer<CChar>?] = variables.map { strdup("\($0)=\($1)") } + [nil]
        defer { for text in argv + envp { free(text) } }
        var pid: pid_t = 0
        let code = posix_spawnp(&pid, arguments[0], &actions, nil, &argv, &envp)
        close(outputs.writeEnd)
        close(errors.writeEnd)
        self.pid = pid
        outputEnd = outputs.readEnd
        errorsEnd = errors.readEnd
        try #require(code == 0, "\(arguments[0]): \(String(cString: strerror(code)))")
    }

    deinit {
        if status == nil, pid > 0 {
            kill(pid, SIGKILL)
            waitpid(pid, nil, 0)
        }
        for end in [outputEnd, errorsEnd] where end >= 0 { close(end) }
    }

    /// Waits until standard error contains `text`.
    func waitForErrors(containing text: String) throws {
        try read { $0.errors.contains(text) }
        try #require(errors.contains(text), "ended with: \(errors)")
    }

    func send(_ signal: Int32) { kill(pid, signal) }

    /// Waits for the end; the exit code, or 128 and the signal as a shell has it.
    @discardableResult
    func end() throws -> Int32 {
        if let status { return status }
        try read { _ in false }
        var raw: Int32 = 0
        waitpid(pid, &raw, 0)
        let code = raw & 0x7F == 0 ? raw >> 8 & 0xFF : 128 + raw & 0x7F
        status = code
        return code
    }

    /// Reads both streams until `isEnough` or their end; more than 30 s without either is a failure.
    private func read(until isEnough: (Program) -> Bool) throws {
        let deadline = ContinuousClock.now + .seconds(30)
        while !isEnough(self), outputEnd >= 0 || errorsEnd >= 0 {
            try #require(ContinuousClock.now < deadline, "still running after 30 s: \(errors)")
            var ready = [
                pollfd(fd: outputEnd, events: Int16(POLLIN), revents: 0),
                pollfd(fd: errorsEnd, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&ready, 2, 1_000) > 0 else { continue }
            if ready[0].revents != 0 { Program.take(&outputEnd, into: &output) }
            if ready[1].revents != 0 { Program.take(&errorsEnd, into: &errors) }
        }
    }

    private static func take(_ end: inout Int32, into text: inout String) {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = Glibc.read(end, &bytes, bytes.count)
        guard count > 0 else {
            close(end)
            end = -1
            return
        }
        text += String(decoding: bytes[..<count], as: UTF8.self)
    }
}

/// The two ends of a stream, close-on-exec.
struct Pipe {
    let readEnd: Int32
    let writeEnd: Int32

    init() throws {
        var ends: [Int32] = [-1, -1]
        // Close-on-exec from the start, which pipe(2) cannot do: tests start programs at the same time.
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0, &ends) == 0)
        readEnd = ends[0]
        writeEnd = ends[1]
    }

    /// Device and inode, as `$JOURNAL_STREAM` names a stream.
    var identity: String {
        var status = stat()
        fstat(writeEnd, &status)
        return "\(status.st_dev):\(status.st_ino)"
    }
}
