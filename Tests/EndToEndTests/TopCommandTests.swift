import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// `statectl top` without a terminal.
struct TopCommandTests {
    let daemon: Daemon

    init() throws { daemon = try Daemon() }

    @Test func `once prints the rates of one interval, the busiest keys and who writes them`()
        throws
    {
        let traffic = try TopTraffic(on: daemon)
        defer { traffic.end() }
        let watch = try Statectl.start(daemon, "watch", "busy/")
        defer { _ = try? watch.finish() }
        try traffic.waitUntilBusy()
        let json = try Statectl.run(daemon, "top", "--once", "--json", "--interval", "500ms").text
        for part in [
            #""commitsPerSecond":"#, #""syncMilliseconds99":"#, #""keys":[{"key":"busy/1","#,
            #""command":"statectl""#, #""storage":"ok""#, #""patterns":"busy/""#,
        ] { #expect(json.contains(part), "\(part): \(json)") }
        let lines = try Statectl.run(daemon, "top", "--once", "--interval", "500ms").lines
        #expect(lines[0].hasPrefix("stated "))
        #expect(lines.contains { $0.hasSuffix("  busy/1") })
        #expect(lines.count <= 24 && lines.allSatisfy { $0.count <= 80 })
        Glibc.kill(watch.pid, SIGKILL)
    }

    @Test func `a daemon that stores nothing has rates, too`() throws {
        let memory = try Daemon("--memory")
        let traffic = try TopTraffic(on: memory)
        defer { traffic.end() }
        try traffic.waitUntilBusy()
        let json = try Statectl.run(memory, "top", "--once", "--json", "--interval", "500ms").text
        for name in ["commitsPerSecond", "changesPerSecond", "bytesPerSecond"] {
            #expect(json.contains("\"\(name)\":") && !json.contains("\"\(name)\":0.0,"), "\(json)")
        }
    }

    @Test func `a size that no terminal has is not believed`() throws {
        let result = try runCommand(
            "/bin/sh",
            ["-c", "ulimit -v 2000000; exec \"$@\"", "sh", builtProgram("statectl"), "--socket"]
                + [daemon.socketPath, "top", "--once", "--interval", "100ms"],
            environment: ["COLUMNS": "99999999999", "LINES": "99999999999"]
        )
        #expect(result.exitCode == 0 && result.lines[0].hasPrefix("stated "), "\(result)")
    }

    @Test func `it is for administrators and terminals, and says so`() throws {
        #expect(try Statectl.run(daemon, "top").exitCode == 2)
        #expect(
            try Statectl.run(daemon, "top", "--json", "--once", "--interval", "1h").exitCode == 2
        )
        let rules = "{ rules: [{ keys: 'a', read: ['root'] }] }"
        let directory = try TemporaryDirectory()
        let other = try Daemon("--config", directory.write(rules, to: "c.json5"))
        #expect(try Statectl.run(other, "top", "--once", "--interval", "100ms").exitCode == 0)
    }

    @Test func `a key that is busy now is the first, although others changed more before`() throws {
        let client = try daemon.connect()
        _ = try client.activity()
        for number in 0..<4_800 {
            try client.set([], for: Key("old\(number % 120)"))
            // What nobody has looked at for 10 s is forgotten, also on a machine that is busy.
            if number % 120 == 0 { _ = try client.activity() }
        }
        let deadline = Deadline(after: .seconds(60))
        var rows: [Client.ActivityCount] = []
        repeat {
            try #require(!deadline.hasPassed, "\(rows.first.map { "\($0)" } ?? "none")")
            try client.set([], for: "hot")
            usleep(200_000)
            rows = try client.activity().keys
        } while rows.first?.name != Array("hot".utf8)
        try #require(rows.count > 1)
        #expect(rows[0].changes < rows[1].changes && rows[0].changesPerSecond < 20)
        let json = try Statectl.run(daemon, "top", "--once", "--json", "--interval", "100ms").text
        #expect(json.contains(#""keys":[{"key":"hot","#), "\(json)")
    }

    @Test func `what nobody looks at is not counted, and is no watch`() throws {
        let client = try daemon.connect()
        #expect(try client.activity().keys.isEmpty)
        for number in 0..<3_000 { try client.set([], for: Key("k\(number % 2_500)")) }
        let counted = try client.activity()
        #expect(counted.keys.count == 100)
        #expect(counted.writers.first?.changes == 3_000)
        let status = try client.status()
        #expect(status.first { $0.name == "watches" }?.number == 0)
    }
}
