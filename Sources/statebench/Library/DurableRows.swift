import Glibc
import StateContainers
import StateEngine
import StateSQLite
import Synchronization

/// Compares a durable change with one row appended to the history: the same files, alternating.
enum DurableRows {
    private static let base = "a bare history append, synced"
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
            // At least 0.8 of its speed.
            table.add("SQLiteState, modify, synced", times.modify, beside: base, atMost: 1 / 0.8)
            for isShared in [true, false] {
                let time = try measureThreads(8, count, in: directory.path, isShared: isShared)
                let what = isShared ? "of one container" : "of a container each"
                table.add("8 threads, modify \(what), synced", time, beside: base)
            }
        } catch {
            throw .failed("\(error)")
        }
    }

    private static func measure(
        _ count: Int,
        in directory: String
    ) throws -> (append: Double, modify: Double) {
        let bare = try BareHistory(path: directory + "/bare.db")
        let database = try SQLiteDatabase(path: directory + "/app.db")
        let state = try SQLiteState(0, key: "demo/count", in: database)
        var (append, modify): ([Double], [Double]) = ([], [])
        let turns = max(1, count / turnLength)
        for _ in 0..<turns {
            append.append(try nanoseconds(turnLength) { _ in try bare.append() })
            modify.append(try nanoseconds(turnLength) { _ in try state.modify { $0 += 1 } })
        }
        bare.close()
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

/// A history to which rows are appended as the keyspace does it, on the calling thread.
private final class BareHistory {
    private let backing: SQLiteBacking
    private var revision: Int64 = 0

    init(path: String) throws {
        backing = SQLiteBacking(path: path)
        _ = try backing.load { _ in }
    }

    /// Appends one row with one sync; sometimes with a checkpoint, as after each commit of a
    /// keyspace.
    func append() throws {
        revision += 1
        let change = BuiltBatch.Change(
            revision: revision,
            key: Array("demo/count".utf8),
            value: Array("\(revision)".utf8),
            created: 1,
            version: revision,
            previousRevision: revision - 1
        )
        try BuiltBatch([change]).commit(to: backing)
        backing.maintain()
    }

    func close() { backing.close() }
}

/// A directory that is removed with this object.
final class TemporaryPlace {
    let path: String

    init(in parent: String) throws(BenchError) {
        var template = Array("\(parent)/statebench.XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw .system("mkdtemp in \(parent)") }
        path = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
    }

    deinit {
        guard let directory = opendir(path) else { return }
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            unlink(path + "/" + name)
        }
        closedir(directory)
        rmdir(path)
    }
}
