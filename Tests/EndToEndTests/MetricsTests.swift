import Glibc
import StateTestSupport
import StateWire
import Testing

/// What `statectl metrics` prints: what docs/operations.md says of it, promtool, and users.
struct MetricsTests {
    private static let page =
        (try? readFile(packageRoot + "/docs/operations.md"))
        .map { String(decoding: $0, as: UTF8.self) } ?? ""

    /// The rows of a table of the page that begin with a name in backticks, each with its cells.
    private func rows(_ start: String) -> [[String]] {
        MetricsTests.page.split(separator: "\n").filter { $0.hasPrefix("| `\(start)") }.map {
            line in
            line.split(separator: "|").map { cell in
                cell.trimmingPrefix { $0 == " " }.reversed().trimmingPrefix { $0 == " " }.reversed()
                    .map(String.init).joined()
            }
        }
    }

    private func names(in cell: String) -> [String] {
        cell.matches(of: /`(\w+)`/).map { String($0.1) }
    }

    @Test func `docs/operations.md says of each metric what it is, and what to do if it is high`()
        throws
    {
        // Without a cluster there is no metric of one.
        let directory = try TemporaryDirectory()
        let configuration = try directory.write(
            Array(
                "{ cluster: { user: 'root' }, rules: [{ keys: 'c/', backing: 'cluster' }] }".utf8
            ),
            to: "stated.json5"
        )
        let daemon = try Daemon("--config", configuration)
        // Without a handler there is no metric of handlers.
        let handler = ["--name", "h", "--count", "1", "--timeout", "1ms", "--", "true"]
        _ = try Statectl.run(["--socket", daemon.socketPath, "watch", "a/"] + handler)
        _ = try Statectl.run(daemon, "xyzzy")
        let exposed = try Statectl.run(daemon, "metrics").lines.filter { $0.hasPrefix("# TYPE ") }
            .map { String($0.split(separator: " ")[2]) }
        var described: [String] = []
        for row in rows("stated_") where row.count != 3 || row.contains("") {
            Issue.record("not a meaning and what to do: \(row)")
        }
        for row in rows("stated_") { described += names(in: row[0]) }
        // Only once a client got an error.
        #expect(Set(described) == Set(exposed + ["stated_errors_total"]))
        #expect(described.count == Set(described).count && described.count > 40)
    }

    @Test func `docs/operations.md says of each alert what to do`() throws {
        let rules = try readFile(packageRoot + "/config/prometheus/stated.rules.yml")
        let alerts = String(decoding: rules, as: UTF8.self).matches(of: /- alert: (\w+)/)
            .map { String($0.1) }
        let found = rows("Stated")
        #expect(alerts.count == 8 && found.map { names(in: $0[0])[0] } == alerts)
        for row in found { #expect(row.count == 3 && !row.contains(""), "\(row)") }
    }

    @Test(.enabled(if: isInstalled("promtool"), "promtool is not installed"))
    func `promtool finds nothing wrong with the metrics and the alerts, and tests their times`()
        throws
    {
        let daemon = try Daemon()
        #expect(try Statectl.run(daemon, "set", "a", "b").exitCode == 0)
        let metrics = try Statectl.run(daemon, "metrics").output
        let check = try runCommand("promtool", ["check", "metrics"], input: metrics)
        #expect(check.exitCode == 0 && check.error.isEmpty && check.output.isEmpty, "\(check)")
        for words in [
            ["check", "rules", packageRoot + "/config/prometheus/stated.rules.yml"],
            ["test", "rules", packageRoot + "/Tests/Prometheus/alerts.yml"],
        ] {
            let alerts = try runCommand("promtool", words)
            #expect(alerts.exitCode == 0, "\(alerts)")
        }
    }

    // MARK: By user

    /// The rows of a metric by uid.
    private func byUser(_ name: String, _ text: String) -> [String: Int] {
        let rows = text.split(separator: "\n").filter { $0.hasPrefix("stated_user_\(name){") }
        return rows.reduce(into: [:]) { found, row in
            guard let match = row.firstMatch(of: /uid="(\w+)"} (\d+)$/) else { return }
            found[String(match.1)] = Int(match.2)
        }
    }

    private func rulesOfAll(_ directory: TemporaryDirectory) throws -> String {
        chmod(directory.path, 0o711)
        let rules = """
            { socket: { mode: "0666" }, rules: [{ keys: "root/", read: ["root"], write: ["root"] }] }
            """
        return try directory.write(rules, to: "users.json5")
    }

    private func ask(_ user: TestUser, _ daemon: Daemon, _ words: String...) throws -> ByteSocket {
        let socket = try user.connect(to: daemon.socketPath)
        var writer = RequestWriter()
        writer.append(words.map { Array($0.utf8) })
        try socket.send(writer.bytes)
        #expect(try socket.receive() != nil)
        return socket
    }

    @Test(.enabled(if: geteuid() == 0, "only root can act as other users"))
    func `connections, commands, commits, errors and denials are counted by user`() throws {
        let directory = try TemporaryDirectory()
        let daemon = try Daemon("--config", rulesOfAll(directory), directory: directory)
        let (a, b) = (TestUser(uid: 60_001), TestUser(uid: 60_002))
        let open = try ask(a, daemon, "SET", "a", "1")
        for _ in 0..<3 { try ask(a, daemon, "SET", "a", "2").end() }
        try ask(a, daemon, "GET", "a").end()
        try ask(b, daemon, "SET", "root/a", "1").end()
        try ask(b, daemon, "NONSENSE").end()
        var text = ""
        let isOver = try eventually(within: .seconds(20)) {
            text = try Statectl.run(daemon, "metrics").text
            return byUser("clients", text)["60001"] == 1 && byUser("clients", text)["60002"] == 0
        }
        #expect(isOver, "\(text)")
        func values(_ name: String) -> [Int?] { ["60001", "60002"].map { byUser(name, text)[$0] } }
        #expect(values("connections_total") == [5, 2])
        #expect(values("commands_total") == [5, 1])
        #expect(values("commits_total") == [4, 0])
        #expect(values("errors_total") == [0, 2])
        #expect(values("denials_total") == [0, 1])
        #expect(byUser("clients", text)["0"] ?? 0 >= 1 && byUser("errors_total", text)["0"] == 0)
        #expect(byUser("memory_bytes", text)["60001"] ?? 0 > 0)
        withExtendedLifetime(open) {}
    }

    @Test(.enabled(if: geteuid() == 0, "only root can act as other users"))
    func `many users are counted as one, and the sums are those of all`() throws {
        let directory = try TemporaryDirectory()
        let daemon = try Daemon("--config", rulesOfAll(directory), directory: directory)
        for number in 0..<200 {
            let user = TestUser(uid: 61_000 + UInt32(number))
            try ask(user, daemon, "SET", "root/a", "1").end()
        }
        let text = try Statectl.run(daemon, "metrics").text
        for name in ["clients", "commands_total", "denials_total", "memory_bytes"] {
            #expect(byUser(name, text).count == 65, "\(name)")
        }
        // One of the 64 is root.
        #expect(byUser("denials_total", text)["other"] == 200 - 63)
        #expect(byUser("denials_total", text).values.reduce(0, +) == 200)
        #expect(text.contains("\nstated_denials_total 200\n"))
    }
}
