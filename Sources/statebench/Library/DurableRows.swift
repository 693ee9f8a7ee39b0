import CSQLite
import Glibc
import StateContainers
import StateSQLite
import Synchronization

/// Compares a durable change with the same row set in SQLite itself, alternating; the settling of each second
/// is part of it.
enum DurableRows {
    private static let base = "SQLite itself, upsert, synced"
    /// How many commits of one kind are made in a row.
    private static let turnLength = 100

    static func measure(
        _ count: Int,
        in place: String,
        _ table: inout LibraryTable
    ) throws(BenchError) {
        let directory = try TemporaryPlace(in: place)
        do {
            let times = try measure(count, in: directory.path)
            table.add(base, times.append)
            table.add("SQLiteState, modify, synced", times.modify, beside: base, atMost: 1 / 1.2)
            for isShared in [true, false] {
                let time = try measureThreads(8, count, in: directory.path, isShared: isShared)
                let what = isShared ? "of one container" : "of a container each"
                let bound = isShared ? nil : 1 / 4.0
                table.add(
                    "8 threads, modify \(what), synced",
                    time,
                    beside: base,
                    atMost: bound
                )
            }
        } catch {
            throw .failed("\(error)")
        }
    }

    private static func measure(
        _ count: Int,
        in directory: String
    ) throws -> (append: Double, modify: Double) {
        let bare = try BareRows(path: directory + "/bare.db")
        let database = try SQLiteDatabase(path: directory + "/app.db")
        let state = try SQLiteState(0, key: "demo/count", in: database)
        var (append, modify): ([Double], [Double]) = ([], [])
        let turns = max(1, count / turnLength)
        for _ in 0..<turns {
            append.append(try nanoseconds(turnLength) { try bare.set("demo/count", "\($0)") })
            modify.append(try nanoseconds(turnLength) { _ in try state.modify { $0 += 1 } })
        }
        guard state.value == turns * turnLength else {
            throw BenchError.failed("\(turns * turnLength) increments gave \(state.value)")
        }
        return (append.median, modify.median)
    }

    /// Nanoseconds per change if threads make them at once: they share syncs.
    private static func measureThreads(
        _ threadCount: Int,
        _ count: Int,
        in directory: String,
        isShared: Bool
    ) throws -> Double {
        let database = try SQLiteDatabase(path: directory + "/app.db")
        let states = try (0..<threadCount).map { number in
            try SQLiteState(0, key: isShared ? "shared" : Key("own/\(number)"), in: database)
        }
        let failure = Mutex<(any Error)?>(nil)
        let before = states.reduce(0) { $0 + $1.value }
        let rounds = max(1, count / threadCount)
        let start = MonotonicClock.now
        let threads = states.map { state in
            let thread = WorkerThread(name: "writer")
            thread.start {
                do { for _ in 0..<rounds { try state.modify { $0 += 1 } } } catch {
                    failure.withLock { $0 = error }
                }
            }
            return thread
        }
        for thread in threads { thread.join() }
        let time = MonotonicClock.now - start
        if let error = failure.withLock({ $0 }) { throw error }
        let sum = states.reduce(0) { $0 + $1.value } - before
        guard sum == rounds * threadCount * (isShared ? threadCount : 1) else {
            throw BenchError.failed("the increments of \(threadCount) threads gave \(sum)")
        }
        return Double(time) / Double(rounds * threadCount)
    }
}

/// A database that has one row for each key, each set in a transaction of its own: what a program does
/// that uses SQLite itself.
private final class BareRows {
    private var database: OpaquePointer?
    private var upsert: OpaquePointer?

    init(path: String) throws(BenchError) {
        guard sqlite3_open(path, &database) == SQLITE_OK else { throw failure(of: "open") }
        let setup = """
            PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
            CREATE TABLE rows(key TEXT PRIMARY KEY, value TEXT, version INTEGER) WITHOUT ROWID
            """
        guard sqlite3_exec(database, setup, nil, nil, nil) == SQLITE_OK else {
            throw failure(of: "CREATE")
        }
        let text = """
            INSERT INTO rows VALUES(?1, ?2, 1)
            ON CONFLICT(key) DO UPDATE SET value = excluded.value, version = version + 1
            """
        guard sqlite3_prepare_v2(database, text, -1, &upsert, nil) == SQLITE_OK else {
            throw failure(of: "INSERT")
        }
    }

    deinit {
        sqlite3_finalize(upsert)
        sqlite3_close(database)
    }

    func set(_ key: String, _ value: String) throws(BenchError) {
        for (number, text) in [key, value].enumerated() {
            var text = text
            text.withUTF8 {
                let start = UnsafeRawPointer($0.baseAddress)?.assumingMemoryBound(to: CChar.self)
                // The bytes live until the end of the call only.
                let copies = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
                _ = sqlite3_bind_text(upsert, Int32(number + 1), start, Int32($0.count), copies)
            }
        }
        defer { sqlite3_reset(upsert) }
        guard sqlite3_step(upsert) == SQLITE_DONE else { throw failure(of: "INSERT") }
    }

    private func failure(of what: String) -> BenchError {
        .failed("\(what): \(String(cString: sqlite3_errmsg(database)))")
    }
}

/// A directory that is removed with this object.
final class TemporaryPlace {
    let path: String

    init(in parent: String) throws(BenchError) {
        var template = Array("\(parent)/statebench.XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw .system("mkdtemp in \(parent)") }
        path = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
    }

    deinit { TemporaryPlace.remove(path) }

    private static func remove(_ path: String) {
        guard let directory = opendir(path) else { return }
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard name != ".", name != ".." else { continue }
            if unlink(path + "/" + name) != 0 { remove(path + "/" + name) }
        }
        closedir(directory)
        rmdir(path)
    }
}
