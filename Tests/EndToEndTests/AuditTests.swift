import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// The lines of the log for keys whose rule has `audit: true`.
struct AuditTests {
    private let directory: TemporaryDirectory
    private let daemon: Daemon

    init() throws {
        directory = try TemporaryDirectory()
        let text = """
            { rules: [
              { keys: "network/", audit: true },
              { keys: "network/counters/", audit: false },
            ] }
            """
        let path = try directory.write(Array(text.utf8), to: "rules.json5")
        daemon = try Daemon("--config", path, directory: directory)
    }

    private var lines: [String] {
        daemon.log.split(separator: "\n").filter { $0.contains("notice: audit: ") }.map(String.init)
    }

    @Test func `each change of an audited key is a line with who made it, and no other is`() throws
    {
        #expect(try Statectl.run(daemon, "set", "network/a=1", "other=2").exitCode == 0)
        #expect(try Statectl.run(daemon, "set", "network/counters/x", "1").exitCode == 0)
        #expect(try Statectl.run(daemon, "delete", "network/a").exitCode == 0)
        #expect(eventually { lines.count >= 2 })
        try daemon.stop()
        let who = "by uid \(geteuid()), pid "
        #expect(lines.count == 2, "\(lines)")
        #expect(lines[0].contains("audit: set at revision 1 \(who)"))
        #expect(lines[1].contains("audit: deleted at revision 3 \(who)"))
        #expect(lines.allSatisfy { $0.hasSuffix(" (statectl), rule 1, line 2: key 'network/a'") })
    }

    @Test func `a long key is whole, and what a key says is at the end`() throws {
        let long = "network/" + String(repeating: "component/", count: 20) + "end"
        let sly = "network/x' was deleted by uid 0"
        #expect(try Statectl.run(daemon, "set", long, "1").exitCode == 0)
        #expect(try Statectl.run(daemon, "set", sly, "1").exitCode == 0)
        try daemon.stop()
        #expect(lines.count == 2, "\(lines)")
        #expect(lines[0].hasSuffix(": key '\(long)'"))
        #expect(lines[1].contains("audit: set at revision 2 by uid \(geteuid()), "))
        #expect(lines[1].hasSuffix(": key '\(sly)'"))
    }

    @Test func `a reload begins and ends it, and the watches of clients stay their number`() throws
    {
        let path = directory.path(of: "rules.json5")
        #expect(try Statectl.run(daemon, "status", "--json").text.contains("\"watches\":0,"))
        try write(Array("{ rules: [ { keys: 'b', audit: true } ] }".utf8), to: path)
        #expect(try Statectl.run(daemon, "reload").exitCode == 0)
        #expect(try Statectl.run(daemon, "set", "network/a=1", "b=2").exitCode == 0)
        try write(Array("{ }".utf8), to: path)
        #expect(try Statectl.run(daemon, "reload").exitCode == 0)
        #expect(try Statectl.run(daemon, "set", "b", "3").exitCode == 0)
        try daemon.stop()
        #expect(lines.count == 1 && lines[0].hasSuffix(": key 'b'"), "\(lines)")
    }
}
