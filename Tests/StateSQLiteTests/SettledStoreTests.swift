import CSQLite
import Glibc
import StateEngine
import StateLog
import StateSQLite
import StateTestSupport
import Testing

/// A store whose log is on a simulated disk and whose database is on one that fails as it is told to,
/// and what must be in it.
private final class Run {
    /// What a start has to find of a key.
    struct Value: Equatable {
        var revision: Int64
        var created: Int64
        var version: Int64
        var bytes: [UInt8]?
    }

    let directory: TemporaryDirectory
    let faults: Faults
    private(set) var files: SimulatedFiles
    private var backing: SQLiteBacking?
    private var random: SplitMix
    /// The state after each revision, from the first that was acknowledged at the last start on.
    private var states: [Int64: [String: Value]] = [0: [:]]
    private(set) var acknowledged: Int64 = 0
    private(set) var revision: Int64 = 0
    private var isUndecided = false
    private var epoch: Epoch?
    private(set) var startCount = 0
    private(set) var settleCount = 0
    private(set) var refusedSettleCount = 0
    private(set) var (droppedCount, reusedCount) = (0, 0)
    private var cutNumber = 0

    private var data: String { directory.path(of: "data") }

    private let history: HistoryLimits

    init(sectorByteCount: Int, seed: UInt64, history: HistoryLimits = .none) throws {
        self.history = history
        directory = try TemporaryDirectory()
        mkdir(directory.path(of: "data"), 0o700)
        faults = try Faults(below: directory.path(of: "data"))
        files = SimulatedFiles(sectorByteCount: sectorByteCount, seed: seed)
        random = SplitMix(seed: seed &+ 3)
    }

    /// Whether sets are refused.
    var isShort: Bool { backing?.shortage != nil }

    /// What the commit thread does while it is idle.
    func lookForRoom() { backing?.lookForRoom() }

    /// What `compact --to now` does.
    func compact() throws {
        backing?.raiseCompaction(to: revision)
        _ = try backing?.shrink()
    }

    private var options: SQLiteBacking.Options {
        var options = SQLiteBacking.Options()
        options.history = history
        options.log.segmentByteCount = 24 << 10
        options.log.largeSegmentByteCount = 48 << 10
        // Each segment is full soon, or none is.
        options.log.soon = startCount % 2 == 0 ? .max : 0
        let time = Observed<Int64>(0)
        options.log.now = {
            time.update {
                $0 += 1
                return $0
            }
        }
        options.log.patience = 2
        options.log.pause = {}
        options.settling.hasThread = false
        options.settling.sliceByteCount = 8 << 10
        return options
    }

    func start() throws {
        let files = files
        let opened = SQLiteBacking(
            StoreLocation(directory: data),
            log: data + "/log",
            options
        ) { _ in files }
        var found: [String: Value] = [:]
        var last: Int64 = 0
        let loaded = try opened.load { change in
            let key = String(decoding: change.key, as: UTF8.self)
            found[key] = Value(
                revision: change.revision,
                created: change.created,
                version: change.version,
                bytes: change.value.map { Array($0) }
            )
            last = max(last, change.revision)
        }
        backing = opened
        if let epoch { try #require(loaded.epoch == epoch) }
        epoch = loaded.epoch
        try #require(loaded.revision >= acknowledged && loaded.revision <= revision)
        let expected = try #require(states[loaded.revision])
        // A deleted key may be forgotten once it is settled.
        let isSame =
            found.filter { $0.value.bytes != nil } == expected.filter { $0.value.bytes != nil }
        try #require(isSame, "another state than that of revision \(loaded.revision)")
        for (key, value) in found where value.bytes == nil { try #require(expected[key] == value) }
        (revision, acknowledged, isUndecided) = (loaded.revision, loaded.revision, false)
        states = [revision: expected]
        startCount += 1
    }

    /// Ends the process; `keepsCache`: the machine goes on.
    func crash(keepsCache: Bool, cut: String? = nil) throws {
        noteStatus()
        backing = nil
        files = files.restarted(keepsCache: keepsCache)
        guard let cut else { return }
        // The same files with other contents: a copy would be another store.
        for name in names(in: data) where name != "lock" {
            if access(cut + "/" + name, F_OK) == 0 {
                try copyBytes(of: cut + "/" + name, into: data + "/" + name)
            } else {
                unlink(data + "/" + name)
            }
        }
        unlink(data + "/stated.db-shm")
    }

    func close() {
        noteStatus()
        backing?.close()
        backing = nil
    }

    private func noteStatus() {
        guard let status = backing?.status else { return }
        droppedCount += status.segments.droppedCount
        reusedCount += status.segments.reusedCount
    }

    /// Arms a power cut at a coming operation of SQLite; the log loses power with it.
    func armCut(after count: Int64) throws -> String {
        cutNumber += 1
        let cut = directory.path(of: "cut\(cutNumber)")
        try faults.cutPower(at: faults.place + count, leaving: cut, seed: random.next())
        return cut
    }

    /// What a loss of power leaves of the database now.
    func cutNow() throws -> String {
        let cut = try armCut(after: 1)
        // Any operation of SQLite below the directory takes the cut, before it is done.
        var other: OpaquePointer?
        sqlite3_open(data + "/other.db", &other)
        sqlite3_exec(other, "CREATE TABLE other(a)", nil, nil, nil)
        sqlite3_close(other)
        unlink(data + "/other.db")
        return cut
    }

    /// Makes changes of the next revision; none if only deletes are accepted and there is nothing to delete.
    private func makeChanges() -> [BuiltBatch.Change] {
        revision += 1
        var state = states[revision - 1] ?? [:]
        var changes: [BuiltBatch.Change] = []
        let onlyDeletes = backing?.shortage != nil
        var keys: Set<String> = []
        for _ in 0..<Int(1 + random.next() % 3) {
            let key = "key/\(random.next() % 40)"
            guard keys.insert(key).inserted else { continue }
            let before = state[key]
            let isLive = before?.bytes != nil
            if onlyDeletes, !isLive { continue }
            let isDelete = isLive && (onlyDeletes || random.next() % 4 == 0)
            let count = Int(random.next() % (random.next() % 50 == 0 ? 30_000 : 900))
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: Int(revision) &+ $0) }
            let value = Value(
                revision: revision,
                created: isLive ? before?.created ?? 0 : revision,
                version: isDelete ? 0 : (isLive ? before?.version ?? 0 : 0) + 1,
                bytes: isDelete ? nil : bytes
            )
            changes.append(
                BuiltBatch.Change(
                    revision: revision,
                    ordinal: Int32(changes.count),
                    key: Array(key.utf8),
                    value: value.bytes,
                    created: value.created,
                    version: value.version,
                    time: revision,
                    cause: Array("tester".utf8),
                    previousRevision: before?.revision ?? 0
                )
            )
            state[key] = value
        }
        states[revision] = state
        return changes
    }

    /// One step.
    ///
    /// - Returns: False if the power is off.
    func step() throws -> Bool {
        guard let backing, !isUndecided || decide() else { return false }
        if random.next() % 8 == 0 {
            do throws(StateError) {
                try backing.settle()
                settleCount += 1
            } catch {
                refusedSettleCount += 1
            }
            return !files.isOff
        }
        let changes = makeChanges()
        guard !changes.isEmpty else {
            revision -= 1
            return true
        }
        do {
            try BuiltBatch(changes).commit(to: backing)
            acknowledged = revision
        } catch let error as StateError {
            guard !files.isOff else { return false }
            try #require([.readOnly, .noSpace].contains(error.code))
            if !error.isOutcomeUnknown {
                revision -= 1
                return true
            }
            isUndecided = true
            return decide()
        }
        return !files.isOff
    }

    /// Decides what became of the last commit.
    ///
    /// - Returns: Whether that is known.
    private func decide() -> Bool {
        for _ in 0..<5 where isUndecided {
            var isThere = false
            guard (try? backing?.reopen(after: acknowledged) { _ in isThere = true }) != nil else {
                continue
            }
            isUndecided = false
            if isThere { acknowledged = revision } else { revision -= 1 }
        }
        return !isUndecided
    }
}

/// Puts the bytes of a file into another one, which stays the same file.
private func copyBytes(of path: String, into other: String) throws {
    let bytes = try readFile(path)
    let descriptor = open(other, O_WRONLY | O_TRUNC)
    defer { close(descriptor) }
    guard descriptor >= 0, write(descriptor, bytes, bytes.count) == bytes.count else {
        throw SystemFailure(call: "write", errno)
    }
}

struct SettledStoreTests {
    @Test(arguments: 0..<8)
    func `a store has what was committed, after any end`(seed: Int) throws {
        let run = try Run(sectorByteCount: 512, seed: UInt64(seed) * 17 + 1)
        try run.start()
        for round in 0..<20 {
            for _ in 0..<60 { _ = try run.step() }
            if round % 3 == 0 { run.close() } else { try run.crash(keepsCache: true) }
            try run.start()
        }
        #expect(run.settleCount > 50 && run.refusedSettleCount == 0)
        #expect(run.droppedCount > 20 && run.reusedCount > 5)
    }

    /// The power goes at a call for the log, or at one of SQLite.
    @Test(arguments: [512, 4_096], 0..<12)
    func `durable before acknowledged: a power cut loses nothing, of log and database together`(
        sectorByteCount: Int,
        seed: Int
    ) throws {
        let run = try Run(sectorByteCount: sectorByteCount, seed: UInt64(seed) * 91 + 7)
        var random = SplitMix(seed: UInt64(seed) &* 7 + 2)
        try run.start()
        for _ in 0..<25 {
            let before = run.files.callCount
            let limit = Int(1 + random.next() % 200)
            let isOfSQLite = random.next() % 2 == 0
            var cut = ""
            if isOfSQLite { cut = try run.armCut(after: Int64(1 + random.next() % 60)) }
            let cutCount = run.faults.cutCount
            run.files.fault = { [faults = run.faults] number in
                let isOff =
                    isOfSQLite ? faults.cutCount > cutCount : number - before >= limit
                return isOff ? .powerCut : nil
            }
            while try run.step() {}
            if !isOfSQLite { cut = try run.cutNow() }
            run.files.fault = { _ in nil }
            try run.crash(keepsCache: false, cut: cut)
            try run.start()
        }
        #expect(run.startCount == 26)
    }

    /// Calls of SQLite and of the log fail, and then the power.
    @Test(arguments: 0..<16)
    func `never silent about storage: failed calls of log and database lose nothing`(
        seed: Int
    ) throws {
        let run = try Run(
            sectorByteCount: seed % 2 == 0 ? 512 : 4_096,
            seed: UInt64(seed) * 57 + 11
        )
        let random = Observed(SplitMix(seed: UInt64(seed) &* 1_000_007))
        try run.start()
        for round in 0..<15 {
            run.files.fault = { _ in
                random.update { random in
                    switch random.next() % 80 {
                    case 0: return .refuses(random.next() % 2 == 0 ? EIO : ENOSPC)
                    case 1: return .tears(EIO)
                    default: return nil
                    }
                }
            }
            for _ in 0..<60 {
                let (kind, number) = random.update { ($0.next() % 30, Int64(1 + $0.next() % 9)) }
                switch kind {
                case 0: run.faults.fail(.sync, number: number, of: .any, .reverting)
                case 1: run.faults.fail(.sync, number: number, of: .any)
                case 2: run.faults.fail(.write, number: number, of: .any, with: ENOSPC, .short)
                case 3: run.faults.fail(.write, number: number, of: .any)
                default: break
                }
                guard try run.step() else { break }
            }
            run.files.fault = { _ in nil }
            if round % 3 == 0 {
                let cut = try run.cutNow()
                run.faults.heal()
                try run.crash(keepsCache: false, cut: cut)
            } else {
                run.faults.heal()
                try run.crash(keepsCache: round % 3 == 1)
            }
            try run.start()
        }
        #expect(run.refusedSettleCount > 0 && run.settleCount > 20)
    }

    @Test(arguments: [false, true], 0..<6)
    func
        `never silent about storage: a store whose disk fills up, empties and fills up loses nothing`(
            isCopyOnWrite: Bool,
            seed: Int
        ) throws
    {
        let run = try Run(
            sectorByteCount: 4_096,
            seed: UInt64(seed) * 23 + 9,
            history: seed % 2 == 0 ? .none : .keep(byteCount: 60_000)
        )
        run.files.isCopyOnWrite = isCopyOnWrite
        var random = SplitMix(seed: UInt64(seed) &+ 5)
        var shortCount = 0
        try run.start()
        for round in 0..<16 {
            run.files.hidesRoom = round % 4 == 3
            run.files.capacity = run.files.usedByteCount + Int(random.next() % 120_000)
            for number in 0..<50 {
                _ = try run.step()
                if number % 10 == 9 { run.lookForRoom() }
                if run.isShort { shortCount += 1 }
            }
            if round % 3 == 1 { try? run.compact() }
            if round % 2 == 0 {
                run.files.capacity = nil
                // What was in doubt is decided now.
                _ = try run.step()
                run.lookForRoom()
                #expect(!run.isShort)
                let before = run.acknowledged
                for _ in 0..<20 { _ = try run.step() }
                #expect(run.acknowledged > before)
            }
            try run.crash(keepsCache: true)
            run.files.capacity = nil
            try run.start()
        }
        #expect(shortCount > 20, "\(shortCount)")
    }

    @Test(arguments: [false, true])
    func `never silent about storage: a disk that is full at any one call loses nothing`(
        tears: Bool
    ) throws {
        let run = try Run(sectorByteCount: 4_096, seed: tears ? 5 : 6)
        try run.start()
        for limit in 1...160 {
            let before = run.files.callCount
            run.files.fault = { number in
                guard number - before == limit else { return nil }
                return tears ? .tears(ENOSPC) : .refuses(ENOSPC)
            }
            let number = Int64(1 + limit % 40)
            run.faults.fail(.write, number: number, with: ENOSPC, tears ? .short : [])
            for _ in 0..<14 where try !run.step() { break }
            run.files.fault = { _ in nil }
            run.faults.heal()
            // What was in doubt is decided now.
            _ = try run.step()
            try run.crash(keepsCache: true)
            try run.start()
        }
        #expect(run.refusedSettleCount > 5 && run.settleCount > 100)
    }
}

/// Which files belong together.
struct SettledIdentityTests {
    private let directory: TemporaryDirectory
    private var data: String { directory.path(of: "data") }

    init() throws { directory = try TemporaryDirectory() }

    private func copy(_ name: String, as other: String) throws {
        let (from, to) = (directory.path(of: name), directory.path(of: other))
        try #require(try runCommand("cp", ["-a", from, to]).exitCode == 0)
    }

    /// Opens the store, commits, and ends it.
    @discardableResult
    private func run(
        _ name: String = "data",
        commits: Int64 = 0,
        closes: Bool = true
    ) throws -> (loaded: LoadedStore, keys: [String]) {
        var keys: [String] = []
        var options = SQLiteBacking.Options()
        options.settling.hasThread = false
        let backing = SQLiteBacking(directory: directory.path(of: name), options)
        let loaded = try backing.load { keys.append(String(decoding: $0.key, as: UTF8.self)) }
        for number in 0..<commits {
            let revision = loaded.revision + 1 + number
            let change = BuiltBatch.Change(
                revision: revision,
                key: Array("key\(revision)".utf8),
                value: [1],
                created: revision
            )
            try BuiltBatch([change]).commit(to: backing)
        }
        if closes { backing.close() }
        return (loaded, keys)
    }

    @Test func `a database alone, copied after a clean stop, begins a new epoch with its values`()
        throws
    {
        let first = try run(commits: 5)
        mkdir(directory.path(of: "other"), 0o700)
        try copy("data/stated.db", as: "other/stated.db")
        let second = try run("other", commits: 1)
        #expect(second.keys.count == 5 && second.loaded.epoch != first.loaded.epoch)
        #expect(second.loaded.revision >= 1 << 32)
        let third = try run("other")
        #expect(third.keys.count == 6 && third.loaded.epoch == second.loaded.epoch)
    }

    @Test(arguments: [false, true])
    func `a whole directory, copied elsewhere, begins a new epoch with its values`(
        closes: Bool
    )
        throws
    {
        let first = try run(commits: 5, closes: closes)
        try copy("data", as: "other")
        let second = try run("other", commits: 1)
        #expect(second.keys.count == 5 && second.loaded.epoch != first.loaded.epoch)
        let third = try run("other")
        #expect(third.keys.count == 6 && third.loaded.epoch == second.loaded.epoch)
        #expect(try run().loaded.epoch == first.loaded.epoch)
    }

    /// Both have gone on as often since.
    @Test func `never an older state: the database of a copy does not fit the log of the original`()
        throws
    {
        try run(commits: 5)
        try copy("data", as: "other")
        for name in ["data", "other"] { try run(name, commits: 1) }
        let bytes = try readFile(directory.path(of: "other/stated.db"))
        try write(bytes, to: directory.path(of: "data/stated.db"))
        // At the place where its own log ends, the other one has nothing of it.
        try refusal("")
        // Two copies have the same places and revisions.
        try copy("other", as: "second")
        try copy("other", as: "third")
        for name in ["second", "third"] { try run(name, commits: 1) }
        try copyBytes(
            of: directory.path(of: "second/stated.db"),
            into: directory.path(of: "third/stated.db")
        )
        let error = #expect(throws: StateError.self) { try run("third") }
        #expect(error?.message.contains("of different times") == true, "\(error as Any)")
    }

    @Test func `a segment that was cut is refused by its place`() throws {
        let stage = try SettledStage()
        try stage.fill(commitCount: 300, seed: 3, closes: true)
        let segments = stage.segments
        try #require(segments.count > 2)
        for size in [9_000, 8_192, 0] as [off_t] {
            try #require(truncate(segments[0], size) == 0)
            let error = #expect(throws: StateError.self) {
                _ = try SettledStage.values(in: stage.data)
            }
            #expect(error?.code == .corrupt, "\(String(describing: error))")
        }
    }

    private func refusal(_ words: String) throws {
        let error = #expect(throws: StateError.self) { try run() }
        #expect(error?.code == .corrupt)
        #expect(error?.message.contains(words) ?? false, "\(error as Any)")
    }

    @Test func `a log that is missing is refused unless the database has everything`() throws {
        try run(commits: 5, closes: false)
        try copy("data/log", as: "kept")
        try #require(rename(directory.path(of: "data/log"), directory.path(of: "gone")) == 0)
        try refusal("the log of")
        rmdir(directory.path(of: "data/log"))
        try #require(rename(directory.path(of: "gone"), directory.path(of: "data/log")) == 0)
        #expect(try run().keys.count == 5)
    }

    @Test(arguments: [false, true])
    func `never an older state: a database alone, copied after a kill, does not pass for whole`(
        isFirst: Bool
    ) throws {
        if !isFirst { try run(commits: 3) }
        try run(commits: 5, closes: false)
        mkdir(directory.path(of: "alone"), 0o700)
        try copy("data/stated.db", as: "alone/stated.db")
        let error = #expect(throws: StateError.self) { try run("alone") }
        #expect(error?.message.hasPrefix("the log of") == true, "\(error as Any)")
    }

    @Test func `a directory of the log that is a link, and a relative path, lead where they led`()
        throws
    {
        try run(commits: 5)
        let (log, other) = (directory.path(of: "data/log"), directory.path(of: "other"))
        try #require(rename(log, other) == 0 && symlink(other, log) == 0)
        // Files are looked at after each 64 commits, at least.
        try run(commits: 70)
        #expect(try run().keys.count == 75)
        #expect(StoreLocation(path: "app.db").database.hasPrefix("/"))
        #expect(StoreLocation(directory: "data").logDirectory.hasPrefix("/"))
    }

    @Test func `a database that is missing is refused while its log is there`() throws {
        try run(commits: 5, closes: false)
        try #require(
            rename(directory.path(of: "data/stated.db"), directory.path(of: "gone")) == 0
        )
        try refusal("is missing, but its log is there")
        try #require(
            rename(directory.path(of: "gone"), directory.path(of: "data/stated.db")) == 0
        )
        #expect(try run().keys.count == 5)
    }

    /// Puts the bytes of a file back, in the same file.
    private func putBack(_ names: [String], from other: String) throws {
        for name in names {
            try copyBytes(of: directory.path(of: "\(other)/\(name)"), into: data + "/" + name)
        }
    }

    @Test func `a database of yesterday beside the log of today is refused, and the reverse`()
        throws
    {
        try run(commits: 5)
        try copy("data", as: "old")
        try run(commits: 2)
        try run(commits: 2)
        try copy("data", as: "new")
        try putBack(["stated.db"], from: "old")
        try refusal("of different times")
        try putBack(["stated.db"], from: "new")
        #expect(try run().keys.count == 9)
        try copy("data", as: "newest")
        let logs = names(in: directory.path(of: "old/log")).map { "log/" + $0 }
        try putBack(logs, from: "old")
        let error = #expect(throws: StateError.self) { try run() }
        #expect(error?.code == .corrupt, "\(error as Any)")
    }

    /// Runs statements as a person with `sqlite3` would.
    private func execute(_ connection: OpaquePointer?, _ sql: String) throws {
        try #require(sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK, "\(sql)")
    }

    private func openedDatabase() throws -> OpaquePointer? {
        var connection: OpaquePointer?
        try #require(sqlite3_open(data + "/stated.db", &connection) == SQLITE_OK)
        return connection
    }

    @Test func `a row that is missing is named, and nothing is read as an older state`() throws {
        try run(commits: 5)
        let connection = try openedDatabase()
        try execute(connection, "DELETE FROM newest WHERE key='key3'")
        sqlite3_close(connection)
        try refusal("it has 4 rows; 5 were written")
    }

    @Test func `a process that reads the database holds up settling, and nothing else`() throws {
        var options = SQLiteBacking.Options()
        options.settling.hasThread = false
        let backing = SQLiteBacking(directory: data, options)
        _ = try backing.load { _ in }
        func commit(_ revision: Int64, byteCount: Int = 9_000) throws {
            let change = BuiltBatch.Change(
                revision: revision,
                key: [1],
                value: [UInt8](repeating: 7, count: byteCount),
                created: 1
            )
            try BuiltBatch([change]).commit(to: backing)
        }
        try commit(1)
        try backing.settle()
        let connection = try openedDatabase()
        try execute(connection, "BEGIN; SELECT count(*) FROM newest")
        // More than SQLite's own log keeps.
        try commit(2, byteCount: 1 << 20)
        #expect(throws: StateError.self) { try backing.settle() }
        #expect(backing.status.failure?.contains("the log grows until") ?? false)
        // It is there once: SQLite's own log does not grow with more.
        let before = try readFile(data + "/stated.db-wal").count
        for revision in 3...20 as ClosedRange<Int64> {
            try commit(revision)
            #expect(throws: StateError.self) { try backing.settle() }
        }
        #expect(try readFile(data + "/stated.db-wal").count == before)
        try execute(connection, "COMMIT")
        sqlite3_close(connection)
        try backing.settle()
        #expect(backing.status.failure == nil)
        #expect(backing.status.settledRevision == 20)
        // A little need not be moved into the database, nor wait for a reader.
        let reader = try openedDatabase()
        defer { sqlite3_close(reader) }
        try execute(reader, "BEGIN; SELECT count(*) FROM newest")
        let database = try readFile(data + "/stated.db")
        for revision in 21...30 as ClosedRange<Int64> {
            try commit(revision)
            try backing.settle()
        }
        #expect(backing.status.settledRevision == 30)
        #expect(try readFile(data + "/stated.db") == database)
        try execute(reader, "COMMIT")
        backing.close()
    }

    @Test func `bounded: what a settle has moved is not left in SQLite's own log`() throws {
        var options = SQLiteBacking.Options()
        options.settling.hasThread = false
        let backing = SQLiteBacking(directory: data, options)
        _ = try backing.load { _ in }
        for revision in 1...8 as ClosedRange<Int64> {
            let change = BuiltBatch.Change(
                revision: revision,
                key: [UInt8(revision)],
                value: [UInt8](repeating: 7, count: 1 << 20),
                created: revision
            )
            try BuiltBatch([change]).commit(to: backing)
        }
        try backing.settle()
        #expect(try readFile(data + "/stated.db").count > 8 << 20)
        #expect(try readFile(data + "/stated.db-wal").count <= 1 << 20)
        backing.close()
    }

    @Test(arguments: [false, true])
    func `bounded: changes that are settled at once take more memory only where there is some`(
        isAmple: Bool
    ) throws {
        let sliceCount = Observed(0)
        var options = SQLiteBacking.Options()
        options.settling.hasThread = false
        options.settling.sliceByteCount = 32 << 10
        options.settling.spareMemory = { _ in
            sliceCount.update { $0 += 1 }
            return isAmple ? 1 << 30 : 0
        }
        let backing = SQLiteBacking(directory: data, options)
        let keyspace = try LocalKeyspace(backing: backing)
        defer { keyspace.close() }
        let value = [UInt8](repeating: 7, count: 500)
        for _ in 0..<2 {
            for round in 0..<20 {
                try keyspace.apply(
                    try (0..<50).map { .set(try Key("\(round)/\($0)"), value) }
                )
            }
            sliceCount.update { $0 = 0 }
            try backing.settle()
        }
        // 1,000 rows of 500 bytes; it is asked before each slice.
        #expect(
            isAmple ? sliceCount.current <= 3 : sliceCount.current > 10,
            "\(sliceCount.current)"
        )
    }

    /// One past the last byte of a file that is not 0.
    private func end(of path: String) throws -> Int {
        let bytes = try readFile(path)
        return (bytes.lastIndex { $0 != 0 } ?? -1) + 1
    }

    @Test func `the last commit is known to be whole soon, and damage of it is named`() throws {
        let log = data + "/log/1.log"
        var backing: SQLiteBacking? = SQLiteBacking(directory: data)
        _ = try backing?.load { _ in }
        let change = BuiltBatch.Change(revision: 1, key: [1], value: [7, 7, 7], created: 1)
        if let backing { try BuiltBatch([change]).commit(to: backing) }
        let place = try end(of: log)
        // Another frame says so, though nobody commits.
        #expect(eventually { (try? end(of: log)) ?? 0 > place })
        backing = nil
        try #require(place > 0)
        var bytes = try readFile(log)
        bytes[place - 1] ^= 1
        let descriptor = open(log, O_WRONLY)
        try #require(write(descriptor, bytes, bytes.count) == bytes.count)
        Glibc.close(descriptor)
        try refusal("the log is damaged at segment 1")
    }
}
