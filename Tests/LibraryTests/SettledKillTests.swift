import Glibc
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// Processes that are killed while a thread settles their log and drops segments of it.
struct SettledKillTests {
    @Test
    func `durable before acknowledged: a process that is killed while it settles loses nothing`()
        throws
    {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let data = directory.path(of: "data")
        var random = SplitMix(seed: Seed.base)
        var told: Int64 = 0
        for _ in 0..<25 {
            let process = try RunningCommand(
                builtProgram("StateTestProgram"),
                ["settle", data].map { Array($0.utf8) }
            )
            for _ in 0..<Int(1 + random.next() % 1_500) {
                told = try #require(Int64(process.nextLine()))
            }
            process.signal(SIGKILL)
            #expect(process.wait() == 128 + SIGKILL)
            try check(data, told: told)
        }
        // Segments were dropped and used again all the time.
        let log = try #require(opendir(data + "/log"))
        defer { closedir(log) }
        var count = 0
        while readdir(log) != nil { count += 1 }
        #expect(count < 20)
    }

    /// What is there is the state after one commit, not before the last that was told.
    private func check(_ data: String, told: Int64) throws {
        var values: [String: Int64] = [:]
        let backing = SettledBacking(directory: data)
        let loaded = try backing.load { change in
            let text = String(decoding: change.value ?? .init(start: nil, count: 0), as: UTF8.self)
            values[String(decoding: change.key, as: UTF8.self)] = Int64(text)
        }
        let number = try #require(values["number"])
        #expect(number >= told && number == loaded.revision)
        for key in 0..<min(50, number) {
            let expected = number - (number - key) % 50
            #expect(values["key/\(key)"] == (expected == 0 ? nil : expected))
        }
    }
}
