import Glibc
import StateEngine
import StateModel
import StateSQLite
import StateSalvage
import StateTestSupport
import Testing

/// Backups of stores become stores that answer the same.
struct StoreRestoreTests {
    private let directory: TemporaryDirectory
    private let source: TemporaryStore
    private var target: String { directory.path(of: "new") }

    init() throws {
        directory = try TemporaryDirectory()
        source = try TemporaryStore()
    }

    /// A backup as the daemon makes it, of the changes since a revision.
    private func backup(
        _ keyspace: LocalKeyspace,
        since: Int64 = 0,
        to name: String,
        floors: HistoryFloors = HistoryFloors(),
        metadata: [String: String] = [:]
    ) throws -> String {
        let history = try #require(try keyspace.history?.openHistory())
        var writer = BackupWriter()
        let head = [
            ("epoch", "e"), ("revision", "\(keyspace.revision)"), ("since", "\(since)"),
            ("history", "yes"), ("keys", "\(keyspace.keyCount)"),
        ]
        var bytes =
            BackupFrame.magic + writer.frame(.head, head.map { (name: $0.0, value: $0.1) })
        if !metadata.isEmpty {
            var payload: [UInt8] = []
            for part in metadata.flatMap({ [$0, $1] }) {
                payload.append(littleEndian: UInt32(part.utf8.count))
                payload += part.utf8
            }
            bytes += writer.frame(.metadata, itemCount: metadata.count, payload)
        }
        try history.snapshot { compacted in
            var (payload, count): ([UInt8], Int) = ([], 0)
            func append(_ change: borrowing StoredChange) {
                change.appendBackupRow(to: &payload)
                count += 1
                guard count == 100 else { return }
                bytes += writer.frame(.rows, itemCount: count, payload)
                (payload, count) = ([], 0)
            }
            let rows = try #require(history as? any SettledReading)
            if since < compacted {
                _ = try rows.forEachRow(after: nil) { row in
                    if row.revision <= compacted { append(row) }
                    return true
                }
            }
            // What belongs to the state at the floor, and has been superseded since.
            let first = max(since, compacted)
            var places: [HistoryPlace] = []
            _ = try rows.forEachCarryingChange(after: .end(of: first), through: .max) {
                change,
                carried in
                guard since < compacted, let previous = change.previousPlace,
                    previous.revision <= compacted
                else { return true }
                if let carried {
                    carried.withChange(of: change.key) { append($0) }
                } else {
                    places.append(previous)
                }
                return true
            }
            for place in places {
                _ = try history.withChange(at: place, supersededBy: nil) { append($0) }
            }
            _ = try history.forEachChange(after: .end(of: first), through: .max) { change in
                append(change)
                return true
            }
            if count > 0 { bytes += writer.frame(.rows, itemCount: count, payload) }
            var lines = [(name: "compacted", value: "\(compacted)")]
            for floor in floors.text.split(separator: "\n") {
                lines.append((name: "floor", value: String(floor)))
            }
            bytes += writer.end(lines)
        }
        return try directory.write(bytes, to: name)
    }

    private func restored() throws -> LocalKeyspace {
        try LocalKeyspace(backing: SettledStage.backing(target, .keep(changes: .max)))
    }

    private func expectSame(_ old: LocalKeyspace, from floor: Int64) throws {
        let new = try restored()
        defer { new.close() }
        #expect(new.values == old.values)
        #expect(new.withCore { $0.revisions.compacted } == floor)
        let (expected, found) = try (
            StoredPast(of: old, from: floor), StoredPast(of: new, from: floor)
        )
        #expect(found.changes == expected.changes)
        #expect(found.states == expected.states)
    }

    @Test(arguments: [nil, 0.5, 1.0])
    func `a backup of a store becomes the same values and the same past`(compacted: Double?) throws
    {
        try source.fillWithHistory(commitCount: 120, seed: Seed.base)
        let old = try LocalKeyspace(backing: source.backing())
        defer { old.close() }
        if let compacted { try old.compact(to: Int64(Double(old.revision) * compacted)) }
        let floor = old.withCore { $0.revisions.compacted }
        let file = try backup(old, to: "b", metadata: ["handler:0:a": "12", "handler:0:b": "x y"])
        let summary = try StoreRestore(files: [file], target: target).run()
        #expect(summary.backupRevision == old.revision)
        #expect(summary.revision == old.revision + 1 << 32)
        #expect(summary.entryCount == old.keyCount)
        #expect(names(in: target).sorted() == ["lock", "log", "stated.db"])
        try expectSame(old, from: floor)
        var findings: [String] = []
        _ = try StoreCheck(store: target) { findings.append($0) }.run()
        #expect(findings == [])
        let backing = SettledStage.backing(target)
        let loaded = try backing.load { _ in }
        #expect(loaded.metadata == ["handler:0:a": "12", "handler:0:b": "x y"])
        #expect(loaded.epoch.description != "e" && loaded.revision == summary.revision)
        backing.close()
    }

    @Test func `a series of backups becomes the last one`() throws {
        let old = try LocalKeyspace(backing: source.backing())
        defer { old.close() }
        func write(_ numbers: Range<Int>) throws {
            for number in numbers {
                try old.apply([.set(Key("k/\(number % 30)"), [UInt8(number % 200)])])
                if number % 7 == 0 { try old.apply([.delete(Key("k/\(number % 11)"))]) }
            }
        }
        try write(0..<100)
        try old.compact(to: 40)
        let first = try backup(old, to: "first")
        let since = old.revision
        try write(100..<200)
        let second = try backup(old, since: since - 10, to: "second")
        _ = try StoreRestore(files: [first, second], target: target).run()
        try expectSame(old, from: 40)
        let error = #expect(throws: StateError.self) {
            try StoreRestore(files: [second], target: directory.path(of: "other")).run()
        }
        #expect(error?.message.contains("name the whole backup before it") == true)
        #expect(access(directory.path(of: "other"), F_OK) != 0)
    }

    @Test func `floors of rules are kept`() throws {
        try source.fillWithHistory(commitCount: 50, seed: 2)
        let old = try LocalKeyspace(backing: source.backing())
        defer { old.close() }
        let floors = try #require(HistoryFloors("20\ttest/1*\n"))
        let file = try backup(old, to: "b", floors: floors)
        _ = try StoreRestore(files: [file], target: target).run()
        let backing = SettledStage.backing(target, .keep(changes: .max))
        _ = try backing.load { _ in }
        let history = try backing.openHistory()
        #expect(try history.snapshot { _ in try history.floors() } == floors)
        backing.close()
    }

    @Test func `a backup of a settled store, and a transaction larger than a frame`() throws {
        let data = directory.path(of: "data")
        mkdir(data, 0o700)
        let old = try LocalKeyspace(backing: SettledStage.backing(data, .keep(changes: .max)))
        defer { old.close() }
        let value = [UInt8](repeating: 7, count: 300_000)
        for number in 0..<6 { try old.apply([.set(Key("big/\(number)"), value)]) }
        let floor = old.revision
        // In the state at the floor, and carried.
        try old.apply((0..<6).map { .set(try Key("big/\($0)"), [1]) })
        try old.apply([.delete("big/3")])
        try old.apply([.set("big/3", value)])
        let file = try backup(old, to: "b")
        _ = try StoreRestore(files: [file], target: target).run()
        try expectSame(old, from: 0)
        #expect(floor == 6)
    }

    @Test func `a backup that comes through a pipe is restored, too`() throws {
        try source.fillWithHistory(commitCount: 50, seed: 3)
        let old = try LocalKeyspace(backing: source.backing())
        defer { old.close() }
        let bytes = try readFile(backup(old, to: "b"))
        let fifo = directory.path(of: "fifo")
        try #require(mkfifo(fifo, 0o600) == 0)
        let writer = WorkerThread(name: "writer")
        writer.start {
            let descriptor = open(fifo, O_WRONLY)
            var start = 0
            while start < bytes.count {
                let count = bytes.withUnsafeBytes { all in
                    Glibc.write(descriptor, all.baseAddress.map { $0 + start }, all.count - start)
                }
                guard count > 0 else { break }
                start += count
            }
            close(descriptor)
        }
        _ = try StoreRestore(files: [fifo], target: target).run()
        writer.join()
        #expect(names(in: target).sorted() == ["lock", "log", "stated.db"])
        try expectSame(old, from: 0)
    }

    @Test(arguments: Seed.each(20))
    func `a backup that is damaged is refused by name, and nothing is left`(seed: UInt64) throws {
        try source.fillWithHistory(commitCount: 30, seed: 4)
        let old = try LocalKeyspace(backing: source.backing())
        let file = try backup(old, to: "b")
        old.close()
        var bytes = try readFile(file)
        var random = SplitMix(seed: seed)
        bytes[Int.random(in: 0..<bytes.count, using: &random)] ^= 1 << UInt8(random.next() % 8)
        try write(bytes, to: file)
        let error = #expect(throws: StateError.self) {
            try StoreRestore(files: [file], target: target).run()
        }
        #expect(error?.message.contains(file) == true, "\(error as Any)")
        #expect(access(target, F_OK) != 0)
    }

    @Test func `a directory that exists is refused and left as it is`() throws {
        mkdir(target, 0o700)
        let error = #expect(throws: StateError.self) {
            try StoreRestore(files: ["b"], target: target).run()
        }
        #expect(error?.message.contains("exists: a backup is restored into a new") == true)
        #expect(names(in: target) == [])
    }

    @Test func `a restored store has an owner until it was checked`() throws {
        try source.fillWithHistory(commitCount: 30, seed: 5)
        let old = try LocalKeyspace(backing: source.backing())
        let file = try backup(old, to: "b")
        old.close()
        var checkCount = 0
        let restore = StoreRestore(files: [file], target: target) { [target] _ in
            let error = #expect(throws: StateError.self) {
                _ = try OwnerLock(path: target + "/lock", for: target)
            }
            #expect(error?.code == .locked)
            checkCount += 1
        }
        _ = try restore.run()
        #expect(checkCount > 1)
        _ = try OwnerLock(path: target + "/lock", for: target)
    }
}
