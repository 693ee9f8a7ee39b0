import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// A daemon that may have little memory: values are refused before it is ended for what it takes.
struct MemoryLimitTests {
    private let daemon: Daemon

    init() throws {
        daemon = try Daemon([], launcher: ["prlimit", "--as=\(110 << 20)"])
    }

    /// Sets keys that are new until one is refused.
    ///
    /// - Returns: How many were not, and why that one was.
    private func fill(_ client: Client, _ name: String) throws -> (count: Int, StateError) {
        for number in 0..<2_000 {
            do throws(StateError) {
                // Replies are small, and the client's own buffers are of no interest.
                try client.set(MemoryLimitTests.value(number), for: Key("\(name)/\(number)"))
            } catch { return (number, error) }
        }
        throw StateError(.err, "2,000 values of 64 KiB are in 110 MiB")
    }

    private static func value(_ number: Int) -> [UInt8] {
        [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 64 << 10)
    }

    private func report(_ name: String, _ client: Client) throws -> String? {
        try client.status().first { $0.name == name }?.text
    }

    @Test func `never silent about storage: what takes more memory than there is, is refused`()
        throws
    {
        let client = try daemon.connect()
        let (count, error) = try fill(client, "a")
        #expect(error.code == .noSpace && count > 100)
        let allowed = "of the 110 MiB of memory that ulimit -v allows"
        #expect(error.message.contains(allowed) && error.message.contains("delete keys"))
        #expect(try report("storage", client)?.contains(allowed) == true)
        #expect(try report("memory_limit", client)?.contains(allowed) == true)
        #expect(eventually { daemon.log.contains(allowed) })
        // A value that takes no more than the one before it is set as ever.
        try client.set(MemoryLimitTests.value(7), for: "a/0")
        #expect(throws: StateError.self) { try client.set([1], for: "new") }

        // The start takes more than what runs, and the limit is the same.
        daemon.kill()
        try daemon.start()
        let again = try daemon.connect()
        for number in 0..<count {
            let value = try again.value(for: Key("a/\(number)"))
            let isKept = value == MemoryLimitTests.value(number == 0 ? 7 : number)
            #expect(isKept, "a/\(number)")
        }
        #expect(try fill(again, "b").0 < 100)
        // What is deleted makes room without a restart.
        for number in 0..<count * 3 / 4 { _ = try again.delete([Pattern("a/\(number)")]) }
        #expect(try eventually { try report("storage", again) == "ok" })
        #expect(eventually { daemon.log.contains("there is memory again") })
        #expect(try fill(again, "c").0 > count / 10)
        try daemon.stop()
    }

    @Test func `without a limit none is named`() throws {
        let daemon = try Daemon()
        let client = try daemon.connect()
        let limit = try report("memory_limit", client)
        #expect(limit?.contains("ulimit -v") != true)
        let memory = try #require(report("memory", client).flatMap(Int.init))
        #expect(memory > 1 << 20)
        try daemon.stop()
    }
}
