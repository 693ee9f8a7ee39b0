import Glibc
import StateWire

/// Waits for the first PONG of a server that is starting or loading.
enum ReadyCommand {
    /// The pause between two attempts: short compared with what is measured, long compared with an
    /// attempt's cost for the server.
    private static let pauseMicroseconds = 200

    static func run(_ options: Options) throws(BenchError) {
        let socket = try options.text("socket")
        let timeout = try options.number("timeout", standard: 60)
        let start = MonotonicClock.wall
        let since = try options.number("since", standard: Int(start / 1000)) * 1000
        let deadline = start + UInt64(timeout) * 1_000_000_000
        let pid = try options.number("pid", standard: 0)
        while !isAnswering(socket) {
            if pid > 0, ProcessTable.hasEnded(pid) { throw .failed("process \(pid) has ended") }
            guard MonotonicClock.wall < deadline else {
                throw .failed("no PONG from '\(socket)' in \(timeout) s")
            }
            MonotonicClock.pause(microseconds: pauseMicroseconds)
        }
        let elapsed = Double(Int(MonotonicClock.wall) - since) / 1e6
        print("ready_ms \(elapsed.rounded(places: 1))")
    }

    static func isAnswering(_ socket: String) -> Bool {
        guard let connection = try? Connection(socket: socket),
            let reply = try? connection.call("PING")
        else { return false }
        return reply.textValue == "PONG"
    }
}

/// The kernel's data about processes.
enum ProcessTable {
    /// Starts a program, whose output is discarded.
    ///
    /// - Parameters:
    ///   - command: Its path or name, and its arguments.
    ///   - input: Its standard input; nil: this program's.
    /// - Returns: Its process id, for ``end(of:)``.
    /// - Throws: An error if it cannot be started.
    static func start(_ command: [String], input: Int32? = nil) throws(BenchError) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
        if let input { posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO) }
        var arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) }
        defer { for argument in arguments { free(argument) } }
        arguments.append(nil)
        var pid: pid_t = 0
        let result = posix_spawnp(&pid, command[0], &actions, nil, arguments, environ)
        guard result == 0 else {
            errno = result
            throw .system("posix_spawn '\(command[0])'")
        }
        return pid
    }

    /// Waits until it has ended, and returns its status.
    static func end(of pid: pid_t) throws(BenchError) -> Int32 {
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 {
            guard errno == EINTR else { throw .system("waitpid") }
        }
        return status
    }

    /// `/proc/PID/stat` from the state on: proc_pid_stat(5); its field n is the element n - 3.
    static func fields(of pid: Int) -> [Substring] {
        // The name before them may contain blanks and parentheses.
        guard let text = TextFile.read("/proc/\(pid)/stat"), let end = text.lastIndex(of: ")")
        else { return [] }
        return text[text.index(after: end)...].split(separator: " ")
    }

    static var microsecondsPerTick: Int { 1_000_000 / sysconf(Int32(_SC_CLK_TCK)) }

    /// The processor time of all its threads.
    static func processorTicks(of pid: Int) throws(BenchError) -> Int {
        let fields = fields(of: pid)
        guard fields.count > 12, let user = Int(fields[11]), let system = Int(fields[12]) else {
            throw .failed("process \(pid) does not exist")
        }
        return user + system
    }

    /// Whether it has ended, even if its parent has not waited for it.
    static func hasEnded(_ pid: Int) -> Bool {
        let state = fields(of: pid).first
        return state == nil || state == "Z"
    }
}

/// The limit of this program's connections.
enum FileDescriptors {
    /// Raises it as far as the system allows.
    static func raiseLimit() throws(BenchError) {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw .system("getrlimit")
        }
        limit.rlim_cur = limit.rlim_max
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw .system("setrlimit")
        }
    }
}

/// Processor time and memory of a process, from /proc.
enum SampleCommand {
    static func run(_ options: Options) throws(BenchError) {
        let pid = try options.number("pid", standard: 0)
        let fields = ProcessTable.fields(of: pid)
        guard fields.count > 21, let pages = Int(fields[21]) else {
            throw .failed("process \(pid) does not exist")
        }
        let ticks = try ProcessTable.processorTicks(of: pid)
        print("cpu_ticks \(ticks)")
        print("cpu_us \(ticks * ProcessTable.microsecondsPerTick)")
        print("rss_bytes \(pages * sysconf(Int32(_SC_PAGESIZE)))")
    }
}

/// The time of a program from its start to its end, including its parent's wait.
enum SpawnCommand {
    static func run(_ options: Options) throws(BenchError) {
        let times = try options.number("times", standard: 500)
        guard !options.rest.isEmpty else { throw .usage("spawn needs -- and a command") }
        var latencies = Latencies(expecting: times)
        for _ in 0..<times {
            let start = MonotonicClock.now
            try runOnce(options.rest)
            latencies.add(MonotonicClock.now - start)
        }
        for line in latencies.lines("spawn") { print(line) }
    }

    private static func runOnce(_ command: [String]) throws(BenchError) {
        let status = try ProcessTable.end(of: try ProcessTable.start(command))
        guard status == 0 else {
            throw .failed("'\(command.joined(separator: " "))' ended with status \(status)")
        }
    }
}
