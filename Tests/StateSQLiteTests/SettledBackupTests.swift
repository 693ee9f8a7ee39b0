import CSQLite
import Glibc
import StateClient
import StateEngine
import StateLog
import StateSQLite
import StateSalvage
import StateTestSupport
import Testing

/// Backups of a settled store, as the daemon makes them, and what it defers.
struct SettledBackupTests {
    private let directory: TemporaryDirectory
    private let data: String
    private var target: String { directory.path(of: "new") }

    init() throws {
        directory = try TemporaryDirectory()
        data = directory.path(of: "data")
        mkdir(data, 0o700)
    }

    private func write(_ keyspace: LocalKeyspace, _ count: Int, _ random: inout SplitMix) throws {
        for _ in 0..<count {
            let key = try Key("k/\(Int.random(in: 0..<200, using: &random))")
            if random.chance(20) {
                try keyspace.apply([.delete(key)])
            } else {
                try keyspace.apply([.set(key, random.bytes(100))])
            }
        }
    }

    /// The pieces of a backup; `body` runs behind the first.
    private func backup(
        _ client: Client,
        includingHistory: Bool,
        _ body: () throws -> Void
    ) throws -> String {
        let begun = try client.beginBackup(includesHistory: includingHistory)
        try body()
        var bytes = begun.piece
        while let piece = try client.nextBackupPiece() { bytes += piece }
        return try directory.write(bytes, to: "backup")
    }

    @Test(arguments: [true, false], Seed.each(3))
    func
        `a backup has one revision of a store that was dropped from, whatever is written meanwhile`(
            includesHistory: Bool,
            seed: UInt64
        ) throws
    {
        var random = SplitMix(seed: seed)
        let backing = SettledStage.backing(data, .keep(changes: 300))
        let served = try ServedKeyspace(backing)
        let old = served.keyspace
        for _ in 0..<8 {
            try write(old, 100, &random)
            try backing.settle()
        }
        // Some of it is in the log only.
        try write(old, 40, &random)
        let floor = try backing.openHistory().snapshot { $0 }
        try #require(floor > 100 && floor < old.revision - 200)
        let (values, past) = (old.values, try StoredPast(of: old, from: floor))
        let client = try Client(socket: served.socketPath)
        let file = try backup(client, includingHistory: includesHistory) {
            try write(old, 100, &random)
        }
        let summary = try StoreRestore(files: [file], target: target).run()
        #expect(summary.entryCount == values.count)
        let new = try LocalKeyspace(backing: SettledStage.backing(target, .keep(changes: .max)))
        defer { new.close() }
        #expect(new.values == values)
        if includesHistory { #expect(try StoredPast(of: new, from: floor) == past) }
    }

    @Test(arguments: [true, false], [HistoryLimits.none, .keep(changes: .max)])
    func `complete: a backup has what is in the log only, although its history begins later`(
        includesHistory: Bool,
        history: HistoryLimits
    ) throws {
        var random = SplitMix(seed: Seed.base)
        let backing = SettledStage.backing(data, history)
        let served = try ServedKeyspace(backing)
        let keyspace = served.keyspace
        try write(keyspace, 100, &random)
        try backing.settle()
        try write(keyspace, 100, &random)
        backing.raiseCompaction(to: keyspace.revision)
        let floor = try backing.openHistory().snapshot { $0 }
        try #require(floor > backing.status.settledRevision + 50)
        let client = try Client(socket: served.socketPath)
        let file = try backup(client, includingHistory: includesHistory) {}
        _ = try StoreRestore(files: [file], target: target).run()
        let new = try LocalKeyspace(backing: SettledStage.backing(target, .keep(changes: .max)))
        defer { new.close() }
        #expect(new.values == keyspace.values)
    }

    @Test
    func
        `a backup that is read while the store settles fails, and nothing is compacted beside one`()
        throws
    {
        var random = SplitMix(seed: Seed.base)
        let backing = SettledStage.backing(data, .keep(changes: 300))
        let served = try ServedKeyspace(backing)
        try write(served.keyspace, 200, &random)
        let client = try Client(socket: served.socketPath)
        let error = #expect(throws: StateError.self) {
            _ = try backup(client, includingHistory: true) { try backing.settle() }
        }
        #expect(error?.code == .compacted)
        _ = try client.beginBackup()
        let refusal = #expect(throws: StateError.self) {
            try client.compact(to: nil, shrinks: false)
        }
        #expect(refusal?.code == .conflict)
        #expect(try client.nextBackupPiece() != nil)
    }

    @Test func `a store that has to settle waits for the end of a backup`() throws {
        var random = SplitMix(seed: Seed.base)
        var options = SQLiteBacking.Options()
        options.history = .keep(changes: 300)
        options.log.segmentByteCount = 24 << 10
        options.log.largeSegmentByteCount = 48 << 10
        options.settling.logByteCount = 60_000
        let backing = SQLiteBacking(directory: data, options)
        let served = try ServedKeyspace(backing)
        try write(served.keyspace, 200, &random)
        let client = try Client(socket: served.socketPath)
        let values = served.keyspace.values
        let file = try backup(client, includingHistory: true) {
            // Other segments begin, too.
            while backing.status.unsettledByteCount < 90_000 {
                try write(served.keyspace, 10, &random)
                backing.capabilities.compaction?.lookForRoom()
            }
            // It is told of the limit at once, and would have ended the backup by now.
            poll(nil, 0, 300)
        }
        let summary = try StoreRestore(files: [file], target: target).run()
        #expect(summary.entryCount == values.count)
        #expect(eventually { backing.status.unsettledByteCount < 60_000 })
    }

    @Test
    func `a gap is never silent: a settle that failed takes nothing from the history of a backup`()
        throws
    {
        var random = SplitMix(seed: Seed.base)
        let backing = SettledStage.backing(data, .keep(changes: 300))
        let served = try ServedKeyspace(backing)
        let keyspace = served.keyspace
        for _ in 0..<8 {
            try write(keyspace, 100, &random)
            try backing.settle()
        }
        var reader: OpaquePointer?
        try #require(sqlite3_open(data + "/stated.db", &reader) == SQLITE_OK)
        let sql = "BEGIN; SELECT count(*) FROM newest"
        try #require(sqlite3_exec(reader, sql, nil, nil, nil) == SQLITE_OK)
        let settled = backing.status.settledRevision
        try write(keyspace, 60, &random)
        // More than SQLite's own log keeps: it is not moved, and nothing more is settled.
        try keyspace.apply([.set("big", random.bytes(1 << 20))])
        #expect(throws: StateError.self) { try backing.settle() }
        try write(keyspace, 20, &random)
        #expect(throws: StateError.self) { try backing.settle() }
        #expect(backing.status.settledRevision < keyspace.revision)
        sqlite3_close(reader)
        let floor = try backing.openHistory().snapshot { $0 }
        try #require(floor > 100 && floor < settled)
        let (values, past) = (keyspace.values, try StoredPast(of: keyspace, from: floor))
        let client = try Client(socket: served.socketPath)
        let file = try backup(client, includingHistory: true) {}
        _ = try StoreRestore(files: [file], target: target).run()
        let new = try LocalKeyspace(backing: SettledStage.backing(target, .keep(changes: .max)))
        defer { new.close() }
        #expect(new.values == values)
        #expect(try StoredPast(of: new, from: floor) == past)
    }

    @Test
    func `a disk that is nearly full waits for the end of a backup, and a full one ends it`() throws
    {
        var random = SplitMix(seed: Seed.base)
        var options = SQLiteBacking.Options()
        options.history = .keep(changes: 600)
        options.log.segmentByteCount = 24 << 10
        options.log.largeSegmentByteCount = 24 << 10
        let backing = SQLiteBacking(directory: data, options)
        let served = try ServedKeyspace(backing)
        let keyspace = served.keyspace
        for _ in 0..<4 {
            try write(keyspace, 500, &random)
            try keyspace.compact(to: nil)
        }
        let floor = backing.status.floor
        let (values, past) = (keyspace.values, try StoredPast(of: keyspace, from: floor))
        let client = try Client(socket: served.socketPath)
        /// What others do to the disk.
        func take(_ byteCount: Int64) {
            backing.reserveByteCount = byteCount
            for _ in 0..<5 {
                backing.capabilities.compaction?.lookForRoom()
                poll(nil, 0, 60)
            }
        }
        let available = try #require(LogDirectory.availableByteCount(of: data))
        let file = try backup(client, includingHistory: true) { take(available / 5 * 3) }
        #expect(backing.status.floor == floor)
        _ = try StoreRestore(files: [file], target: target).run()
        let new = try LocalKeyspace(backing: SettledStage.backing(target, .keep(changes: .max)))
        defer { new.close() }
        #expect(new.values == values)
        #expect(try StoredPast(of: new, from: floor) == past)
        take(0)
        let error = #expect(throws: StateError.self) {
            _ = try backup(client, includingHistory: true) { take(1 << 60) }
        }
        #expect(error?.code == .compacted)
        #expect(backing.status.floor > floor)
    }

    @Test func `what is synced only after a settle has begun is settled by the next one`() throws {
        var options = SQLiteBacking.Options()
        options.settling.age = 100_000_000
        let backing = SQLiteBacking(directory: data, options)
        let keyspace = try LocalKeyspace(backing: backing)
        defer { keyspace.close() }
        keyspace.prepareToDefer()
        try keyspace.install(rules: deferringRules("late/", every: .seconds(1)))
        let late = try keyspace.apply([.set("late/a", [1])])
        #expect(eventually { backing.status.settledRevision == late })
    }

    @Test func `durable before told: what is not synced in the log is not settled`() throws {
        let backing = SettledStage.backing(data, .keep(changes: .max))
        let keyspace = try LocalKeyspace(backing: backing)
        defer { keyspace.close() }
        keyspace.prepareToDefer()
        try keyspace.install(rules: deferringRules("late/", every: .seconds(3_600)))
        let stored = try keyspace.apply([.set("now", [1])])
        let late = try keyspace.apply([.set("late/a", [1])])
        try #require(keyspace.deferred.count == 1)
        try backing.settle()
        #expect((stored..<late).contains(backing.status.settledRevision))
        // The next commit syncs both.
        let last = try keyspace.apply([.set("now", [2])])
        try backing.settle()
        #expect(backing.status.settledRevision == last)
    }

    @Test
    func `durable before told: what is deferred survives the end of the process, with its history`()
        throws
    {
        let keyspace = try LocalKeyspace(backing: SettledStage.backing(data, .keep(changes: .max)))
        keyspace.prepareToDefer()
        try keyspace.install(rules: deferringRules("late/", every: .seconds(3_600)))
        try keyspace.apply([.set("now", [1])])
        for number in 1...3 { try keyspace.apply([.set("late/a", [UInt8(number)])]) }
        try #require(keyspace.deferred.count == 3)
        // The files as the end of the process leaves them; the database stays the same file.
        try directory.shell("cp -a data copy")
        keyspace.close()
        try directory.shell("rm data/log/*; cp -r copy/. data")
        let found = try LocalKeyspace(backing: SettledStage.backing(data, .keep(changes: .max)))
        defer { found.close() }
        #expect(found.values == ["now": [1], "late/a": [3]] && found.hasAllDeferred)
        let past = try StoredPast(of: found, from: 0)
        #expect(past.changes.count == 4)
    }
}
