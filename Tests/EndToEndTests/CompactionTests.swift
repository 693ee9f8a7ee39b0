import Glibc
import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// `statectl compact`, and what the daemon says of its history.
struct CompactionTests {
    private func set(_ daemon: Daemon, _ count: Int) throws {
        let lines = (0..<count).map { "key/\($0 % 10) = \($0)\n" }.joined()
        // Each import is a commit: ten keys at once.
        for start in stride(from: 0, to: count, by: 10) {
            let part = lines.split(separator: "\n")[start..<start + 10].joined(separator: "\n")
            #expect(try Statectl.run(daemon, "import", "-", input: part + "\n").exitCode == 0)
        }
    }

    private func field(_ name: String, of daemon: Daemon) throws -> String {
        try daemon.connect().status().first { $0.name == name }?.text ?? ""
    }

    private func versionCount(of key: Key, _ daemon: Daemon) throws -> Int {
        try daemon.connect().history(of: key, limit: 1_000).count
    }

    @Test func `compact keeps the history from a revision on, and says so, also after a kill`()
        throws
    {
        let daemon = try Daemon()
        try set(daemon, 100)
        #expect(try versionCount(of: "key/3", daemon) == 10)
        let result = try Statectl.run(daemon, "compact", "--to", "7")
        #expect(result.exitCode == 0)
        #expect(result.text == "the history is complete from revision 7 on\n")
        #expect(try field("compacted", of: daemon) == "7")
        // Three changes, and the state before them.
        #expect(try versionCount(of: "key/3", daemon) == 4)
        daemon.kill()
        try daemon.start()
        #expect(try field("compacted", of: daemon) == "7")
        #expect(try versionCount(of: "key/3", daemon) == 4)
        #expect(try Statectl.run(daemon, "get", "key/3").text == "93\n")
        let again = try Statectl.run(daemon, "compact", "--to", "3", "--json")
        #expect(again.text == "{\"compacted\":7}\n")
        let shrunk = try Statectl.run(daemon, "compact", "--shrink", "--json")
        #expect(shrunk.exitCode == 0 && shrunk.text.hasPrefix("{\"compacted\":7,\"freed\":"))
        _ = try daemon.stop()
        #expect(
            try runCommand(builtProgram("stated"), ["--check", "--data", daemon.dataPath]).exitCode
                == 0
        )
    }

    @Test func `compact takes a time, or now, and leaves nothing of what is older on the disk`()
        throws
    {
        let daemon = try Daemon()
        #expect(try Statectl.run(daemon, "set", "k", "a secret of yesterday").exitCode == 0)
        try set(daemon, 50)
        #expect(try Statectl.run(daemon, "set", "k", "no secret").exitCode == 0)
        let early = try Statectl.run(daemon, "compact", "--to", "2 hours ago")
        #expect(early.exitCode == 0 && early.text == "the history is complete from revision 0 on\n")
        #expect(try versionCount(of: "k", daemon) == 2)
        let result = try Statectl.run(daemon, "compact", "--to", "now", "--shrink")
        #expect(result.exitCode == 0, "\(result)")
        #expect(result.text.hasPrefix("the history is complete from revision 7 on\n"))
        #expect(try versionCount(of: "k", daemon) == 1)
        let found = try runCommand("grep", ["-rl", "a secret of yesterday", daemon.dataPath])
        #expect(found.exitCode == 1, "\(found)")
        #expect(try Statectl.run(daemon, "compact", "--to", "nw").exitCode == 2)
    }

    @Test func `a revision that is not reached yet is refused, and an option that is none`() throws
    {
        let daemon = try Daemon()
        try set(daemon, 10)
        let result = try Statectl.run(daemon, "compact", "--to", "2")
        #expect(result.exitCode == 2)
        #expect(result.errorText.contains("revision 2 is above the current revision 1"))
        #expect(try Statectl.run(daemon, "compact", "--to", "-1").exitCode == 2)
        #expect(try Statectl.run(daemon, "compact", "7").exitCode == 2)
        let peer = try Peer(daemon.socketPath)
        #expect(try peer.ask("STATE.COMPACT UP").textValue == nil)
        _ = try peer.ask("MULTI")
        _ = try peer.ask("STATE.COMPACT")
        guard case .error(let error) = try peer.ask("EXEC") else {
            Issue.record("EXEC compacted")
            return
        }
        #expect(error.message.contains("inside MULTI"))
    }

    @Test func `the retention of the options is kept to without being asked`() throws {
        let daemon = try Daemon("--history-changes", "20")
        let client = try daemon.connect()
        let value = [UInt8](repeating: 7, count: 1 << 20)
        for number in 0..<90 { try client.set(value, for: Key(verified: "key/\(number % 3)")) }
        #expect(try eventually { try Int(field("compacted", of: daemon)) ?? 0 > 4 })
        #expect(try Int(field("compacted", of: daemon)) ?? 0 <= 70)
    }

    @Test func `a commit under a clock that runs ahead does not keep the history from growing old`()
        throws
    {
        let directory = try TemporaryDirectory()
        let clock = try MovedClock(in: directory)
        let daemon = try Daemon(
            "--history-age",
            "2s",
            directory: directory,
            environment: clock.environment
        )
        try set(daemon, 50)
        try clock.moveAhead()
        let client = try daemon.connect()
        try client.set([1], for: "ahead")
        try clock.moveBack()
        let entry = try #require(try client.entry(for: "ahead"))
        #expect(entry.time > Int64(time(nil)) * 1_000 + 300_000_000_000)
        try set(daemon, 50)
        let hasAged = try eventually(within: .seconds(40)) {
            try client.set([2], for: "later")
            _ = try client.compact(to: nil, shrinks: false)
            return try versionCount(of: "key/3", daemon) == 1
        }
        #expect(hasAged)
        try daemon.stop()
    }
}
