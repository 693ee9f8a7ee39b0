import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// `statectl lock` and its like, in processes that are killed; scripts/crash locks is the long form.
struct LockTests {
    private let daemon: Daemon

    init() throws { daemon = try Daemon() }

    private func start(_ arguments: String...) throws -> RunningCommand {
        try RunningCommand(
            builtProgram("statectl"),
            (["--socket", daemon.socketPath] + arguments).map { Array($0.utf8) }
        )
    }

    private func waiters(_ count: Int) throws {
        let client = try daemon.connect()
        #expect(try eventually { try client.count(of: "locks/") == Int64(count) })
    }

    @Test func `contenders in many processes never overlap, and tokens rise`() throws {
        // Appends are atomic: each section is a line at its start and one at its end.
        let path = daemon.directory.path(of: "sections")
        let section = """
            echo "+$STATED_LOCK_TOKEN" >> \(path); sleep 0.002; echo "-$STATED_LOCK_TOKEN" >> \(path)
            """
        let contenders = try (0..<24).map { _ in try start("lock", "l", "--", "sh", "-c", section) }
        let library = try (0..<4).map { _ in
            try RunningCommand(
                builtProgram("StateTestProgram"),
                ["locks", daemon.socketPath, "l", "10", path].map { Array($0.utf8) }
            )
        }
        // The daemon is killed among them, and some contenders, holding or waiting.
        #expect(eventually { ((try? readFile(path))?.count ?? 0) > 40 })
        daemon.kill()
        try daemon.start()
        for contender in contenders[4..<8] { contender.signal(SIGKILL) }
        for contender in contenders {
            let code = contender.wait()
            #expect(code == 0 || code == 128 + SIGKILL)
        }
        for program in library { #expect(program.wait() == 0) }
        let lines = String(decoding: try readFile(path), as: UTF8.self).split(separator: "\n")
        var (open, last): (Int64?, Int64) = (nil, 0)
        for line in lines {
            let token = try #require(Int64(line.dropFirst()))
            if line.hasPrefix("+") {
                // The section before ended, or its process was killed in it.
                #expect(token > last, "\(line) after \(last)")
                (open, last) = (token, token)
            } else {
                #expect(open == token, "\(line) within \(String(describing: open))")
                open = nil
            }
        }
        #expect(lines.count { $0.hasPrefix("-") } >= 20 + 40)
        try waiters(0)
    }

    @Test func `waiting is in the order of arrival, and locks shows it`() throws {
        let first = try start("lock", "q", "--", "sleep", "600")
        try waiters(1)
        var rest: [RunningCommand] = []
        for number in 1...3 {
            rest.append(try start("lock", "q", "--", "echo", "\(number)"))
            try waiters(number + 1)
        }
        let rows = try Statectl.run(daemon, "locks").lines.dropFirst()
            .map { $0.split(separator: " ").map(String.init) }
        #expect(rows.map { $0[0] } == ["holds", "waits", "waits", "waits"])
        #expect(rows.map { $0[4] } == ([first] + rest).map { "\($0.pid)" })
        let tokens = rows.compactMap { Int64($0[2]) }
        #expect(tokens == tokens.sorted() && tokens.count == 4)
        // One in the middle gives up: the others keep their places.
        rest[1].signal(SIGTERM)
        try waiters(3)
        first.signal(SIGTERM)
        #expect(try rest[0].finish().text == "1\n")
        #expect(try rest[2].finish().text == "3\n")
        #expect(try Statectl.run(daemon, "locks", "q", "--json").text == "")
    }

    @Test func `one who waits no longer leaves the queue, and says who is before it`() throws {
        let holder = try start("lock", "a", "--", "sleep", "600")
        try waiters(1)
        let result = try Statectl.run(daemon, "lock", "a", "--wait", "0", "--", "true")
        #expect(result.exitCode == 1 && result.errorText.contains("process \(holder.pid)"))
        try waiters(1)
        holder.signal(SIGTERM)
        _ = holder.wait()
        // The end of a process is known before a later command.
        #expect(try Statectl.run(daemon, "lock", "a", "--wait", "0", "--", "true").exitCode == 0)
    }

    @Test func `shared holders exclude exclusive ones only`() throws {
        let readers = try (0..<2).map { _ in
            try start("lock", "s", "--shared", "--", "sleep", "600")
        }
        try waiters(2)
        let rows = try Statectl.run(daemon, "locks", "s").lines.dropFirst()
        #expect(rows.allSatisfy { $0.hasPrefix("holds  shared") } && rows.count == 2)
        let writer = try start("lock", "s", "--", "echo", "alone")
        try waiters(3)
        // It does not wait behind those that came before it, but for those.
        let late = try Statectl.run(daemon, "lock", "s", "--shared", "--wait", "0", "--", "true")
        #expect(late.exitCode == 1)
        for reader in readers { reader.signal(SIGKILL) }
        #expect(try writer.finish().text == "alone\n")
    }

    @Test func `the command is stopped when the lock is lost`() throws {
        let command = try start("lock", "l", "--", "sh", "-c", "echo runs; exec sleep 600")
        // Until it runs, a contender whose key is gone only joins the queue again.
        #expect(try command.nextLine(within: .seconds(60)) == "runs")
        #expect(try Statectl.run(daemon, "delete", "locks/l/").text == "1\n")
        let result = try command.finish()
        #expect(result.exitCode == 128 + SIGTERM)
        #expect(
            result.errorText
                == "statectl: lock l is lost, because its key was deleted: stopping the command\n"
        )
    }

    @Test func `the command has the exit code, the token and the input`() throws {
        let command = try start(
            "lock",
            "x",
            "--",
            "sh",
            "-c",
            "echo $STATED_LOCK $STATED_LOCK_TOKEN; cat; exit 7"
        )
        let result = try command.finish(input: Array("in".utf8))
        #expect(
            result.exitCode == 7 && result.text.hasPrefix("x ") && result.text.hasSuffix("\nin")
        )
        let missing = try Statectl.run(daemon, "lock", "x", "--", "/no/such/program")
        #expect(missing.exitCode == 127 && missing.errorText.contains("/no/such/program"))
        #expect(try Statectl.run(daemon, "lock", "x").exitCode == 2)
        #expect(try Statectl.run(daemon, "lock", "", "--", "true").exitCode == 2)
    }

    @Test(arguments: ["lock", "elect"])
    func `the command can change other keys only as long as it has the lock`(verb: String) throws {
        let script = "echo $STATED_LOCK $STATED_LOCK_ID $STATED_LOCK_TOKEN; exec sleep 600"
        let command = try start(verb, "jobs/main", "--", "sh", "-c", script)
        let words = try command.nextLine(within: .seconds(60)).split(separator: " ")
        try #require(words.count == 3 && words[0] == "jobs/main")
        let key = "locks/\(words[0])/\(words[1])"
        #expect(try Statectl.run(daemon, "get", key).text == "exclusive\n")

        func change(to value: String) throws -> CommandResult {
            let lines = "check \(key) \(words[2])\nset report = \(value)\n"
            return try Statectl.run(daemon, "txn", "-", input: lines)
        }
        #expect(try change(to: "first").text == "1\n")
        #expect(try Statectl.run(daemon, "delete", "locks/jobs/main/").text == "1\n")
        let late = try change(to: "late")
        #expect(late.exitCode == 4 && late.errorText.contains("CONFLICT key '\(key)'"))
        #expect(try Statectl.run(daemon, "get", "report").text == "first\n")
        #expect(try command.finish().exitCode == 128 + SIGTERM)
    }

    @Test func `the command of a service has the key`() throws {
        let command = try start("service", "web/1", "up", "--", "sh", "-c", "echo $STATED_KEY")
        #expect(try command.finish().text == "web/1\n")
    }

    @Test func `a leader is named by a key, and the next one follows`() throws {
        let first = try start("elect", "leader", "--value", "one", "--", "sleep", "600")
        #expect(try Statectl.run(daemon, "wait", "leader", "--value", "one").exitCode == 0)
        let second = try start("elect", "leader", "--", "sleep", "600")
        try waiters(2)
        first.signal(SIGKILL)
        let name = "\(second.pid)"
        #expect(try Statectl.run(daemon, "wait", "leader", "--value", name).exitCode == 0)
        second.signal(SIGKILL)
        #expect(try Statectl.run(daemon, "wait", "leader", "--absent").exitCode == 0)
        try waiters(0)
    }
}
