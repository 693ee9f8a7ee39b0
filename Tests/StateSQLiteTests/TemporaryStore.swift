import CSQLite
import Glibc
import StateEngine
import StateSQLite

/// A data directory of a test's own; it goes with this object.
final class TemporaryStore {
    let directory: String
    var database: String { directory + "/stated.db" }
    var log: String { database + "-wal" }
    /// What tells the store from a restored one.
    var mark: String { database + "-mark" }

    init(in place: String = "/tmp") throws {
        var template = Array("\(place)/state-sqlite-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else { throw TestFailure("mkdtemp: errno \(errno)") }
        directory = String(cString: made) + "/data"
    }

    deinit {
        let parent = String(directory.dropLast("/data".count))
        for folder in [directory, parent] {
            for name in names(in: folder) { unlink(folder + "/" + name) }
            rmdir(folder)
        }
    }

    /// A backing whose log is small.
    func backing(_ adjust: (inout LogLimits) -> Void = { _ in }) -> SQLiteBacking {
        var limits = LogLimits()
        limits.checkpointByteCount = 256 << 10
        limits.keptByteCount = 512 << 10
        adjust(&limits)
        return SQLiteBacking(directory: directory, logLimits: limits)
    }

    /// Commits `changes`, one transaction each, and stops cleanly.
    func fill(_ changes: [BuiltBatch.Change]) throws {
        let backing = backing()
        _ = try backing.load { _ in }
        try BuiltBatch(changes).commit(to: backing)
        backing.close()
    }

    /// Everything that a start reads back.
    func contents() throws -> Contents {
        let backing = backing()
        let contents = try Contents(of: backing)
        backing.close()
        return contents
    }

    /// Puts bytes of the database back, with those of its mark then, so that it does not count as restored.
    func put(_ database: [UInt8], markedBy mark: [UInt8]) throws {
        try write(database, to: self.database)
        try putMark(mark)
    }

    /// As a new file, without the attribute that a later start has set.
    func putMark(_ mark: [UInt8]) throws {
        unlink(self.mark)
        try write(mark, to: self.mark)
    }

    /// Leaves the mark as a power failure may: it says of no commit that it was acknowledged.
    func forgetAcknowledged() throws {
        var mark = try readFile(self.mark)
        mark.replaceSubrange(2_048..<2_096, with: [UInt8](repeating: 0, count: 48))
        try write(mark, to: self.mark)
    }

    /// Copies all files into another directory, as `cp -r` does.
    func copy(to other: TemporaryStore) throws {
        mkdir(other.directory, 0o700)
        for name in names(in: directory) {
            try write(try readFile(directory + "/" + name), to: other.directory + "/" + name)
        }
    }
}

/// What a start of a store reads back.
struct Contents: Equatable {
    var loaded: LoadedStore
    var changes: [Change] = []

    struct Change: Hashable {
        var plain: BuiltBatch.Change
        var expires: Int64?
    }

    init(of backing: SQLiteBacking) throws {
        var changes: [Change] = []
        loaded = try backing.load { changes.append(Change($0)) }
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

let pageByteCount = HistorySchema.pageByteCount
/// Of the log: a page and its header.
let frameByteCount = pageByteCount + 24

/// Bytes of a log up to the last frame that belongs to its header: those with its salts.
func usedLogByteCount(of log: [UInt8]) -> Int {
    var end = 32
    while end + frameByteCount <= log.count, log[end + 8..<end + 16] == log[16..<24] {
        end += frameByteCount
    }
    return end
}

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
