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
        try #require(try processors(ofThread: "commit"))
    }

    /// Nil if there is no such thread.
    private func processors(ofThread name: String) throws -> String? {
        let tasks = "/proc/\(daemon.pid)/task"
        // A thread may end meanwhile.
        let thread = try runCommand("ls", [tasks]).lines.first { thread in
            let found = try? readFile("\(tasks)/\(thread)/comm")
            return found.map { String(decoding: $0, as: UTF8.self) } == "\(name)\n"
        }
        return thread.flatMap { try? CommitPairingTests.processors("\(tasks)/\($0)/status") }
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

    /// It is started by the commit thread, and would compete with both for the loop's processor.
    @Test func `the checkpoint beside a single writer may run on every processor`() throws {
        let all = try CommitPairingTests.processors("/proc/\(daemon.pid)/status")
        let writer = try Peer(daemon.socketPath)
        let value = String(repeating: "v", count: 1 << 20)
        let isFound = try eventually {
            for number in 0..<100 { _ = try writer.ask("SET key \(number)") }
            guard Int(try processorsOfCommits()) != nil else { return false }
            for _ in 0..<10 {
                #expect(try writer.ask("SET large \(value)") == .simple("OK"))
                if try processors(ofThread: "checkpoint") == all { return true }
            }
            return false
        }
        #expect(isFound)
    }
}
