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

    @Test(.enabled(if: SmallFileSystem.isPossible, "only root may mount a file system"))
    func `durable before acknowledged: a process that is killed on a full disk loses nothing`()
        throws
    {
        let directory = try TemporaryDirectory()
        let disk = try SmallFileSystem(at: directory.path(of: "disk"), kibibytes: 24 << 10)
        let data = disk.path + "/data"
        var random = SplitMix(seed: Seed.base)
        var told: Set<Int> = []
        var fullCount = 0
        for _ in 0..<Extent.named("STATED_FULL_KILLS", short: 4) {
            let process = try RunningCommand(
                builtProgram("StateTestProgram"),
                ["fill", data].map { Array($0.utf8) }
            )
            for _ in 0..<Int(1 + random.next() % 6_000) {
                let line = try process.nextLine()
                if line == "full" { fullCount += 1 }
                guard let number = Int(line.dropFirst()) else { continue }
                if line.hasPrefix("+") { told.insert(number) } else { told.remove(number) }
            }
            process.signal(SIGKILL)
            #expect(process.wait() == 128 + SIGKILL)
            // What was written before the signal, and perhaps one change that nobody was told of.
            while let line = try? process.nextLine() {
                guard let number = Int(line.dropFirst()) else { continue }
                if line.hasPrefix("+") { told.insert(number) } else { told.remove(number) }
            }
            var found: Set<Int> = []
            _ = try SQLiteBacking(directory: data).load { change in
                let key = String(decoding: change.key, as: UTF8.self)
                guard let number = Int(key.dropFirst(5)) else { return }
                if change.value == nil { found.remove(number) } else { found.insert(number) }
                let byte = UInt8(truncatingIfNeeded: number)
                #expect(change.value?.allSatisfy { $0 == byte } ?? true)
            }
            let difference = told.symmetricDifference(found)
            #expect(difference.count <= 1, "\(difference.sorted().prefix(5))")
            told = found
        }
        #expect(fullCount > 0)
        withExtendedLifetime(disk) {}
    }

    /// What is there is the state after one commit, not before the last that was told.
    private func check(_ data: String, told: Int64) throws {
        var values: [String: Int64] = [:]
        let backing = SQLiteBacking(directory: data)
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

    @Test func `one authority: a child that was forked changes nothing and closes nothing`() throws
    {
        let directory = try TemporaryDirectory()
        let path = directory.path(of: "app.db")
        let result = try runCommand(builtProgram("StateTestProgram"), ["fork", path])
        #expect(result.exitCode == 0, "\(result)")
        let refused = "READONLY\n0\n"
        let text = "READONLY\n" + refused + "locked\n" + (0..<5).map { _ in refused }.joined()
        #expect(result.text == text, "\(result)")
        let state = try SQLiteState(0, key: "number", in: SQLiteDatabase(path: path))
        #expect(state.value == 3)
    }
}
