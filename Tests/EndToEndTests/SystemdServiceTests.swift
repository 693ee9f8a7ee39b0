import Glibc
import StateTestSupport
import Testing

/// The protocols of the service manager, spoken by the daemon.
struct SystemdServiceTests {
    let scratch: TemporaryDirectory
    let socket: String

    init() throws {
        scratch = try TemporaryDirectory()
        socket = scratch.path(of: "s.sock")
    }

    /// The daemon behind systemd's own socket activation, which starts it for the first connection.
    private func activated(_ arguments: String...) throws -> Program {
        let program = try Program(
            ["systemd-socket-activate", "-l", socket, builtProgram("stated"), "--memory"]
                + ["--data", scratch.path(of: "data")] + arguments
        )
        try program.waitForErrors(containing: "Listening on")
        return program
    }

    // MARK: Inherited sockets

    @Test func `who connects before the daemon starts is served, and the socket stays`() throws {
        let program = try activated()
        let inode = fileStatus(socket)?.st_ino
        let client = try RawSocket.connected(to: socket)
        try client.ask("PING", awaiting: "+PONG\r\n")
        try program.waitForErrors(containing: " serves \(socket): ")
        program.send(SIGTERM)
        #expect(try program.end() == 0)
        #expect(fileStatus(socket)?.st_ino == inode)
        #expect(fileStatus(socket + ".lock") == nil)
    }

    @Test func `an explicit socket is served beside the inherited one`() throws {
        let own = scratch.path(of: "own.sock")
        let program = try activated("--socket", own)
        try RawSocket.connected(to: socket).ask("PING", awaiting: "+PONG\r\n")
        try RawSocket.connected(to: own).ask("PING", awaiting: "+PONG\r\n")
        program.send(SIGTERM)
        #expect(try program.end() == 0)
        #expect(fileStatus(own) == nil)
        #expect(fileStatus(socket) != nil)
    }

    @Test func `an inherited descriptor that is no listening socket is refused`() throws {
        let script =
            "exec 3</dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \(builtProgram("stated")) --memory"
        let program = try Program(["sh", "-c", script])
        #expect(try program.end() == 2)
        #expect(program.errors.contains("descriptor 3 is not a listening Unix stream socket"))
    }

    @Test func `sockets for another process are not taken`() throws {
        let environment = ["LISTEN_FDS": "1", "LISTEN_PID": "1"]
        let program = try Program(
            [
                builtProgram("stated"), "--memory", "--socket", socket, "--data",
                scratch.path(of: "data"),
            ],
            environment: environment
        )
        try program.waitForErrors(containing: " serves \(socket): ")
    }

    // MARK: Notifications

    @Test(arguments: [false, true])
    func `READY comes when the values answer, STOPPING before the end`(isAbstract: Bool) throws {
        let place = (isAbstract ? "@" : "") + scratch.path(of: "notify")
        let manager = try RawSocket.bound(to: place, isDatagram: true)
        let options = ["--socket", socket, "--data", scratch.path(of: "data")]
        let writer = try Program([builtProgram("stated")] + options)
        try RawSocket.connected(to: socket).ask("SET audio/volume 0.7", awaiting: "+OK\r\n")
        writer.send(SIGTERM)
        #expect(try writer.end() == 0)

        let daemon = try Program(
            [builtProgram("stated")] + options,
            environment: ["NOTIFY_SOCKET": place]
        )
        var notice = try manager.receive()
        #expect(notice == "EXTEND_TIMEOUT_USEC=30000000\nSTATUS=Loading the values")
        while !notice.hasPrefix("READY=1\n") {
            #expect(notice.hasPrefix("EXTEND_TIMEOUT_USEC="))
            notice = try manager.receive()
        }
        #expect(notice == "READY=1\nSTATUS=Serving 1 keys on \(socket)")
        let client = try #require(try RawSocket.connecting(to: socket))
        try client.ask("GET audio/volume", awaiting: "\r\n0.7\r\n")
        daemon.send(SIGTERM)
        #expect(try manager.receive() == "STOPPING=1\nSTATUS=Stopping")
        #expect(try daemon.end() == 0)
    }

    @Test func `a daemon that cannot load never says that it is ready`() throws {
        let manager = try RawSocket.bound(to: scratch.path(of: "notify"), isDatagram: true)
        let daemon = try Program(
            [builtProgram("stated"), "--socket", socket, "--data", "/sys/kernel"],
            environment: ["NOTIFY_SOCKET": scratch.path(of: "notify")]
        )
        #expect(try daemon.end() == 5)
        var waiting = pollfd(fd: manager.descriptor, events: Int16(POLLIN), revents: 0)
        while poll(&waiting, 1, 0) == 1 {
            #expect(try manager.receive().hasPrefix("EXTEND_TIMEOUT_USEC="))
        }
    }

    @Test func `a manager that does not listen does not keep it from serving`() throws {
        let daemon = try Program(
            [
                builtProgram("stated"), "--memory", "--socket", socket, "--data",
                scratch.path(of: "data"),
            ],
            environment: ["NOTIFY_SOCKET": scratch.path(of: "nobody")]
        )
        try daemon.waitForErrors(containing: " serves ")
        try RawSocket.connected(to: socket).ask("PING", awaiting: "+PONG\r\n")
    }

    @Test func `signs of life come while it serves, and not if another process owes them`() throws {
        let manager = try RawSocket.bound(to: scratch.path(of: "notify"), isDatagram: true)
        func start(_ variables: [String: String]) throws -> Program {
            let place = ["NOTIFY_SOCKET": scratch.path(of: "notify")]
            let program = try Program(
                [builtProgram("stated"), "--socket", socket, "--data", scratch.path(of: "data")],
                environment: place.merging(variables) { $1 }
            )
            try program.waitForErrors(containing: " serves ")
            return program
        }
        func notices(until wanted: String) throws -> [String] {
            var all: [String] = []
            repeat { all.append(try manager.receive()) } while !all[all.count - 1].hasPrefix(wanted)
            return all
        }
        let daemon = try start(["WATCHDOG_USEC": "200000"])
        _ = try notices(until: "READY=1")
        for _ in 0..<5 { _ = try notices(until: "WATCHDOG=1") }
        // Also under load.
        let client = try RawSocket.connected(to: socket)
        for number in 0..<100 { try client.ask("SET k \(number)", awaiting: "+OK\r\n") }
        _ = try notices(until: "WATCHDOG=1")
        daemon.send(SIGTERM)
        _ = try notices(until: "STOPPING=1")
        #expect(try daemon.end() == 0)
        for variables in [["WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"], ["WATCHDOG_USEC": "x"]] {
            let other = try start(variables)
            try RawSocket.connected(to: socket).ask("SET k 1", awaiting: "+OK\r\n")
            other.send(SIGTERM)
            #expect(try !notices(until: "STOPPING=1").contains("WATCHDOG=1"))
            #expect(try other.end() == 0)
        }
    }

    @Test func `bounded: a manager that takes no message holds nobody up`() throws {
        let manager = try RawSocket.bound(to: scratch.path(of: "notify"), isDatagram: true)
        let program = try Program(
            [builtProgram("stated"), "--socket", socket, "--data", scratch.path(of: "data")],
            environment: [
                "NOTIFY_SOCKET": scratch.path(of: "notify"), "WATCHDOG_USEC": "20000",
            ]
        )
        try program.waitForErrors(containing: " serves ")
        // The kernel holds some ten messages that nobody has read.
        let client = try RawSocket.connected(to: socket)
        for number in 0..<50 {
            usleep(10_000)
            try client.ask("SET k \(number)", awaiting: "+OK\r\n")
        }
        program.send(SIGTERM)
        #expect(try program.end() == 0)
        withExtendedLifetime(manager) {}
    }

    // MARK: Who wrote

    @Test func `STATE.GET tells the uid and the command of who set a value`() throws {
        let program = try activated()
        defer { _ = program }
        let client = try RawSocket.connected(to: socket)
        try client.ask("SET audio/volume 0.7", awaiting: "+OK\r\n")
        let command =
            String(decoding: try readFile("/proc/self/comm"), as: UTF8.self)
            .split(separator: "\n").first ?? ""
        let writer = "\(getuid()):\(getgid()):\(getpid()):\(command):"
        let reply = try client.ask("STATE.GET audio/volume", awaiting: "durability")
        #expect(reply.contains(writer), "\(reply)")
    }
}
