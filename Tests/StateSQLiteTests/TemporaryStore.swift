import CSQLite
import Glibc
import StateEngine
import StateLog
import StateSQLite
import StateTestSupport

/// A data directory of a test's own; it goes with this object.
final class TemporaryStore {
    let directory: String
    var database: String { directory + "/stated.db" }
    var log: String { directory + "/log" }

    init(in place: String = "/tmp") throws {
        var template = Array("\(place)/state-sqlite-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else { throw TestFailure("mkdtemp: errno \(errno)") }
        directory = String(cString: made) + "/data"
    }

    deinit {
        let parent = String(directory.dropLast("/data".count))
        for folder in [log, directory, parent] {
            for name in names(in: folder) { unlink(folder + "/" + name) }
            rmdir(folder)
        }
    }

    /// A backing with small segments, which keeps all of the past.
    func backing(_ adjust: (inout SQLiteBacking.Options) -> Void = { _ in }) -> SQLiteBacking {
        var options = SQLiteBacking.Options()
        options.history = .keep(changes: .max)
        options.log.segmentByteCount = 64 << 10
        options.log.largeSegmentByteCount = 256 << 10
        adjust(&options)
        return SQLiteBacking(directory: directory, options)
    }

    /// The same on files of the log that a test makes fail.
    func backing(
        on files: FaultyFiles,
        _ adjust: (inout SQLiteBacking.Options) -> Void
    ) -> SQLiteBacking {
        var options = SQLiteBacking.Options()
        options.history = .keep(changes: .max)
        adjust(&options)
        let location = StoreLocation(directory: directory)
        return SQLiteBacking(location, log: location.logDirectory, options) { _ in files }
    }

    /// Commits `changes`, one transaction each, and stops cleanly.
    func fill(_ changes: [BuiltBatch.Change]) throws {
        let backing = backing()
        _ = try backing.load { _ in }
        try BuiltBatch(changes).commit(to: backing)
        backing.close()
    }

    /// Commits a history of a keyspace: values of all sizes, overwritten and deleted, transactions of one change and of
    /// many; and stops cleanly.
    func fillWithHistory(commitCount: Int, seed: UInt64) throws {
        let keyspace = try LocalKeyspace(backing: backing())
        defer { keyspace.close() }
        try Self.apply(commitCount: commitCount, seed: seed, to: keyspace)
    }

    private static func apply(
        commitCount: Int,
        seed: UInt64,
        to keyspace: LocalKeyspace
    ) throws {
        var numbers = SplitMix(seed: seed)
        for _ in 0..<commitCount {
            let count = numbers.chance(20) ? Int.random(in: 2...40, using: &numbers) : 1
            try keyspace.apply(
                try (0..<count).map { _ in
                    let number = Int.random(in: 0..<300, using: &numbers)
                    let key = try Key(
                        "test/\(number)" + String(repeating: "k", count: number % 40)
                    )
                    if numbers.chance(15) { return .delete(key) }
                    let size = numbers.chance(1) ? 60_000 : numbers.chance(4) ? 6_000 : 150
                    return .set(key, numbers.bytes(Int.random(in: 0...size, using: &numbers)))
                }
            )
        }
    }

    /// Everything that a start reads back.
    func contents() throws -> Contents {
        let backing = backing()
        let contents = try Contents(of: backing)
        backing.close()
        return contents
    }

    /// Copies all files into another directory, as `cp -r` does.
    func copy(to other: TemporaryStore) throws {
        for (from, to) in [(directory, other.directory), (log, other.log)] {
            mkdir(to, 0o700)
            for name in names(in: from) where from + "/" + name != log {
                try write(try readFile(from + "/" + name), to: to + "/" + name)
            }
        }
    }
}

/// What a store has after a start.
struct Contents: Equatable {
    var loaded: LoadedStore
    /// The newest change of each key, by key.
    var newest: [[UInt8]: Change] = [:]
    /// All changes that its history has, in order.
    var changes: [Change] = []

    struct Change: Hashable {
        var plain: BuiltBatch.Change
        var expires: Int64?
    }

    init(of backing: SQLiteBacking) throws {
        var newest: [[UInt8]: Change] = [:]
        loaded = try backing.load { newest[Array($0.key)] = Change($0) }
        self.newest = newest
        var changes: [Change] = []
        let history = try backing.openHistory()
        try history.snapshot { _ in
            _ = try history.forEachChange(after: .end(of: 0), through: .max) {
                changes.append(Change($0))
                return true
            }
        }
        self.changes = changes
    }
}

extension Contents.Change {
    init(_ change: borrowing StoredChange) {
        plain = BuiltBatch.Change(change)
        expires = change.expires
    }
}

/// `count` changes, one revision each, to keys that repeat after 20; every seventh is a delete.
func sampleChanges(_ count: Int, from first: Int64 = 1) -> [BuiltBatch.Change] {
    (0..<Int64(count)).map { index in
        BuiltBatch.Change(
            revision: first + index,
            key: Array("key/\(index % 20)".utf8),
            value: index % 7 == 6 ? nil : Array("value \(index)".utf8),
            created: first + index % 20,
            owner: 1_000,
            version: index / 20 + 1,
            time: 1_700_000_000_000 + index,
            cause: Array("1000:1000:4242:editor:".utf8),
            previousRevision: index < 20 ? 0 : first + index - 20
        )
    }
}

struct TestFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

let pageByteCount = StoreHeader.pageByteCount

func names(in directory: String) -> [String] {
    guard let stream = opendir(directory) else { return [] }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) {
            String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names
}

func readFile(_ path: String) throws -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw TestFailure("\(path): errno \(errno)") }
    defer { close(descriptor) }
    var status = stat()
    fstat(descriptor, &status)
    var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
    guard read(descriptor, &bytes, bytes.count) == bytes.count else {
        throw TestFailure("\(path): short read")
    }
    return bytes
}

/// Replaces what is in the file, which stays the same file.
func write(_ bytes: [UInt8], to path: String) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw TestFailure("\(path): errno \(errno)") }
    defer { close(descriptor) }
    guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count else {
        throw TestFailure("\(path): short write")
    }
}

/// A person with the `sqlite3` shell.
final class Stranger {
    private var handle: OpaquePointer?

    init(_ path: String) throws {
        guard sqlite3_open(path, &handle) == SQLITE_OK else { throw TestFailure("open \(path)") }
    }

    deinit { sqlite3_close(handle) }

    /// Runs a statement and returns its rows as text.
    @discardableResult
    func run(_ sql: String) throws -> [[String?]] {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK else {
            throw TestFailure(String(cString: sqlite3_errmsg(handle)))
        }
        defer { sqlite3_finalize(statement) }
        var rows: [[String?]] = []
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_DONE: return rows
            case SQLITE_ROW:
                rows.append(
                    (0..<sqlite3_column_count(statement)).map { column in
                        sqlite3_column_text(statement, column).map { String(cString: $0) }
                    }
                )
            default: throw TestFailure(String(cString: sqlite3_errmsg(handle)))
            }
        }
    }
}
