import Glibc
import StateTestSupport
import Testing

/// How the daemon begins and ends: what it claims, what it refuses, what it leaves.
struct StartupTests {
    let scratch: TemporaryDirectory
    let socket: String

    init() throws {
        scratch = try TemporaryDirectory()
        socket = scratch.path(of: "s.sock")
    }

    /// A daemon without storage that answers.
    private func serving(
        _ arguments: String...,
        environment: [String: String] = [:]
    ) throws -> Program {
        // Each has a directory of its own: one has one owner.
        let data = scratch.path(of: "data.\(UInt32.random(in: 0...UInt32.max))")
        let program = try Program(
            [builtProgram("stated"), "--memory", "--data", data] + arguments,
            environment: environment
        )
        try program.waitForErrors(containing: " serves ")
        return program
    }

    /// What a daemon that cannot begin says, and its exit code.
    private func refusal(_ arguments: String...) throws -> (code: Int32, message: String) {
        let program = try Program([builtProgram("stated")] + arguments)
        return (try program.end(), program.errors)
    }

    // MARK: Sockets

    @Test func `a socket path is served, and is gone after SIGTERM`() throws {
        let daemon = try serving("--socket", socket)
        try RawSocket.connected(to: socket).ask("PING", awaiting: "+PONG\r\n")
        daemon.send(SIGTERM)
        #expect(try daemon.end() == 0)
        #expect(daemon.errors.contains("stopped by SIGTERM"))
        #expect(fileStatus(socket) == nil)
    }

    @Test func `Ctrl-C stops it too`() throws {
        let daemon = try serving("--socket", socket)
        daemon.send(SIGINT)
        #expect(try daemon.end() == 0)
        #expect(daemon.errors.contains("stopped by SIGINT"))
    }

    @Test func `only the owner may connect, unless a mode says otherwise`() throws {
        let shared = scratch.path(of: "shared/deep/s.sock")
        let own = try serving("--socket", socket)
        let other = try serving("--socket", shared, "--socket-mode", "0660")
        defer { _ = (own, other) }
        #expect(fileStatus(socket)?.st_mode == S_IFSOCK | 0o600)
        #expect(fileStatus(shared)?.st_mode == S_IFSOCK | 0o660)
        #expect(fileStatus(scratch.path(of: "shared"))?.st_mode == S_IFDIR | 0o700)
        #expect(fileStatus(scratch.path(of: "shared/deep"))?.st_mode == S_IFDIR | 0o700)
    }

    @Test func `a second daemon on the same socket is refused with the pid of the first`() throws {
        let first = try serving("--socket", socket)
        let (code, message) = try refusal("--memory", "--socket", socket)
        #expect(code == 3)
        #expect(
            message
                == "stated: error: process \(first.pid) already serves \(socket): "
                + "stop it, or name another one with --socket\n"
        )
        try RawSocket.connected(to: socket).ask("PING", awaiting: "+PONG\r\n")
    }

    @Test func `a socket that another program serves is left alone, and its pid is named`() throws {
        let theirs = try RawSocket.bound(to: socket)
        try #require(listen(theirs.descriptor, 8) == 0)
        let inode = fileStatus(socket)?.st_ino
        let (code, message) = try refusal("--memory", "--socket", socket)
        #expect(code == 3)
        #expect(
            message
                == "stated: error: process \(getpid()) already serves \(socket): "
                + "stop it, or name another one with --socket\n"
        )
        #expect(fileStatus(socket)?.st_ino == inode)
        #expect(try RawSocket.connecting(to: socket) != nil)
    }

    @Test func `the socket file of a process that ended is replaced`() throws {
        _ = try RawSocket.bound(to: socket)
        try #require(fileStatus(socket) != nil)
        let daemon = try serving("--socket", socket)
        try RawSocket.connected(to: socket).ask("PING", awaiting: "+PONG\r\n")
        daemon.send(SIGKILL)
        #expect(try daemon.end() == 128 + SIGKILL)
        try #require(fileStatus(socket) != nil)
        let next = try serving("--socket", socket)
        try RawSocket.connected(to: socket).ask("PING", awaiting: "+PONG\r\n")
        next.send(SIGTERM)
        #expect(try next.end() == 0)
    }

    @Test func `a file that is no socket is not replaced`() throws {
        try write(Array("precious".utf8), to: socket)
        let (code, message) = try refusal("--memory", "--socket", socket)
        #expect(code == 2)
        #expect(message.contains("\(socket) exists and is not a socket"))
        #expect(try readFile(socket) == Array("precious".utf8))
    }

    @Test func `what replaced the socket file meanwhile is not removed at the end`() throws {
        let daemon = try serving("--socket", socket)
        try #require(unlink(socket) == 0)
        try write(Array("theirs".utf8), to: socket)
        daemon.send(SIGTERM)
        #expect(try daemon.end() == 0)
        #expect(try readFile(socket) == Array("theirs".utf8))
    }

    @Test func `a socket path of 107 bytes is served, one of 108 is refused by name`() throws {
        let longest = scratch.path(
            of: String(repeating: "x", count: 107 - scratch.path.utf8.count - 1)
        )
        let daemon = try serving("--socket", longest)
        try RawSocket.connected(to: longest).ask("PING", awaiting: "+PONG\r\n")
        daemon.send(SIGTERM)
        #expect(try daemon.end() == 0)
        let (code, message) = try refusal("--memory", "--socket", longest + "x")
        #expect(code == 2)
        #expect(message.contains("\(longest)x"))
        #expect(message.contains("108 bytes; the limit is 107"))
    }

    @Test func `STATED_SOCKET is served where no option says otherwise`() throws {
        let daemon = try serving(environment: ["STATED_SOCKET": socket])
        defer { _ = daemon }
        try RawSocket.connected(to: socket).ask("PING", awaiting: "+PONG\r\n")
    }

    // MARK: The log

    @Test func `the log tells the version, the socket, the store, its keys, and the end`() throws {
        let daemon = try serving("--socket", socket)
        daemon.send(SIGTERM)
        #expect(try daemon.end() == 0)
        let lines = daemon.errors.split(separator: "\n")
        #expect(lines.count == 2)
        let start = "stated: info: stated 0.1.0 serves \(socket): 0 keys at revision 0 from memory"
        #expect(lines.first?.hasPrefix(start + ", loaded in ") == true)
        #expect(lines.last == "stated: info: stopped by SIGTERM")
        #expect(daemon.output.isEmpty)
    }

    @Test func `the journal gets the level as a number`() throws {
        let pipe = try Pipe()
        let daemon = try Program(
            [
                builtProgram("stated"), "--memory", "--socket", socket, "--data",
                scratch.path(of: "data"),
            ],
            environment: ["JOURNAL_STREAM": pipe.identity],
            errorPipe: pipe
        )
        try daemon.waitForErrors(containing: " serves ")
        #expect(daemon.errors.hasPrefix("<6>stated 0.1.0 serves "))
    }

    @Test func `a journal that is somebody else's stream changes nothing`() throws {
        let daemon = try serving("--socket", socket, environment: ["JOURNAL_STREAM": "1:1"])
        #expect(daemon.errors.hasPrefix("stated: info: "))
    }

    @Test func `a control byte of a message does not reach the terminal raw`() throws {
        let (code, message) = try refusal("--\u{1B}[31m\n")
        #expect(code == 2)
        #expect(message.contains("'--\\x1B[31m\\x0A'"))
    }
}
