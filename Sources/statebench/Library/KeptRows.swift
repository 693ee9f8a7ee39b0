import CLinux
import Glibc
import StateContainers
import StateEngine
import StateSQLite

/// What many keys of an embedded database hold in memory.
enum KeptRows {
    private static let keyCount = 100_000
    /// The most bytes that they may take.
    private static let bound = 8_000_000

    /// Prints it: bytes that malloc has allocated, after a start, so without what a fill leaves.
    static func measure(in place: String) throws(BenchError) {
        let directory = try TemporaryPlace(in: place)
        do {
            let path = directory.path + "/app.db"
            try fill(path)
            let before = clinux_heap_byte_count()
            let database = try SQLiteDatabase(path: path)
            let byteCount = clinux_heap_byte_count() - before
            let count = database.keyspace.keyCount
            guard count == keyCount else { throw BenchError.failed("\(count) keys were stored") }
            print(
                "\(count) keys of a database hold \(byteCount / 1_000) KB of memory"
                    + "          <= \(bound / 1_000) \(byteCount <= bound ? "ok" : "MISSED")"
            )
        } catch {
            throw .failed("\(error)")
        }
    }

    private static func fill(_ path: String) throws {
        let database = try SQLiteDatabase(path: path)
        for start in stride(from: 0, to: keyCount, by: 1_000) {
            _ = try database.keyspace.apply(
                (start..<start + 1_000).map { .set(try Key("item/\($0)"), Array("\($0)".utf8)) }
            )
        }
    }
}
