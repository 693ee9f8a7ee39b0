import StateClient
import StateEngine
import StateTestSupport
import Testing

/// What a crash leaves, and that the check of it finds what it should.
struct CrashTests {
    @Test func `every law holds over crashes among 1, 8 and 32 writers`() throws {
        let programs = builtProgram("stated").split(separator: "/").dropLast()
        let result = try runCommand(
            "\(packageRoot)/scripts/crash",
            ["3"],
            environment: ["programs": "/" + programs.joined(separator: "/")]
        )
        #expect(result.exitCode == 0, "\(result)")
        #expect(result.text.contains("3 rounds, "), "\(result)")
    }

    /// `STATED_WATCH_SECONDS=600 STATED_WATCH_KILLS=10` are the numbers of `scripts/crash watch` without an argument.
    @Test func `every guarantee of a watch holds for 20 watchers over two crashes`() throws {
        let programs = builtProgram("stated").split(separator: "/").dropLast()
        let kills = Extent.named("STATED_WATCH_KILLS", short: 2)
        let result = try RunningCommand(
            "\(packageRoot)/scripts/crash",
            [
                "watch", "--seconds", "\(Extent.named("STATED_WATCH_SECONDS", short: 10))",
                "--kills", "\(kills)", "--seed", "\(Seed.base)",
            ].map { Array($0.utf8) },
            environment: ["programs": "/" + programs.joined(separator: "/")]
        ).finish(within: .seconds(3_600))
        #expect(result.exitCode == 0, "\(result)")
        #expect(result.text.contains("\(kills) kills: every guarantee held"), "\(result)")
    }

    /// Damage done by hand between the writers and the check.
    enum Damage: String, CaseIterable {
        case shortened = "no value is torn"
        case halved = "every mset is atomic"
        case lost = "every acknowledged write is there"
        case invented = "only written keys exist"
        case rewritten = "a change keeps its revision"
    }

    @Test(arguments: Damage.allCases)
    func `the check names the law that was broken`(damage: Damage) throws {
        let daemon = try Daemon()
        let log = daemon.directory.path(of: "writers.log")
        _ = try statebench(
            "writers",
            "--socket",
            daemon.socketPath,
            "--log",
            log,
            "--writes",
            "3000"
        )
        let client = try daemon.connect()
        let before = try statebench("check", "--socket", daemon.socketPath, "--log", log)
        #expect(try Double(client.count(of: .everything)) == before["keys"])
        try inflict(damage, log: log, client)
        let check = try runCommand(
            builtProgram("statebench"),
            ["check", "--socket", daemon.socketPath, "--log", log]
        )
        #expect(check.exitCode == 3, "\(check)")
        #expect(check.errorText.contains("broken law: \(damage.rawValue): key '"), "\(check)")
    }

    private func inflict(_ damage: Damage, log: String, _ client: Client) throws {
        switch damage {
        case .shortened:
            let key = try acknowledged(in: log) { $0.contains("/set/") }
            let value = try #require(try client.value(for: key))
            _ = try client.set(value.dropLast(), for: key)
        case .halved:
            let key = try acknowledged(in: log) { $0.contains("/mset/") && $0.contains("/3 ") }
            _ = try client.delete([Pattern(key.description)])
        case .lost:
            let key = try acknowledged(in: log) { $0.contains("/set/") }
            _ = try client.delete([Pattern(key.description)])
        case .invented:
            _ = try client.set([], for: "crash/0/set/64")
        case .rewritten:
            let key = try acknowledged(in: log) { $0.contains("/set/") && !$0.hasSuffix(" 0") }
            _ = try client.set(try #require(try client.value(for: key)), for: key)
        }
    }

    /// The first key of the log's lines `key NAME STAMP REVISION` that `isWanted` takes.
    private func acknowledged(in log: String, _ isWanted: (Substring) -> Bool) throws -> Key {
        let lines = String(decoding: try readFile(log), as: UTF8.self).split(separator: "\n")
        let line = try #require(lines.first { $0.hasPrefix("key ") && isWanted($0) })
        return try Key(String(line.split(separator: " ")[1]))
    }
}
