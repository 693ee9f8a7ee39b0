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

    @Test func `compact keeps the history from a revision on, and says so, also after a kill`()
        throws
    {
        let daemon = try Daemon()
        try set(daemon, 100)
        #expect(try field("history_rows", of: daemon) == "100")
        let result = try Statectl.run(daemon, "compact", "--to", "7")
        #expect(result.exitCode == 0)
        #expect(result.text == "the history is complete from revision 7 on\n")
        #expect(try field("compacted", of: daemon) == "7")
        // Ten live keys, and three commits of ten changes each.
        #expect(try field("history_rows", of: daemon) == "40")
        daemon.kill()
        try daemon.start()
        #expect(try field("compacted", of: daemon) == "7")
        #expect(try field("history_rows", of: daemon) == "40")
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
        try set(daemon, 200)
        let names = ["history_rows", "compacted", "history_backlog"]
        // They come from different threads, each a little later than the other.
        func fields() throws -> [String] { try names.map { try field($0, of: daemon) } }
        #expect(try eventually { try fields() == ["30", "18", "0"] })
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
        #expect(
            try eventually(within: .seconds(40)) {
                try Int(field("history_rows", of: daemon)) ?? 0 <= 30
            }
        )
        try daemon.stop()
    }
}
