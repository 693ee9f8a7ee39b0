import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// What becomes of a command whose daemon does not answer.
struct ReplyTimeoutTests {
    private let daemon: Daemon

    init() throws { daemon = try Daemon() }

    /// Runs `body` while the daemon is stopped, as by SIGSTOP of a debugger or a frozen cgroup.
    private func whileStopped<R>(_ body: () throws -> R) throws -> R {
        try #require(kill(daemon.pid, SIGSTOP) == 0)
        defer { kill(daemon.pid, SIGCONT) }
        return try body()
    }

    @Test func `a command of statectl ends when the time for its answer is over`() throws {
        _ = try Statectl.run(daemon, "set", "a", "1")
        try whileStopped {
            let read = try Statectl.run(daemon, "get", "a", "--reply-timeout", "50ms")
            #expect(read.exitCode == 3)
            #expect(
                read.errorText
                    == "statectl: the daemon at \(daemon.socketPath) did not answer within 50ms\n"
            )
            let write = try Statectl.run(daemon, "--reply-timeout=50ms", "set", "a", "2")
            #expect(write.exitCode == 6)
            #expect(write.errorText.contains("did not answer within 50ms"))
            #expect(write.errorText.contains("its outcome is unknown"))
            let begun = try Statectl.run(daemon, "watch", "a", "--reply-timeout", "50ms")
            #expect(begun.exitCode == 3, "\(begun)")
            let deleted = try Statectl.run(
                ["--socket", daemon.socketPath, "delete", "a"],
                environment: ["STATED_REPLY_TIMEOUT": "50ms"]
            )
            #expect(deleted.exitCode == 6)
        }
    }

    @Test(arguments: ["0x", "", "-1s"])
    func `a time that is none is refused by the option's name`(text: String) throws {
        let given = try Statectl.run(daemon, "--reply-timeout", text, "get", "a")
        #expect(given.exitCode == 2)
        #expect(given.errorText.contains("--reply-timeout takes a time with its unit"))
    }

    @Test func `a time in the environment that is none is refused by the variable's name`() throws {
        let result = try Statectl.run(
            ["--socket", daemon.socketPath, "get", "a"],
            environment: ["STATED_REPLY_TIMEOUT": "soon"]
        )
        #expect(result.exitCode == 2)
        #expect(result.errorText.contains("$STATED_REPLY_TIMEOUT takes a time"))
    }

    @Test func `what waits waits on, however short the time for an answer is`() throws {
        let waiting = try Statectl.start(daemon, "wait", "stage", "--json", "--reply-timeout", "2s")
        let watching = try Statectl.start(daemon, "watch", "/", "--reply-timeout", "2s")
        // Both have begun, and nothing comes for longer than an answer may take.
        let client = try daemon.connect()
        try #require(eventually { try client.watches().count == 2 })
        _ = try whileStopped { poll(nil, 0, 2_100) }
        _ = try Statectl.run(daemon, "set", "stage", "done")
        #expect(try waiting.nextLine().contains("stage"))
        #expect(try watching.nextLine().contains("stage"))
        #expect(waiting.wait() == 0)
    }

    @Test func `0 waits for as long as it takes`() throws {
        let running = try whileStopped {
            let running = try Statectl.start(daemon, "set", "a", "1", "--reply-timeout", "0")
            // Its request is in the socket before the daemon goes on.
            _ = try Statectl.run(daemon, "get", "a", "--reply-timeout", "200ms")
            return running
        }
        #expect(try running.finish().exitCode == 0)
    }

    @Test func `a client of the library waits for 30 s unless it says otherwise`() throws {
        let client = try Client(socket: daemon.socketPath)
        #expect(client.timeout == .seconds(30))
        let hasty = try Client(socket: daemon.socketPath, timeout: .milliseconds(50))
        let writer = try Client(socket: daemon.socketPath, timeout: .milliseconds(50))
        try whileStopped {
            let read = #expect(throws: StateError.self) { try hasty.value(for: "a") }
            #expect(read?.code == .unreachable)
            #expect(read?.message.hasSuffix("did not answer within 50ms") == true)
            let write = #expect(throws: StateError.self) { try writer.set([1], for: "a") }
            #expect(write?.code == .outcomeUnknown)
        }
    }

    @Test func `a socket whose queue is full is told by name`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path(of: "s")
        let listener = try ListenerWithoutRoom(at: path)
        defer { listener.close() }
        let result = try Statectl.run(["--socket", path, "--reply-timeout", "50ms", "get", "a"])
        #expect(result.exitCode == 3)
        #expect(result.errorText.contains("no daemon answers at \(path): its queue is full"))
    }
}

/// A socket that listens, takes nobody, and has no room for another who connects.
private struct ListenerWithoutRoom {
    private var descriptors: [Int32] = []

    init(at path: String) throws {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        func socket(_ flags: Int32) -> Int32 {
            Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue) | flags, 0)
        }
        func with(_ call: (UnsafePointer<sockaddr>) -> Int32) -> Int32 {
            withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { call($0) }
            }
        }
        let listener = socket(0)
        descriptors = [listener]
        try #require(with { bind(listener, $0, size) } == 0 && listen(listener, 0) == 0)
        while true {
            let client = socket(Int32(SOCK_NONBLOCK.rawValue))
            descriptors.append(client)
            guard with({ connect(client, $0, size) }) == 0 else { break }
            try #require(descriptors.count < 100)
        }
    }

    func close() { for descriptor in descriptors { Glibc.close(descriptor) } }
}
