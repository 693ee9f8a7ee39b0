import Glibc
import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// Keys that live as long as a client, over kills of either side.
struct LifetimeTests: RuledTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func file(grace: Int) throws -> String {
        try directory.write("{ limits: { graceSeconds: \(grace) } }", to: "grace.json5")
    }

    @Test func `a thousand clients that are killed at once leave nothing, one commit each`() throws
    {
        let count = 1_000
        let daemon = try Daemon()
        let holder = try RunningCommand(
            builtProgram("StateTestProgram"),
            ["hold", daemon.socketPath, "\(count)"].map { Array($0.utf8) }
        )
        #expect(try holder.nextLine(within: .seconds(60)) == "ready")
        let client = try daemon.connect()
        #expect(try client.count(of: "hold/") == Int64(count))
        _ = try client.watch(["hold/"], by: true)
        holder.signal(SIGKILL)
        var keys: Set<[UInt8]> = []
        var last: Int64 = 0
        while keys.count < count {
            let event = try #require(try client.nextEvent(timeout: .seconds(60)))
            guard case .commit(_, let revision, let changes) = event else { continue }
            #expect(changes.count == 1 && changes[0].value == nil && revision > last)
            #expect(changes[0].cause?.command == "disconnect")
            last = revision
            keys.formUnion(changes.map(\.key))
        }
        #expect(try client.count(of: "hold/") == 0)
    }

    @Test(arguments: [true, false]) func `keys wait after a restart for those who claim them`(
        isKilled: Bool
    ) throws {
        let daemon = try Daemon(["--config", try file(grace: 3)])
        let clients = try (0..<3).map { _ in try Peer(daemon.socketPath) }
        var claims: [String] = []
        for (number, client) in clients.enumerated() {
            let reply = try client.ask("STATE.CLAIM").elements ?? []
            claims.append(try #require(reply[1].textValue))
            for key in ["a", "b"] {
                _ = try client.ask("STATE.SET \(key)/\(number) v LIFETIME connection")
            }
        }
        if isKilled { daemon.kill() } else { try daemon.stop() }
        try daemon.start()
        let observer = try daemon.connect()
        #expect(try observer.count(of: .everything) == 6)
        _ = try observer.watch([.everything], by: true)
        let back = try Peer(daemon.socketPath)
        let reply = try back.ask("STATE.CLAIM \(claims[1])").elements ?? []
        #expect(reply[1].textValue == claims[1] && reply[3] == .integer(2))
        for number in [0, 2] {
            let event = try observer.nextEvent(timeout: .seconds(60))
            guard case .commit(_, _, let changes)? = event else {
                Issue.record("the keys of client \(number) stay: \(String(describing: event))")
                return
            }
            #expect(changes.count == 2 && changes.allSatisfy { $0.value == nil })
        }
        #expect(try back.ask("EXISTS a/1 b/1") == .integer(2))
        // What is over cannot be claimed.
        let late = try Peer(daemon.socketPath).ask("STATE.CLAIM \(claims[0])").elements ?? []
        #expect(late[1].textValue != claims[0] && late[3] == .integer(0))
    }

    @Test func `keys of a process end with it, also while the daemon is down`() throws {
        let daemon = try Daemon()
        func service(_ key: String) throws -> RunningCommand {
            let command = try RunningCommand(
                builtProgram("statectl"),
                ["--socket", daemon.socketPath, "service", key, "v", "--", "sleep", "600"].map {
                    Array($0.utf8)
                }
            )
            #expect(try Statectl.run(daemon, "wait", key).exitCode == 0)
            return command
        }
        let (first, second) = (try service("s/1"), try service("s/2"))
        let client = try daemon.connect()
        let entry = try #require(try client.entry(for: "s/1"))
        #expect(entry.lifetime == .process)
        first.signal(SIGKILL)
        #expect(try Statectl.run(daemon, "wait", "s/1", "--absent").exitCode == 0)
        // The process still runs after the restart; another one ends meanwhile.
        let third = try service("s/3")
        daemon.kill()
        third.signal(SIGKILL)
        _ = third.wait()
        try daemon.start()
        let again = try daemon.connect()
        #expect(try eventually { try again.entry(for: "s/3") == nil })
        #expect(try again.entry(for: "s/2")?.lifetime == .process)
        second.signal(SIGKILL)
        #expect(try Statectl.run(daemon, "wait", "s/2", "--absent").exitCode == 0)
    }

    @Test func `a rule gives the keys of plain SETs the lifetime of the connection`() throws {
        let daemon = try daemon(
            """
            { keys: 'presence/', lifetime: 'connection' },
            { keys: 'memory/', lifetime: 'connection', backing: 'memory' },
            { keys: 'presence/fixed', lifetime: 'process' }
            """
        )
        let other = try Peer(daemon.socketPath)
        do {
            let peer = try Peer(daemon.socketPath)
            _ = try peer.ask("SET presence/me here")
            _ = try peer.ask("SET presence/timed here EX 1000")
            _ = try peer.ask("MSET memory/me here presence/fixed 1 plain 1")
            #expect(try peer.ask("EXISTS presence/me memory/me") == .integer(2))
        }
        #expect(try eventually { try other.ask("EXISTS presence/me memory/me") == .integer(0) })
        #expect(try other.ask("EXISTS presence/timed presence/fixed plain") == .integer(3))
        let explained = try Statectl.run(daemon, "explain", "presence/me").text
        #expect(explained.contains("lifetime") && explained.contains("connection"))
    }

    @Test func `a lifetime that makes no sense is refused`() throws {
        let daemon = try daemon("")
        for (options, words) in [
            ("lifetime: 'thread'", "lifetime"),
            ("lifetime: 'process', expire: '5s'", "remove 'expire' or 'lifetime'"),
        ] {
            _ = try file("{ keys: 'k/', \(options) }")
            let reload = try Statectl.run(daemon, "reload")
            #expect(reload.exitCode != 0 && reload.errorText.contains(words), "\(reload)")
        }
    }

    @Test func `a revert leaves keys with a lifetime alone, and brings none back`() throws {
        let daemon = try Daemon()
        let (peer, other) = (try Peer(daemon.socketPath), try Peer(daemon.socketPath))
        _ = try peer.ask("STATE.SET r/held 1 LIFETIME connection")
        _ = try other.ask("STATE.SET r/plain 1")
        var revision: Int64 = 0
        do {
            let brief = try Peer(daemon.socketPath)
            _ = try brief.ask("STATE.SET r/brief 1 LIFETIME connection")
            revision = try #require(try other.ask("STATE.SET r/last 1").elements?[1].integerValue)
        }
        #expect(try eventually { try other.ask("EXISTS r/brief") == .integer(0) })
        _ = try peer.ask("STATE.SET r/held 2 LIFETIME connection")
        _ = try other.ask("SET r/plain 2")
        let revert = try Statectl.run(daemon, "revert", "r/", "--to", "\(revision)")
        #expect(revert.text == "1\n", "\(revert)")
        #expect(try other.ask("MGET r/held r/plain r/brief").shown == #"["2", "1", (nil)]"#)
    }
}
