import Glibc
import StateEngine
import StateLog
import StateModel
import StateSQLite
import StateSystem
import StateTestSupport
import Testing

/// What a settled store knows of the past: each state and each change from its floor on.
struct SettledPastTests {
    private static let retentions: [HistoryLimits] = [
        .keep(changes: 1_000_000), .keep(changes: 300),
        .keep(changes: 1_000_000, byteCount: 60_000),
        .none,
    ]

    private static func backing(_ directory: String, _ history: HistoryLimits) -> SQLiteBacking {
        var options = SQLiteBacking.Options()
        options.history = history
        options.log.segmentByteCount = 24 << 10
        options.log.largeSegmentByteCount = 48 << 10
        options.settling.logByteCount = 30_000
        options.settling.sliceByteCount = 8 << 10
        return SQLiteBacking(directory: directory, options)
    }

    @Test(arguments: 0..<8)
    func `every state and every change from the floor on can be read, whatever was dropped`(
        number: Int
    ) throws {
        let directory = try TemporaryDirectory()
        let data = directory.path(of: "data")
        mkdir(data, 0o700)
        let history = SettledPastTests.retentions[number % SettledPastTests.retentions.count]
        let seed = Seed.base &+ UInt64(number)
        let model = try CompactedModel(seed: seed, keyCount: 30, dropsMore: true) {
            SettledPastTests.backing(data, history)
        }
        for round in 0..<Extent.named("STATED_PAST_ROUNDS", short: 8) {
            for _ in 0..<100 { try model.commit() }
            if round % 3 == 2 { try model.restart() }
            if round % 5 == 4 { try model.compact() }
            let faults = try model.faults()
            #expect(faults.isEmpty, "STATED_TEST_SEED=\(seed), round \(round): \(faults.prefix(4))")
            #expect(model.differences().isEmpty)
            if !faults.isEmpty { return }
        }
        #expect(model.compacted > 0)
    }

    @Test func `a segment that begins with metadata has no change of the last revision`() throws {
        let directory = try TemporaryDirectory()
        let data = directory.path(of: "data")
        mkdir(data, 0o700)
        let model = try CompactedModel(seed: Seed.base, keyCount: 30, dropsMore: true) {
            SettledPastTests.backing(data, .keep(changes: 1_000_000))
        }
        for _ in 0..<5 {
            for _ in 0..<20 { try model.commit() }
            // Twice: the floor that the first one writes is what the next segment begins with.
            for _ in 0..<2 { try model.compact(to: model.keyspace.revision - 1) }
            #expect(try model.faults() == [])
        }
    }

    @Test func `what is too large to be carried is refused by name, not wrong`() throws {
        let directory = try TemporaryDirectory()
        let data = directory.path(of: "data")
        mkdir(data, 0o700)
        let backing = SettledPastTests.backing(data, .keep(changes: 100))
        let keyspace = try LocalKeyspace(backing: backing)
        defer { keyspace.close() }
        let keys = try (0..<40).map { try Key("big/\($0)") }
        let value = [UInt8](repeating: 7, count: 512 << 10)
        for key in keys { _ = try keyspace.apply([.set(key, value)]) }
        let (small, filler): (Key, Key) = ("small", "filler")
        _ = try keyspace.apply([.set(small, [1])])
        for _ in 0..<200 { _ = try keyspace.apply([.set(filler, Array(repeating: 1, count: 900))]) }
        let before = keyspace.revision
        _ = try keyspace.apply(keys.map { .delete($0) } + [.set(small, [2])])
        for _ in 0..<40 { _ = try keyspace.apply([.set(filler, Array(repeating: 2, count: 900))]) }
        #expect(eventually { backing.status.segments.droppedCount > 40 })
        let history = try backing.openHistory()
        var (knownCount, refusedCount) = (0, 0)
        try history.snapshot { compacted in
            #expect(compacted <= before)
            var deleted: [(key: [UInt8], place: HistoryPlace, older: HistoryPlace)] = []
            _ = try history.forEachChange(after: .end(of: before), through: before + 1) { change in
                guard let older = change.previousPlace else { return true }
                deleted.append((Array(change.key), change.place, older))
                return true
            }
            for (key, place, older) in deleted {
                let isThere = try history.withChange(at: older, supersededBy: place) {
                    #expect($0.value != nil)
                    knownCount += 1
                }
                guard !isThere else { continue }
                let error = #expect(throws: StateError.self) {
                    try history.requireWhole(key, at: before)
                }
                #expect(error?.code == .compacted)
                refusedCount += 1
            }
        }
        // 32 values of 512 KiB are 16 MiB; a few of the others may not be dropped yet.
        #expect(knownCount >= 32 && knownCount + refusedCount == 41 && refusedCount > 4)
    }

    @Test func `bounded: the versions of one large commit are found with few reads`() throws {
        let directory = try TemporaryDirectory()
        let location = StoreLocation(directory: directory.path(of: "data"))
        var options = SQLiteBacking.Options()
        options.history = .keep(changes: 1_000_000)
        let wrapped = Observed<FaultyFiles?>(nil)
        let backing = SQLiteBacking(location, log: location.logDirectory, options) {
            (path) throws(LogFileFailure) in
            let files = FaultyFiles(try LogDirectory(path))
            wrapped.update { $0 = files }
            return files
        }
        let keyspace = try LocalKeyspace(backing: backing)
        defer { keyspace.close() }
        let keys = try (0..<500).map { try Key("k/\($0)") }
        try keyspace.apply(keys.map { .set($0, [1]) })
        for key in keys { try keyspace.apply([.set(key, [2])]) }
        let history = try backing.openHistory()
        let files = try #require(wrapped.current)
        let before = files.callCount
        var foundCount = 0
        try history.snapshot { _ in
            for ordinal in 0..<500 as Range<Int32> {
                let place = HistoryPlace(revision: 1, ordinal: ordinal)
                let isThere = try history.withChange(at: place, supersededBy: nil) { change in
                    #expect(change.place == place && change.value?.first == 1)
                }
                if isThere { foundCount += 1 }
            }
        }
        #expect(foundCount == 500 && files.callCount - before < 20)
    }

    @Test func `reads of rows by this process are no failure of settling`() throws {
        let directory = try TemporaryDirectory()
        let data = directory.path(of: "data")
        mkdir(data, 0o700)
        let backing = SettledPastTests.backing(data, .none)
        let failures = Observed<[String]>([])
        backing.reports.failure = { failure in
            if let failure { failures.update { $0.append(failure) } }
        }
        let keyspace = try LocalKeyspace(backing: backing)
        defer { keyspace.close() }
        for number in 0..<2_000 { _ = try keyspace.apply([.set(Key("k/\(number)"), [1])]) }
        let isOver = Observed(false)
        let rowCount = Observed(0)
        let reader = WorkerThread(name: "reader")
        reader.start {
            guard let history = try? backing.openHistory() as? any SettledReading else { return }
            while !isOver.current {
                try? history.snapshot { _ in
                    _ = try history.forEachRow(after: nil) { _ in
                        rowCount.update { $0 += 1 }
                        return true
                    }
                }
            }
        }
        for number in 0..<10_000 {
            _ = try keyspace.apply([.set(Key("k/\(number % 2_000)"), [2, 3])])
        }
        isOver.update { $0 = true }
        reader.join()
        #expect(failures.current == [])
        #expect(rowCount.current > 2_000 && backing.status.settleCount > 5, "\(backing.status)")
    }

    @Test func `deletes are forgotten with what was before them, and room is given back`() throws {
        let directory = try TemporaryDirectory()
        let data = directory.path(of: "data")
        mkdir(data, 0o700)
        let keyspace = try LocalKeyspace(
            backing: SettledPastTests.backing(data, .keep(changes: 1_000_000))
        )
        defer { keyspace.close() }
        let value = [UInt8](repeating: 7, count: 9_000)
        let keys = try (0..<300).map { try Key("k/\($0)") }
        for key in keys { _ = try keyspace.apply([.set(key, value)]) }
        for key in keys { _ = try keyspace.apply([.delete(key)]) }
        #expect(keyspace.withCore { $0.rememberedDeleteCount } == 300)
        let reply = try keyspace.compact(to: keyspace.revision, shrinks: true)
        #expect(reply.compacted == keyspace.revision)
        #expect(reply.freedByteCount != nil)
        #expect(try readFile(data + "/stated.db").count < 300_000)
        _ = try keyspace.apply([.set("other", [1])])
        #expect(
            eventually {
                _ = try? keyspace.apply([.set("other", [2])])
                return keyspace.withCore { $0.rememberedDeleteCount } == 0
            }
        )
    }
}
