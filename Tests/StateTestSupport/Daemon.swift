package import Glibc
package import StateClient
import StateEngine

/// The built `stated`, serving a data directory of its own on a socket of its own.
///
/// One thread at a time. A daemon that still runs when the last reference goes is killed.
package final class Daemon {
    /// Where its socket, its data and what it writes to standard error are.
    package let directory: TemporaryDirectory
    /// Its process identifier; another one after ``restart()``.
    package private(set) var pid: pid_t = 0
    private let arguments: [String]
    private let environment: [String: String]
    private let launcher: [String]

    /// The path of its socket.
    package var socketPath: String { directory.path(of: "s") }
    /// The path of its data directory.
    package var dataPath: String { directory.path(of: "data") }

    /// Starts a daemon, with arguments beside `--socket` and `--data`, and waits until it takes connections.
    ///
    /// - Parameters:
    ///   - arguments: What it is started with beside these.
    ///   - directory: Where its socket, its data and its log are to be; nil: one of its own.
    ///   - environment: What is set beside the environment of the test.
    ///   - timeout: How long it may take.
    /// - Throws: ``SystemFailure`` with what it wrote, where it ends or does not serve in time.
    package convenience init(
        _ arguments: String...,
        directory: TemporaryDirectory? = nil,
        environment: [String: String] = [:],
        within timeout: Duration = .seconds(20)
    ) throws {
        try self.init(
            arguments,
            directory: directory,
            environment: environment,
            within: timeout
        )
    }

    /// The same with the arguments as a list; `launcher` is a program and arguments that executes in its own process what follows
    /// them.
    package init(
        _ arguments: [String],
        directory: TemporaryDirectory? = nil,
        environment: [String: String] = [:],
        launcher: [String] = [],
        within timeout: Duration = .seconds(20)
    ) throws {
        self.directory = try directory ?? TemporaryDirectory()
        self.arguments = arguments
        self.environment = environment
        self.launcher = launcher
        try start(within: timeout)
    }

    deinit {
        if pid != 0 { kill() }
    }

    /// A new connection to it.
    package func connect(timeout: Duration = .seconds(20)) throws(StateError) -> Client {
        try Client(socket: socketPath, timeout: timeout)
    }

    /// What it has written to standard error, over all its runs.
    package var log: String {
        (try? readFile(directory.path(of: "log"))).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// Starts it on the same data; it must have been stopped or killed.
    package func start(within timeout: Duration = .seconds(20)) throws {
        precondition(pid == 0, "the daemon \(pid) still runs")
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        let log = open(
            directory.path(of: "log"),
            O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
            0o600
        )
        guard null >= 0, log >= 0 else { throw SystemFailure(call: "open", errno) }
        defer {
            close(null)
            close(log)
        }
        let program = builtProgram("stated")
        let words =
            launcher + [program, "--socket", socketPath, "--data", dataPath] + arguments
        pid = try spawn(
            words[0],
            words.dropFirst().map { Array($0.utf8) },
            environment,
            descriptors: [null, log, log]
        )
        try waitUntilServing(Deadline(after: timeout))
    }

    /// Asks it to stop, and waits until it has.
    ///
    /// - Returns: Its exit code, or 128 and the number of the signal that ended it.
    @discardableResult
    package func stop(within timeout: Duration = .seconds(20)) throws -> Int32 {
        // 0 would be the group of this process.
        guard pid > 0 else { throw SystemFailure("the daemon does not run") }
        Glibc.kill(pid, SIGTERM)
        let deadline = Deadline(after: timeout)
        while true {
            if let code = ended(WNOHANG) { return code }
            guard !deadline.hasPassed else {
                kill()
                throw SystemFailure("the daemon did not stop in time; it wrote: \(log)")
            }
            pause()
        }
    }

    /// Ends it at once, as a crash would.
    package func kill() {
        guard pid > 0 else { return }
        Glibc.kill(pid, SIGKILL)
        _ = ended(0)
    }

    /// Stops it and starts it again on the same data.
    package func restart() throws {
        try stop()
        try start()
    }

    private func waitUntilServing(_ deadline: Deadline) throws {
        while true {
            if (try? connect()) != nil { return }
            if let code = ended(WNOHANG) {
                throw SystemFailure("the daemon ended with exit code \(code); it wrote: \(log)")
            }
            guard !deadline.hasPassed else {
                kill()
                throw SystemFailure("the daemon does not serve in time; it wrote: \(log)")
            }
            pause()
        }
    }

    /// How it ended; nil where it runs.
    private func ended(_ options: Int32) -> Int32? {
        var status: Int32 = 0
        guard waitpid(pid, &status, options) == pid else { return nil }
        pid = 0
        return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
    }

    /// Neither the end of a child nor the appearance of a socket is a descriptor to wait for.
    private func pause() { poll(nil, 0, 2) }
}

/// The path of a program of this package, beside the test bundle that is running.
package func builtProgram(_ name: String) -> String {
    var path = [CChar](repeating: 0, count: 4_096)
    let count = readlink("/proc/self/exe", &path, path.count)
    let bundle =
        CommandLine.arguments.first { $0.hasSuffix(".xctest") }
        ?? String(decoding: path.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    guard let slash = bundle.lastIndex(of: "/") else { return name }
    return bundle[...slash] + name
}
