import StateTestSupport
import StateWire
import Testing

/// Where the commit thread runs: for a single writer on the processor of the loop, which waits for it.
struct CommitPairingTests {
    private let daemon: Daemon

    init() throws { daemon = try Daemon() }

    /// The processors that a thread may use, as proc_pid_status(5) has them.
    private static func processors(_ status: String) throws -> String {
        let text = String(decoding: try readFile(status), as: UTF8.self)
        let line = text.split(separator: "\n").first { $0.hasPrefix("Cpus_allowed_list:") }
        return try #require(line).split(separator: "\t").last.map(String.init) ?? ""
    }

    private func processorsOfCommits() throws -> String {
        let tasks = "/proc/\(daemon.pid)/task"
        // A thread may end meanwhile.
        let thread = try runCommand("ls", [tasks]).lines.first { thread in
            let name = try? readFile("\(tasks)/\(thread)/comm")
            return name.map { String(decoding: $0, as: UTF8.self) } == "commit\n"
        }
        return try CommitPairingTests.processors("\(tasks)/\(try #require(thread))/status")
    }

    @Test func `stays with the loop while one client writes, and is let go when others come`()
        throws
    {
        let all = try CommitPairingTests.processors("/proc/\(daemon.pid)/status")
        let (writer, reader) = (try Peer(daemon.socketPath), try Peer(daemon.socketPath))
        #expect(try writer.ask("SET key first") == .simple("OK"))
        #expect(try processorsOfCommits() == all)
        // The loop's timers may begin the count anew.
        let isPaired = try eventually {
            for number in 0..<100 {
                #expect(try writer.ask("SET key \(number)") == .simple("OK"))
            }
            return Int(try processorsOfCommits()) != nil
        }
        #expect(isPaired)
        let isLetGo = try eventually {
            try writer.send("SET key last")
            try reader.send("GET other")
            #expect(try writer.next() == .simple("OK"))
            #expect(try reader.next() == .null)
            return try processorsOfCommits() == all
        }
        #expect(isLetGo)
    }
}
