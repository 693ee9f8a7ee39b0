import Glibc
import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// Keys with `durability: "interval"`, over kills, stops and reloads of the daemon.
struct IntervalDurabilityTests: RuledTests {
    let directory: TemporaryDirectory
    private static let rule = "{ keys: 'late/', durability: 'interval', commitEvery: '1h' }"

    init() throws { directory = try TemporaryDirectory() }

    private func status(_ client: Client, _ name: String) throws -> Int64? {
        try client.status().first { $0.name == name }?.number
    }

    /// The durability in the reply to a set.
    private func write(
        _ client: Client,
        _ key: Key,
        _ value: String,
        _ durability: Durability? = nil
    ) throws -> (revision: Int64, durability: String) {
        let commit = try client.set(Array(value.utf8), for: key, durability: durability)
        return (commit.revision, commit.durability)
    }

    @Test func `durable before told: a kill loses nothing, and no watch is told of a loss`() throws
    {
        let daemon = try daemon(Self.rule)
        var client = try daemon.connect()
        var told: [Int64] = []
        for round in 0..<3 {
            told.append(try write(client, "late/a", "\(round)").revision)
            if round == 1 { _ = try client.sync() }
            told.append(try write(client, Key("late/b\(round)"), "x").revision)
            daemon.kill()
            try daemon.start()
            client = try daemon.connect()
            let peer = try Peer(daemon.socketPath)
            for revision in told {
                let reply = try peer.ask("STATE.CHANGES SINCE \(revision) late/")
                #expect(reply.elements?.first?.textValue != "gap")
            }
            let entry = try client.entry(for: "late/a")
            #expect(entry?.value == Array("\(round)".utf8) && entry?.durability == "synced")
            #expect(entry?.revision == told[told.count - 2])
        }
        #expect(Set(told).count == told.count && told == told.sorted())
        let history = try Statectl.run(daemon, "history", "late/a")
        #expect(history.lines.count == 3, "\(history)")
        #expect(try value(client, "late/b0") == "x" && value(client, "late/b2") == "x")
    }

    @Test func `durable before told: a kill while the disk commits other keys loses nothing`()
        throws
    {
        let daemon = try daemon(Self.rule)
        var random = SplitMix(seed: Seed.base)
        let value = String(repeating: "x", count: 32 << 10)
        for round in 0..<12 {
            let (other, writer) = (try Peer(daemon.socketPath), try Peer(daemon.socketPath))
            let commands = (0..<64).map { Peer.words("SET stored/\($0) \(value)") }
            // The replies of storage are not awaited: the commit is under way.
            try other.send(commands)
            let count = Int.random(in: 1...40, using: &random)
            for number in 0..<count {
                #expect(try writer.ask("SET late/a \(round).\(number)") == .simple("OK"))
            }
            daemon.kill()
            try daemon.start()
            let client = try daemon.connect()
            #expect(try self.value(client, "late/a") == "\(round).\(count - 1)")
            let found = try #require(try client.entry(for: "late/a"))
            #expect(found.durability == "synced")
            let peer = try Peer(daemon.socketPath)
            let reply = try peer.ask("STATE.CHANGES SINCE \(found.revision) late/")
            #expect(reply.elements?.first?.textValue != "gap")
        }
    }

    @Test func `the end of the machine loses what was not stored yet, and nothing before it`()
        throws
    {
        let daemon = try daemon(Self.rule)
        let client = try daemon.connect()
        let first = try write(client, "late/a", "1")
        #expect(first.durability == "interval")
        #expect(try client.entry(for: "late/a")?.durability == "interval")
        #expect(try eventually { try status(client, "deferred") == 1 })
        #expect(try client.sync() >= first.revision)
        #expect(try client.entry(for: "late/a")?.durability == "synced")
        let lost = try write(client, "late/a", "2")
        _ = try write(client, "late/b", "3")
        #expect(try eventually { try status(client, "deferred_bytes") == 14 })
        try failMachine(under: daemon)
        try daemon.start()
        let again = try daemon.connect()
        #expect(try value(again, "late/a") == "1" && value(again, "late/b") == nil)
        #expect(try again.entry(for: "late/a")?.revision == first.revision)
        // A revision that was acknowledged is of no other change.
        let next = try write(again, "late/b", "4")
        #expect(next.revision > lost.revision + 1)
        let peer = try Peer(daemon.socketPath)
        func isGap(_ revision: Int64, _ pattern: String) throws -> Bool {
            let reply = try peer.ask("STATE.CHANGES SINCE \(revision) \(pattern)")
            return reply.elements?.first?.textValue == "gap"
        }
        #expect(try isGap(lost.revision, "late/") && isGap(lost.revision + 1, "/"))
        #expect(try !isGap(first.revision, "late/") && !isGap(lost.revision, "other/"))
        #expect(try !isGap(next.revision, "late/"))
    }

    @Test func `a stop stores everything, and no watch is told of a loss`() throws {
        let daemon = try daemon(Self.rule)
        let client = try daemon.connect()
        let told = try write(client, "late/a", "1")
        try daemon.stop()
        try daemon.start()
        #expect(try value(try daemon.connect(), "late/a") == "1")
        let peer = try Peer(daemon.socketPath)
        let reply = try peer.ask("STATE.CHANGES SINCE \(told.revision) late/")
        #expect(reply.elements?.first?.textValue != "gap")
        daemon.kill()
    }

    @Test func `it is stored in time, and with any commit that waits`() throws {
        let daemon = try daemon(
            "{ keys: 'soon/', durability: 'interval', commitEvery: '50ms' }, \(Self.rule)"
        )
        let client = try daemon.connect()
        _ = try write(client, "soon/a", "1")
        #expect(try eventually { try client.entry(for: "soon/a")?.durability == "synced" })
        _ = try write(client, "late/a", "1")
        _ = try write(client, "late/b", "1", .synced)
        #expect(try client.entry(for: "late/a")?.durability == "synced")
        _ = try write(client, "late/a", "2")
        _ = try write(client, "stored", "1")
        _ = try write(client, "late/c", "1")
        try failMachine(under: daemon)
        try daemon.start()
        let again = try daemon.connect()
        #expect(try value(again, "late/a") == "2" && value(again, "late/c") == nil)
        #expect(try value(again, "soon/a") == "1" && value(again, "stored") == "1")
    }

    @Test func `bounded: with a limit of 0, a reply waits until the store has the change`() throws {
        let configuration = try directory.write(
            "{ limits: { deferredBytes: 0 }, rules: [\(Self.rule)] }",
            to: "limits.json5"
        )
        let daemon = try Daemon(["--config", configuration])
        let client = try daemon.connect()
        for number in 0..<20 { _ = try write(client, "late/a", "\(number)") }
        try failMachine(under: daemon)
        try daemon.start()
        #expect(try value(try daemon.connect(), "late/a") == "19")
    }

    @Test func `the history has what was acknowledged whenever it is read`() throws {
        let daemon = try daemon(Self.rule)
        let client = try daemon.connect()
        let first = try write(client, "late/a", "1")
        _ = try write(client, "late/a", "2")
        let history = try Statectl.run(daemon, "history", "late/a")
        #expect(history.exitCode == 0 && history.lines.count == 2, "\(history)")
        #expect(try client.entry(for: "late/a")?.durability == "synced")
        _ = try write(client, "late/a", "3")
        let past = try Statectl.run(daemon, "get", "late/a", "--at", "\(first.revision)")
        #expect(past.text == "1\n")
        _ = try write(client, "late/a", "4")
        let synced = try Statectl.run(daemon, "sync")
        #expect(synced.exitCode == 0 && synced.text.hasPrefix("everything up to revision "))
        try failMachine(under: daemon)
        try daemon.start()
        #expect(try value(try daemon.connect(), "late/a") == "4")
    }

    @Test func `a transaction waits only with a stored key`() throws {
        let daemon = try daemon(Self.rule)
        let peer = try Peer(daemon.socketPath)
        _ = try peer.ask("MULTI")
        _ = try peer.ask("SET late/a 1")
        _ = try peer.ask("SET late/b 1")
        _ = try peer.ask("EXEC")
        let client = try daemon.connect()
        #expect(try client.entry(for: "late/b")?.durability == "interval")
        _ = try peer.ask("MULTI")
        _ = try peer.ask("SET late/a 2")
        _ = try peer.ask("STATE.SYNC")
        _ = try peer.ask("EXEC")
        #expect(try client.entry(for: "late/a")?.durability == "synced")
        _ = try peer.ask("STATE.APPLY SET late/a 3 SET stored 1")
        #expect(try client.entry(for: "late/a")?.durability == "synced")
    }

    @Test func `a reload begins it and ends it`() throws {
        let daemon = try daemon("{ keys: 'x', durability: 'synced' }")
        let client = try daemon.connect()
        let before = try write(client, "late/a", "1")
        _ = try file(Self.rule)
        #expect(try Statectl.run(daemon, "reload").exitCode == 0)
        #expect(try write(client, "late/a", "2").durability == "interval")
        #expect(try client.sync() > before.revision)
        let lost = try write(client, "late/a", "3")
        try failMachine(under: daemon)
        try daemon.start()
        let again = try daemon.connect()
        #expect(try value(again, "late/a") == "2")
        let peer = try Peer(daemon.socketPath)
        let reply = try peer.ask("STATE.CHANGES SINCE \(lost.revision) late/")
        #expect(reply.elements?.first?.textValue == "gap")
        _ = try write(again, "late/a", "4")
        _ = try file("")
        #expect(try Statectl.run(daemon, "reload").exitCode == 0)
        #expect(try write(again, "late/b", "1").durability == "synced")
        #expect(try again.entry(for: "late/a")?.durability == "synced")
    }

    @Test func `durable before told: a key in a file waits, whatever a reload says`() throws {
        let files = directory.path(of: "files")
        try #require(mkdir(files, 0o700) == 0)
        let daemon = try daemon("{ keys: 'late/', backing: 'file', directory: '\(files)' }")
        let client = try daemon.connect()
        _ = try write(client, "late/a", "old")
        // The backing stays until a restart.
        _ = try file(Self.rule)
        _ = try Statectl.run(daemon, "reload")
        #expect(try write(client, "late/a", "new").durability == "synced")
        #expect(try readFile(files + "/a") == Array("new".utf8))
        #expect(try status(client, "deferred") == 0)
    }

    @Test(arguments: [
        ("{ keys: 'a/', commitEvery: '5s' }", "it needs durability: \"interval\""),
        ("{ keys: 'a/', durability: 'interval', commitEvery: '5ms' }", "from 10ms to 1h"),
        ("{ keys: 'a/', durability: 'interval', backing: 'memory' }", "another backing"),
    ])
    func `a rule that cannot be is refused by name`(rule: String, message: String) throws {
        let program = try Program([
            builtProgram("stated"), "--check-config", try file(rule),
        ])
        #expect(try program.end() != 0)
        #expect(program.errors.contains(message), "\(program.errors)")
    }

    @Test func `rare changes do not wake the thread that takes the loop over`() throws {
        let daemon = try daemon(Self.rule)
        let client = try daemon.connect()
        // It starts with the first change that the loop keeps itself.
        let hasStarted = try eventually {
            _ = try write(client, "late/a", "first")
            return try wakeUpCount(of: "substitute", in: daemon) != nil
        }
        try #require(hasStarted)
        let before = try #require(try wakeUpCount(of: "substitute", in: daemon))
        for number in 0..<40 {
            usleep(20_000)
            #expect(try write(client, "late/a", "\(number)").durability == "interval")
        }
        // A disk that is slow now and then wakes it.
        let count = try #require(try wakeUpCount(of: "substitute", in: daemon)) - before
        #expect(count < 20, "\(count) of 40 changes")
    }

    /// How often a thread has begun to wait; nil if there is none of that name.
    private func wakeUpCount(of name: String, in daemon: Daemon) throws -> Int? {
        let folder = "/proc/\(daemon.pid)/task"
        let entries = try #require(opendir(folder))
        defer { closedir(entries) }
        while let entry = readdir(entries) {
            let thread = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            // A thread may end meanwhile.
            guard !thread.hasPrefix("."), let status = try? readFile("\(folder)/\(thread)/status")
            else { continue }
            let lines = String(decoding: status, as: UTF8.self).split(separator: "\n")
            guard lines.first == "Name:\t\(name)" else { continue }
            let line = lines.first { $0.hasPrefix("voluntary_ctxt_switches:") }
            return line?.split(separator: "\t").last.flatMap { Int($0) }
        }
        return nil
    }
}
