import Glibc
import StateEngine
import StateLog
import StateSQLite
import StateTestSupport

/// A store with a little of everything, as the bytes of its files.
struct SampleStore {
    typealias File = (name: String, bytes: [UInt8])

    let files: [File]

    /// Makes it in a directory.
    ///
    /// - Parameters:
    ///   - directory: Which is made.
    ///   - hasLog: Whether the files are those of a process that was killed, which has all in its log.
    /// - Throws: Where there can be none.
    init(in directory: String, hasLog: Bool) throws {
        var options = SQLiteBacking.Options()
        options.history = .keep(changes: 1_000)
        options.log.segmentByteCount = 32 << 10
        let keyspace = try LocalKeyspace(backing: SQLiteBacking(directory: directory, options))
        try RevisionReservation(path: directory + "/memory.revisions").raise()
        for number in 1...40 {
            let key = try Key("k\(number % 7)")
            try keyspace.apply([.set(key, Array("value \(number)".utf8))])
        }
        let keys = try ["a", "a/b", "ä", "a/b/c"].map { try Key($0) }
        try keyspace.apply(keys.map { .set($0, Array(repeating: 7, count: 100)) })
        try keyspace.apply([.delete(keys[0]), .delete(keys[2])])
        // More than a page of the database.
        try keyspace.apply([.set(keys[1], Array(repeating: 9, count: 20_000))])
        if !hasLog { keyspace.close() }
        let log = try LogDirectory(directory + "/log").names().map { "log/" + $0 }
        files = try (["stated.db", "stated.db-wal", "memory.revisions"] + log).compactMap {
            let path = "\(directory)/\($0)"
            guard access(path, F_OK) == 0 else { return nil }
            return ($0, try readFile(path))
        }
        if hasLog { keyspace.close() }
    }
}

/// What is done to the files of a store.
///
/// ```
/// 0  kind      0 bytes are overwritten   1 the file ends   2 bytes are inserted   3 as many are removed
///              4 a page becomes another one   5 a column of a row, with its checksum   6 a value of `meta`, with its own
/// 1  file, column or name
/// 2  offset or row, 3 bytes, little-endian
/// 5  how many bytes follow
/// ```
struct Edit {
    private let kind: UInt8
    private let place: Int
    private let offset: Int
    private let bytes: [UInt8]

    /// Takes the next edit off the input; nil where none is left.
    init?(_ input: inout Bytes) {
        guard input.count >= 6 else { return nil }
        kind = input[0] % 7
        place = Int(input[1])
        offset = Int(input[2]) | Int(input[3]) << 8 | Int(input[4]) << 16
        let end = min(input.count, 6 + Int(input[5]))
        bytes = Array(input.slice(6, end))
        input = input.slice(end, input.count)
    }

    /// Alters the files, or says what is to be done to the rows once the files are there.
    func apply(to files: inout [SampleStore.File], _ rows: inout [RowEdit]) {
        guard kind < 5 else {
            rows.append(RowEdit(isMeta: kind == 6, row: offset, column: place, bytes: bytes))
            return
        }
        let file = place % files.count
        var content = files[file].bytes
        guard !content.isEmpty else { return }
        let start = offset % content.count
        let end = min(content.count, start + bytes.count)
        switch kind {
        case 0: content.replaceSubrange(start..<end, with: bytes.prefix(end - start))
        case 1: content.removeSubrange(start...)
        case 2: content.insert(contentsOf: bytes, at: start)
        case 3: content.removeSubrange(start..<end)
        default: copyPage(in: &content)
        }
        files[file].bytes = content
    }

    private func copyPage(in content: inout [UInt8]) {
        let size = 4_096
        let count = content.count / size
        guard count > 0 else { return }
        let (from, to) = (offset % count * size, offset / 256 % count * size)
        content.replaceSubrange(to..<to + size, with: Array(content[from..<from + size]))
    }
}
