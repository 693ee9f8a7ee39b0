import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// A configuration that is read again while clients are served.
struct ReloadTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private var path: String { directory.path(of: "stated.json5") }

    private func configure(_ text: String) throws { try directory.write(text, to: "stated.json5") }

    private func daemon(_ text: String, _ arguments: String...) throws -> Daemon {
        try configure(text)
        return try Daemon(["--config", path] + arguments)
    }

    @Test func `a reload tells what has changed, and it holds from the revision that it names`()
        throws
    {
        let daemon = try daemon(
            """
            { history: { age: "1h" }, rules: [
              { keys: "a/", schema: { type: "number", maximum: 1 } }, { keys: "old", readonly: true },
            ] }
            """
        )
        let client = try daemon.connect()
        #expect(try client.set(Array("1".utf8), for: "a/x").revision == 1)
        try configure(
            """
            { limits: { valueBytes: "1MiB", watches: 5 }, history: { age: "90m" }, rules: [
              { keys: "new/", writeOnce: true, limits: { valueBytes: 3 } },
              { keys: "a/", schema: { type: "number", maximum: 2 } },
            ] }
            """
        )
        let reload = try Statectl.run(daemon, "reload")
        #expect(
            reload.text == """
                limits.valueBytes: 8MiB → 1MiB
                limits.watches: 1000 → 5
                history.age: 1h → 90m
                rule 1 (new/) writeOnce: none → true
                rule 1 (new/) limits.valueBytes: none → 3
                rule 2 (a/) schema: {"maximum":1,"type":"number"} → {"maximum":2,"type":"number"}
                rule 2 (old) readonly: true → none
                in force from revision 2 on

                """
        )
        #expect(reload.exitCode == 0)
        // The connection was there before.
        #expect(try client.set(Array("2".utf8), for: "a/x").revision == 2)
        let again = try Statectl.run(daemon, "reload")
        #expect(again.text == "nothing has changed\nin force from revision 3 on\n")
        let peer = try Peer(daemon.socketPath)
        #expect(
            try peer.ask("CONFIG GET proto-max-bulk-len").shown
                == "[\"proto-max-bulk-len\", \"1048576\"]"
        )
    }

    @Test func `what needs a restart is told each time, and the command line counts more`() throws {
        let daemon = try daemon("{}", "--value-bytes", "4")
        try configure(
            "{ socket: { path: '/run/other', mode: '0660' }, data: '/srv', limits: { valueBytes: 9 } }"
        )
        let json = """
            {"revision":1,"changed":[],"restart":[\
            {"option":"socket.mode","old":"0600","new":"0660"}]}

            """
        #expect(try Statectl.run(daemon, "reload", "--json").text == json)
        #expect(try Statectl.run(daemon, "reload", "--json").text == json)
        #expect(try Statectl.run(daemon, "set", "k", "12345").exitCode == 4)
    }

    @Test(arguments: [
        ("{ limits: { valueBytes: 1 } ", ":1:29: expected '}'"),
        (
            "{\n  rules: [ { keys: 'a', readOnly: true } ] }",
            ":2:25: rules[1].readOnly: unknown option"
        ),
        ("{ limits: { clients: 0 } }", ":1:13: limits.clients: expected a whole number from 1 to"),
    ])
    func `a bad file changes nothing, and says place and reason`(
        text: String,
        reason: String
    ) throws {
        let daemon = try daemon("{ rules: [ { keys: 'a', limits: { valueBytes: 2 } } ] }")
        try configure(text)
        let result = try Statectl.run(daemon, "reload")
        #expect(result.exitCode == 2 && result.text.isEmpty)
        #expect(result.errorText.contains(path + reason), "\(result)")
        let end = "; not reloaded; the old configuration stays in force\n"
        #expect(result.errorText.hasSuffix(end), "\(result)")
        let line = "error: \(path)\(reason)"
        #expect(eventually { daemon.log.contains(line) })
        #expect(try Statectl.run(daemon, "set", "a", "123").exitCode == 4)
        #expect(try Statectl.run(daemon, "set", "b", "123").exitCode == 0)
        unlink(path)
        #expect(try Statectl.run(daemon, "reload").errorText.contains("\(path) cannot be read: No"))
        #expect(try Statectl.run(daemon, "set", "a", "123").exitCode == 4)
    }

    @Test func `without a configuration there is nothing to read, and SIGHUP ends nothing`() throws
    {
        let program = try Program([
            builtProgram("stated"), "--socket", directory.path(of: "s"), "--data",
            directory.path(of: "d"),
        ])
        try program.waitForErrors(containing: " serves ")
        program.send(SIGHUP)
        try program.waitForErrors(
            containing: "error: no configuration file is in use"
        )
        let result = try Statectl.run(["--socket", directory.path(of: "s"), "reload"])
        #expect(result.exitCode == 2)
        #expect(result.errorText.contains("no configuration file is in use"))
        program.send(SIGTERM)
        #expect(try program.end() == 0)
    }

    @Test func `SIGHUP reads it again, and the log has the outcome`() throws {
        try configure("{}")
        let socket = directory.path(of: "s")
        let program = try Program([
            builtProgram("stated"), "--config", path, "--socket", socket, "--data",
            directory.path(of: "d"),
        ])
        try program.waitForErrors(containing: "configured by \(path): 0 rules")
        try configure("{ rules: [ { keys: 'a', readonly: true } ] }")
        program.send(SIGHUP)
        try program.waitForErrors(
            containing: "notice: reloaded: rule 1 (a) readonly: none → true; from revision 1 on"
        )
        let client = try RawSocket.connected(to: socket)
        try client.ask("SET a 1", awaiting: "-REJECTED key 'a': it is read-only (rule 1")
        try configure("{")
        program.send(SIGHUP)
        try program.waitForErrors(containing: "\(path):1:2: expected '}'")
        try client.ask("SET a 1", awaiting: "-REJECTED")
    }

    @Test func `the service manager hears of the beginning and the end`() throws {
        try configure("{}")
        let socket = directory.path(of: "s")
        let manager = try RawSocket.bound(to: directory.path(of: "notify"), isDatagram: true)
        let program = try Program(
            [
                builtProgram("stated"), "--config", path, "--socket", socket, "--data",
                directory.path(of: "d"),
            ],
            environment: ["NOTIFY_SOCKET": directory.path(of: "notify")]
        )
        while try !manager.receive().hasPrefix("READY=1\n") {}
        for (text, status) in [
            ("{}", "STATUS=Serving; the configuration was reloaded"),
            (
                "[",
                "STATUS=Serving; \(path):1:2: expected ']'; not reloaded; the old configuration "
                    + "stays in force"
            ),
        ] {
            try configure(text)
            var before = timespec()
            clock_gettime(CLOCK_MONOTONIC, &before)
            program.send(SIGHUP)
            let begin = try manager.receive().split(separator: "\n")
            #expect(begin[0] == "RELOADING=1")
            let time = try #require(Int(begin[1].dropFirst("MONOTONIC_USEC=".count)))
            #expect(time >= before.tv_sec * 1_000_000 + before.tv_nsec / 1_000)
            #expect(try manager.receive() == "READY=1\n\(status)")
        }
    }

    @Test func `reloads of several clients come one after the other, each with its reply`() throws {
        let daemon = try daemon("{}")
        let peers = try (0..<20).map { _ in try Peer(daemon.socketPath) }
        for peer in peers { try peer.send("STATE.RELOAD", "PING") }
        for peer in peers {
            #expect(try peer.next().shown == #"["revision", 1, "changed", [], "restart", []]"#)
            #expect(try peer.next().shown == "+PONG")
        }
        let leaving = try Peer(daemon.socketPath)
        try leaving.send("STATE.RELOAD")
        leaving.socket.end()
        #expect(try Statectl.run(daemon, "reload").exitCode == 0)
        let transaction = try peers[0].replay(
            "> MULTI\n+OK\n> STATE.RELOAD\n-ERR STATE.RELOAD is not allowed inside MULTI; use it before MULTI or after EXEC"
        )
        #expect(transaction.hasSuffix("after EXEC"))
    }

    @Test func `smaller limits hold for who is connected, and for what is queued`() throws {
        let daemon = try daemon("{}")
        let peer = try Peer(daemon.socketPath)
        let value = [UInt8](repeating: 0x61, count: 100_000)
        try peer.send([[Array("MULTI".utf8)], [Array("SET".utf8), [0x6B], value]])
        #expect(try peer.next(2).map(\.shown) == ["+OK", "+QUEUED"])
        // Half a command, which is read on under the new limits.
        let half = try Peer(daemon.socketPath)
        try half.socket.send(Array("*3\r\n$3\r\nSET\r\n$1\r\nh\r\n$100000\r\n".utf8))
        #expect(try half.socket.receiveAtOnce()?.isEmpty ?? true)
        try configure("{ limits: { valueBytes: 1000, clients: 3 } }")
        #expect(try Statectl.run(daemon, "reload").exitCode == 0)
        let refusal = try peer.ask("EXEC").errorText
        #expect(
            refusal?.hasPrefix("EXECABORT Transaction undone: command 1, 'set': TOOBIG") == true
        )
        try half.socket.send(value + Array("\r\n*1\r\n$4\r\nPING\r\n".utf8))
        #expect(try half.next().errorText?.contains("1024") == true)
        #expect(try half.next().shown == "+PONG")
        let third = try Peer(daemon.socketPath)
        #expect(try third.ask("PING").shown == "+PONG")
        // Who runs the daemon has 8 places beyond that.
        let own = try (0..<8).map { _ in try Peer(daemon.socketPath) }
        for peer in own { #expect(try peer.ask("PING").shown == "+PONG") }
        let fourth = try Peer(daemon.socketPath)
        #expect(try fourth.next().errorText == "ERR max number of clients reached")
        withExtendedLifetime((peer, half, third, own)) {}
    }

    @Test func `the retention of the history changes while values are served`() throws {
        let daemon = try daemon("{}")
        let client = try daemon.connect()
        for number in UInt8(0)..<20 { _ = try client.set([number], for: "k") }
        _ = try client.compact(to: nil, shrinks: false)
        #expect(try client.history(of: "k", limit: 100).count == 20)
        try configure("{ history: { changes: 0 } }")
        #expect(try Statectl.run(daemon, "reload").text.contains("history.changes: 1000000 → 0\n"))
        _ = try client.compact(to: nil, shrinks: false)
        #expect(try client.history(of: "k", limit: 100).count < 3)
    }
}
