import Glibc
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// A store whose process was killed, that can be put back as it was then: the same files with the same bytes.
final class KilledStore {
    let store: TemporaryStore
    private(set) var database: [UInt8] = []
    private(set) var log: [UInt8] = []
    private(set) var mark: [UInt8] = []
    /// What a start of it reads.
    private(set) var expected: Contents
    /// Whether all that the log has is in the database.
    private(set) var isMoved = false
    private(set) var isCompacted = false
    /// Another name of the log, which a clean stop removes.
    private var keptLog: String { store.directory + "/kept" }

    init() throws {
        store = try TemporaryStore()
        let backing = store.backing()
        expected = try Contents(of: backing)
        backing.close()
    }

    /// Commits until the log is as it is to be, and ends without closing.
    func run(_ log: LogFlipTests.Log, seed: UInt64) throws {
        isMoved = [.moved, .compactedAndMoved].contains(log)
        isCompacted = [.compacted, .compactedAndMoved].contains(log)
        try commit(log)
        database = try readFile(store.database)
        self.log = try readFile(store.log)
        mark = try readFile(store.mark)
        try #require(link(store.log, keptLog) == 0)
        expected = try store.contents()
        let isSame = expected.changes.map(\.plain) == changes
        try #require(isSame || isCompacted && expected.changes.count < changes.count)
        // Where the first start after it made a change, it is put back.
        try put(database: database, log: self.log)
    }

    /// What was committed.
    private(set) var changes: [BuiltBatch.Change] = []

    /// Whether the row of this revision has more than one page.
    static func isLong(_ revision: Int64) -> Bool { revision % 40 == 0 }

    /// Changes of 30 keys, as a keyspace makes them, now and then a long one.
    private static func changes(_ count: Int64) -> [BuiltBatch.Change] {
        (1...count).map { revision in
            let text = Array("value \(revision)".utf8)
            let long = [UInt8](repeating: UInt8(revision % 251), count: 20_000)
            return BuiltBatch.Change(
                revision: revision,
                key: Array("key/\(revision % 30)".utf8),
                value: isLong(revision) ? long : text,
                created: (revision - 1) % 30 + 1,
                version: (revision - 1) / 30 + 1,
                previousRevision: revision <= 30 ? 0 : revision - 30
            )
        }
    }

    private func commit(_ log: LogFlipTests.Log) throws {
        let backing = store.backing {
            // Where pages are is known then.
            $0.movesAside = false
            if log == .long || log == .compacted { $0.checkpointByteCount = 8 << 20 }
        }
        _ = try backing.load { _ in }
        changes = KilledStore.changes(300)
        for change in changes {
            try BuiltBatch([change]).commit(to: backing)
            if log == .restarted { backing.maintain() }
        }
        if isCompacted { try compact(backing) }
        if isMoved {
            backing.maintain()
            try #require(backing.status.checkpointFailure == nil)
        }
    }

    private func compact(_ backing: SQLiteBacking) throws {
        backing.raiseCompaction(to: 200)
        while !(try backing.compact { true }.isDone) {}
        // Else what is acknowledged ends at the last change.
        if !isMoved { try backing.syncCompaction() }
    }

    // MARK: Damage

    /// What a disk, or somebody, did to one file.
    struct Damage: CustomStringConvertible {
        var description: String
        var database: [UInt8]
        var log: [UInt8]
        var isCut = false
        /// Whether it hit what the mark says was acknowledged, in the log.
        var isAcknowledged = false
        /// Whether it hit the header of the log, which says nothing that is lost with it if all of its frames are in the database.
        var isOfLogHeader = false
    }

    /// Mostly of the log, mostly a flip.
    func damage(_ numbers: inout SplitMix) -> Damage {
        let isLog = !numbers.chance(25)
        let used = usedLogByteCount(of: log)
        let count = isLog ? min(used + used / 10, log.count) : database.count
        var damage = Damage(description: "", database: database, log: log)
        // Now and then the header.
        let span = numbers.chance(10) ? 64 : count
        let place = Int.random(in: 0..<span, using: &numbers)
        damage.isCut = numbers.chance(25)
        damage.isAcknowledged = isLog && place < used && !(damage.isCut && place == 0)
        damage.isOfLogHeader =
            isLog && !damage.isCut && place < 32
        let name = isLog ? "the log" : "the database"
        if damage.isCut {
            damage.description = "\(name) cut to \(place) bytes"
            if isLog {
                damage.log.removeSubrange(place...)
            } else {
                damage.database.removeSubrange(place...)
            }
        } else {
            let bit = UInt8(1) << UInt8.random(in: 0..<8, using: &numbers)
            damage.description = "byte \(place) of \(name), mask \(bit)"
            if isLog { damage.log[place] ^= bit } else { damage.database[place] ^= bit }
        }
        return damage
    }

    func put(_ damage: Damage) throws { try put(database: damage.database, log: damage.log) }

    /// Puts these bytes into the same files, and those that the mark had.
    func put(database: [UInt8], log: [UInt8]) throws {
        try store.put(database, markedBy: mark)
        try write(log, to: keptLog)
        unlink(store.log)
        try #require(link(keptLog, store.log) == 0)
        unlink(store.database + "-shm")
    }
}
