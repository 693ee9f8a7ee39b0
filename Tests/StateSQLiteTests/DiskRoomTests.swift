import Glibc
import StateEngine
import StateLog
import StateModel
import StateSQLite
import StateTestSupport
import Testing

/// A settled store, and the values that it acknowledged.
private final class Filling {
    private(set) var keyspace: LocalKeyspace
    private(set) var backing: SQLiteBacking
    private let make: () -> SQLiteBacking
    private var values: [Key: [UInt8]] = [:]
    private var random = SplitMix(seed: Seed.base)
    let findings = Observed<[String]>([])

    init(_ directory: String, _ change: (inout SQLiteBacking.Options) -> Void = { _ in }) throws {
        var options = SQLiteBacking.Options()
        change(&options)
        make = { [options, findings] in
            let backing = SQLiteBacking(directory: directory, options)
            backing.reports.finding = { finding in findings.update { $0.append(finding) } }
            return backing
        }
        backing = make()
        keyspace = try LocalKeyspace(backing: backing)
    }

    deinit { keyspace.close() }

    /// Sets a value; returns why it was refused.
    func set(_ key: String, byteCount: Int) throws -> StateError? {
        let key = try Key(key)
        let value = random.bytes(byteCount)
        do throws(StateError) { _ = try keyspace.apply([.set(key, value)]) } catch { return error }
        values[key] = value
        return nil
    }

    /// Sets new keys until one is refused.
    func fill(_ prefix: String, byteCount: ClosedRange<Int>) throws -> StateError {
        for number in 0..<100_000 {
            let count = Int.random(in: byteCount, using: &random)
            if let error = try set("\(prefix)\(number)", byteCount: count) { return error }
        }
        throw TestFailure("the disk is not full")
    }

    func keys(_ prefix: String) -> [Key] {
        values.keys.filter { $0.description.hasPrefix(prefix) }.sorted {
            $0.description < $1.description
        }
    }

    /// Deletes all keys that begin alike, in one transaction.
    func delete(_ prefix: String) throws { try delete(keys(prefix)) }

    func delete(_ keys: [Key]) throws {
        _ = try keyspace.apply(keys.map { .delete($0) })
        for key in keys { values[key] = nil }
    }

    /// The keys whose values are not those that were acknowledged.
    func differences() -> [Key] {
        var found: [Key: [UInt8]] = [:]
        for (key, entry) in keyspace.entries("/", after: nil, limit: .max) {
            found[key] = entry.value
        }
        return Set(found.keys).union(values.keys).filter { found[$0] != values[$0] }
    }

    func restart() throws {
        keyspace.close()
        backing = make()
        keyspace = try LocalKeyspace(backing: backing)
    }
}

/// A full disk, on a file system of its own.
@Suite(.enabled(if: SmallFileSystem.isPossible, "only root may mount a file system"))
struct SettledDiskTests {
    private let directory: TemporaryDirectory
    private let disk: SmallFileSystem
    private var data: String { disk.path + "/data" }

    init() throws {
        directory = try TemporaryDirectory()
        disk = try SmallFileSystem(at: directory.path(of: "disk"), kibibytes: 24 << 10)
    }

    @Test func `an empty store takes at most 4 MB of the file system`() throws {
        let filling = try Filling(data)
        #expect(try filling.set("one", byteCount: 1) == nil)
        #expect(try disk.usedKibibytes() <= 4_000)
        filling.keyspace.close()
        #expect(try disk.usedKibibytes() <= 4_000)
    }

    @Test(arguments: ["one by one", "in one transaction"])
    func `what deletes free on a full disk goes back to the file system, and sets work again`(
        how: String
    ) throws {
        let filling = try Filling(data)
        for round in 0..<3 {
            let error = try filling.fill("big/", byteCount: 1...(round == 0 ? 400 : 9_000))
            #expect(error.code == .noSpace, "\(error)")
            #expect(error.message.contains(data), "\(error)")
            #expect(filling.differences() == [])
            let keys = filling.keys("big/")
            #expect(keys.count > 1_000)
            if how == "one by one" {
                for key in keys { try filling.delete([key]) }
            } else {
                try filling.delete(keys)
            }
            #expect(try eventually { try filling.set("other", byteCount: 1) == nil })
            if how == "in one transaction" {
                #expect(try eventually { try disk.usedKibibytes() < 10_000 })
            }
            _ = try filling.keyspace.compact(to: nil, shrinks: true)
            #expect(try disk.usedKibibytes() < 6_000)
            #expect(filling.differences() == [])
            if round == 1 { try filling.restart() }
            #expect(filling.differences() == [])
        }
    }

    @Test func `a disk filled by the history heals by compaction to now`() throws {
        let filling = try Filling(data) { $0.history = .keep(changes: 1_000_000) }
        var error: StateError?
        for number in 0..<100_000 where error == nil {
            error = try filling.set("k/\(number % 100)", byteCount: 4_000)
        }
        #expect(error?.code == .noSpace)
        #expect(error?.message.contains("statectl compact --to now") ?? false, "\(error as Any)")
        #expect(filling.differences() == [])
        // Nothing of the history goes by itself: a million changes are to be kept, and at least half.
        #expect(filling.findings.current == [])
        _ = try filling.keyspace.compact(to: filling.keyspace.revision)
        #expect(try eventually { try filling.set("k/0", byteCount: 4_000) == nil })
        for number in 0..<200 {
            #expect(try filling.set("k/\(number % 100)", byteCount: 4_000) == nil)
        }
        #expect(filling.differences() == [])
        try filling.restart()
        #expect(filling.differences() == [])
    }

    @Test func `the oldest of the history goes before anybody is refused, and a finding says so`()
        throws
    {
        let filling = try Filling(data) { $0.history = .keep(byteCount: 12 << 20) }
        for number in 0..<12_000 {
            let error = try filling.set("k/\(number % 100)", byteCount: 4_000)
            #expect(error == nil, "\(number) \(filling.backing.status)")
            if error != nil { return }
        }
        #expect(filling.findings.current.contains { $0.contains("was dropped") })
        #expect(filling.backing.status.floor > 0)
        // Half of 12 MiB is there.
        let history = try filling.backing.openHistory()
        let count = try history.snapshot { compacted in filling.keyspace.revision - compacted }
        #expect(count > 1_200, "\(count)")
        #expect(filling.differences() == [])
    }

    @Test
    func `what others take of the disk leaves room for deletes, and writes come back with it`()
        throws
    {
        let filling = try Filling(data) { $0.reserveByteCount = 2 << 20 }
        for number in 0..<1_500 { #expect(try filling.set("k/\(number)", byteCount: 4_000) == nil) }
        _ = try? directory.write([UInt8](repeating: 7, count: 40 << 20), to: "disk/ballast")
        #expect(try filling.fill("more/", byteCount: 1...4_000).code == .noSpace)
        for number in 0..<700 { try filling.delete([Key("k/\(number)")]) }
        try filling.delete("k/")
        #expect(filling.differences() == [])
        unlink(directory.path(of: "disk/ballast"))
        #expect(try eventually { try filling.set("k/0", byteCount: 4_000) == nil })
        #expect(filling.differences() == [])
        try filling.restart()
        #expect(filling.differences() == [])
    }

    @Test func `a store on a disk without any room starts, and says what is refused`() throws {
        let filling = try Filling(data)
        for number in 0..<500 { #expect(try filling.set("k/\(number)", byteCount: 4_000) == nil) }
        _ = try? directory.write([UInt8](repeating: 7, count: 40 << 20), to: "disk/ballast")
        for _ in 0..<3 {
            try filling.restart()
            #expect(filling.differences() == [])
            #expect(try filling.set("more", byteCount: 10)?.code == .noSpace)
            #expect(filling.differences() == [])
        }
        unlink(directory.path(of: "disk/ballast"))
        #expect(try eventually { try filling.set("more", byteCount: 10) == nil })
        #expect(filling.differences() == [])
    }

    @Test func `a value that would use what is in reserve is refused, and smaller ones are not`()
        throws
    {
        let filling = try Filling(data)
        let error = try filling.set("large", byteCount: 7 << 20)
        #expect(error?.code == .noSpace, "\(error as Any)")
        // The directory, and no amount: others commit at once with this one.
        let message = error?.message ?? ""
        #expect(message.contains("room than \(data) has beyond its reserve"), "\(message)")
        #expect(message.contains("nothing was committed"), "\(message)")
        for number in 0..<20 { #expect(try filling.set("k/\(number)", byteCount: 40_000) == nil) }
        #expect(try filling.set("large", byteCount: 3 << 20) == nil)
        #expect(filling.differences() == [])
    }
}

/// What is in reserve, and what is refused.
struct DiskRoomTests {
    private let directory: TemporaryDirectory
    private var data: String { directory.path(of: "data") }

    init() throws { directory = try TemporaryDirectory() }

    @Test func `the reserve can be set while the store is open, by any thread`() throws {
        let filling = try Filling(data)
        #expect(try filling.set("a", byteCount: 10) == nil)
        filling.backing.reserveByteCount = 1 << 60
        #expect(
            try eventually(within: .seconds(30)) {
                try filling.set("a", byteCount: 10)?.code == .noSpace
            }
        )
        _ = try filling.delete("a")
        filling.backing.reserveByteCount = 0
        #expect(try eventually { try filling.set("a", byteCount: 10) == nil })
        #expect(filling.differences() == [])
    }

    @Test func `the history can be shortened while the store is open`() throws {
        let filling = try Filling(data) {
            $0.history = .keep(changes: 1_000_000)
            $0.log.segmentByteCount = 64 << 10
            $0.log.largeSegmentByteCount = 64 << 10
        }
        for number in 0..<600 { _ = try filling.set("k/\(number % 10)", byteCount: 900) }
        #expect(filling.backing.status.floor == 0)
        filling.backing.history = .none
        #expect(
            try eventually(within: .seconds(30)) {
                _ = try filling.set("k/0", byteCount: 900)
                return filling.backing.status.floor >= 600
            }
        )
        let status = filling.backing.status
        #expect(status.segments.droppedCount > 3 && status.segments.count < 5 && status.last != nil)
        #expect(status.databaseByteCount > 4_096 && status.logByteCount > 64 << 10)
        #expect(status.room > 0 && status.failure == nil)
    }

    private func change(_ revision: Int64, byteCount: Int = 900) -> BuiltBatch.Change {
        BuiltBatch.Change(
            revision: revision,
            key: Array("k/\(revision % 7)".utf8),
            value: Array(repeating: 7, count: byteCount),
            created: revision
        )
    }

    private func backing(on files: SimulatedFiles) -> SQLiteBacking {
        var options = SQLiteBacking.Options()
        options.log.segmentByteCount = 32 << 10
        options.log.largeSegmentByteCount = 32 << 10
        options.log.patience = 1_000_000_000
        options.settling.hasThread = false
        let location = StoreLocation(directory: data)
        return SQLiteBacking(location, log: data + "/log", options) { _ in files }
    }

    /// A quota of a user, or a thin volume.
    @Test func `a disk that refuses what it says that it has is full until it gives again`() throws
    {
        let files = SimulatedFiles(sectorByteCount: 4_096, seed: 1)
        files.hidesRoom = true
        let backing = backing(on: files)
        _ = try backing.load { _ in }
        var revision: Int64 = 0
        func commit() throws {
            try BuiltBatch([change(revision + 1)]).commit(to: backing)
            revision += 1
        }
        try commit()
        // Settling cannot free anything: the segment is in use.
        files.capacity = files.usedByteCount
        let error = #expect(throws: StateError.self) { for _ in 0..<100 { try commit() } }
        #expect(error?.code == .noSpace && error?.isOutcomeUnknown == false)
        #expect(revision > 20)
        #expect(backing.shortage != nil)
        backing.lookForRoom()
        #expect(backing.shortage != nil)
        files.capacity = nil
        backing.lookForRoom()
        #expect(backing.shortage == nil)
        try commit()
        #expect(backing.status.segments.replacedCount == 0)
        backing.close()
    }

    @Test func `a commit that finds the disk full in place is decided once settling has made room`()
        throws
    {
        let files = SimulatedFiles(sectorByteCount: 4_096, seed: 2)
        files.isCopyOnWrite = true
        var revision: Int64 = 0
        do {
            let backing = backing(on: files)
            _ = try backing.load { _ in }
            for _ in 0..<210 {
                try BuiltBatch([change(revision + 1)]).commit(to: backing)
                revision += 1
            }
            files.capacity = files.usedByteCount
            let error = #expect(throws: StateError.self) {
                try BuiltBatch([change(revision + 1)]).commit(to: backing)
            }
            #expect(error?.isOutcomeUnknown == true, "\(error as Any)")
            // Segments of the log are settled and go.
            try backing.reopen(after: revision) { _ in Issue.record("it is there") }
            #expect(backing.status.segments.droppedCount > 3)
            files.capacity = nil
            try BuiltBatch([change(revision + 1)]).commit(to: backing)
            revision += 1
        }
        let again = backing(on: files.restarted(keepsCache: true))
        #expect(try again.load { _ in }.revision == revision)
    }
}
