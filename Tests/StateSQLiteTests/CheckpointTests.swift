import Glibc
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// The log is reused, and what stands in its way is told.
struct CheckpointTests {
    let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    private func commit(_ revisions: ClosedRange<Int64>, to backing: SQLiteBacking) throws {
        for revision in revisions {
            let change = BuiltBatch.Change(
                revision: revision,
                key: Array("k\(revision)".utf8),
                value: [UInt8](repeating: 1, count: 64),
                created: revision
            )
            try BuiltBatch([change]).commit(to: backing)
            backing.maintain()
        }
    }

    /// Commits until the log has at most `byteCount` bytes, but not after revision 20,000.
    ///
    /// While another thread moves the log, it grows: by how much depends on the disk.
    private func commit(
        after revision: Int64,
        to backing: SQLiteBacking,
        untilLogHas byteCount: Int64
    ) throws -> Int64 {
        var last = revision
        while backing.status.logByteCount > byteCount, last < 20_000 {
            last += 1
            try commit(last...last, to: backing)
        }
        return last
    }

    @Test func `many commits stay within the bound of the log`() throws {
        let backing = store.backing { $0.movesAside = false }
        _ = try backing.load { _ in }
        try commit(1...1_000, to: backing)
        // Its size at the start, and one commit.
        #expect(backing.status.logByteCount <= 256 << 10 + 64 << 10)
        #expect(backing.status.checkpointFailure == nil)
        #expect(backing.status.databaseByteCount > 64 << 10)
        var file = stat()
        try #require(stat(store.log, &file) == 0)
        #expect(Int64(file.st_size) == backing.status.logByteCount)
        backing.close()
        #expect(stat(store.log, &file) != 0)
        #expect(try store.contents().changes.count == 1_000)
    }

    @Test func `a reader costs no commit, is told of, and its log is cut back`() throws {
        let backing = store.backing()
        let told = Observed<[String?]>([])
        backing.reports.onCheckpoint = { failure in told.update { $0.append(failure) } }
        _ = try backing.load { _ in }
        try commit(1...10, to: backing)
        let reader = try Stranger(store.database)
        try reader.run("BEGIN")
        try #require(try reader.run("SELECT count(*) FROM history") == [["10"]])
        try commit(11...500, to: backing)
        #expect(backing.status.logByteCount > 1 << 20)
        #expect(backing.status.checkpointFailure?.contains("cannot be reused") == true)
        #expect(try reader.run("SELECT count(*) FROM history") == [["10"]])
        try reader.run("COMMIT")
        try commit(501...1_000, to: backing)
        #expect(backing.status.checkpointFailure == nil)
        // Told once when it begins and once when it ends.
        #expect(told.current.count == 2)
        #expect(told.current.first??.contains("cannot be reused") == true)
        #expect(told.current.last == .some(nil))
        let last = try commit(after: 1_000, to: backing, untilLogHas: 512 << 10)
        #expect(backing.status.logByteCount <= 512 << 10)
        #expect(try reader.run("SELECT count(*) FROM history") == [["\(last)"]])
        backing.close()
        #expect(try store.contents().changes.count == Int(last))
    }

    @Test func `a log at its limit refuses commits until it can be reused`() throws {
        let backing = store.backing { $0.byteCount = 600 << 10 }
        _ = try backing.load { _ in }
        let reader = try Stranger(store.database)
        try reader.run("BEGIN")
        try reader.run("SELECT count(*) FROM history")
        let error = try #require(throws: StateError.self) { try commit(1...1_000, to: backing) }
        #expect(error.code == .noSpace)
        #expect(error.message.contains(store.database))
        let count = Int64(
            try Stranger(store.database).run("SELECT count(*) FROM history")[0][0] ?? ""
        )
        let last = try #require(count)
        #expect(last > 50)
        try reader.run("COMMIT")
        try commit(last + 2...last + 100, to: backing)
        backing.close()
        #expect(try store.contents().changes.count == Int(last) + 99)
    }

    @Test func `a stranger who holds the write lock is waited for, then named`() throws {
        let backing = store.backing { $0.lockWait = .milliseconds(20) }
        _ = try backing.load { _ in }
        let stranger = try Stranger(store.database)
        try stranger.run("BEGIN IMMEDIATE")
        let error = try #require(throws: StateError.self) { try commit(1...1, to: backing) }
        #expect(error.code == .readOnly)
        #expect(error.message.contains("write lock of \(store.database)"))
        #expect(!error.message.contains("unknown"))
        try stranger.run("COMMIT")
        try commit(2...3, to: backing)
        backing.close()
        #expect(try store.contents().changes.map(\.plain.revision) == [2, 3])
    }

    @Test func `a commit that fails half way leaves nothing`() throws {
        let backing = store.backing()
        _ = try backing.load { _ in }
        try commit(1...3, to: backing)
        #expect(throws: TestFailure.self) {
            try backing.commit(changeCount: 2) { append in
                try [UInt8(107)].withUnsafeBytes { key in
                    try append(
                        StoredChange(
                            revision: 4,
                            ordinal: 0,
                            key: key,
                            value: key,
                            created: 4,
                            owner: 0,
                            version: 1,
                            time: 0,
                            cause: Bytes(start: nil, count: 0),
                            previousRevision: 0,
                            previousOrdinal: 0
                        )
                    )
                }
                throw TestFailure("half way")
            }
        }
        try commit(5...6, to: backing)
        backing.close()
        #expect(try store.contents().changes.map(\.plain.revision) == [1, 2, 3, 5, 6])
    }

    /// Whether this process may mount a file system of its own.
    private static func canMount() -> Bool {
        guard let place = try? TemporaryStore(), mkdir(place.directory, 0o700) == 0,
            mount("tmpfs", place.directory, "tmpfs", 0, "size=1m") == 0
        else { return false }
        return umount2(place.directory, Int32(MNT_DETACH)) == 0
    }

    @Test(.enabled("needs to mount a file system") { canMount() })
    func `a full disk commits nothing, and is over when there is room`() throws {
        mkdir(store.directory, 0o700)
        try #require(mount("tmpfs", store.directory, "tmpfs", 0, "size=1m") == 0)
        defer { umount2(store.directory, Int32(MNT_DETACH)) }
        let ballast = store.directory + "/ballast"
        try write([UInt8](repeating: 0, count: 400 << 10), to: ballast)
        let backing = store.backing { $0.checkpointByteCount = 64 << 10 }
        _ = try backing.load { _ in }
        try commit(1...10, to: backing)
        let large = BuiltBatch.Change(
            revision: 11,
            key: [107],
            value: [UInt8](repeating: 7, count: 700 << 10),
            created: 11
        )
        let error = try #require(throws: StateError.self) {
            try BuiltBatch([large]).commit(to: backing)
        }
        #expect(error.code == .noSpace)
        #expect(error.message.contains(store.database))
        try commit(12...12, to: backing)
        backing.close()
        #expect(try store.contents().changes.map(\.plain.revision) == Array(1...10) + [12])
    }
}
