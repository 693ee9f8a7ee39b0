import Glibc
import StateEngine
import StateSQLite
import StateSalvage
import StateTestSupport
import Testing

/// Single bits that a disk turned over in the files of a store whose process was killed, and files that were cut: `STATED_FLIPS` says
/// how many, 200 without it.
struct LogFlipTests {
    static let parts = 4

    let stage: KilledStore
    /// Rows that flips cost, in so many salvages.
    private var lostCount = 0
    private var salvageCount = 0

    init() throws { stage = try KilledStore() }

    /// What the log has when the process is killed.
    enum Log: CaseIterable {
        /// Every commit of the run.
        case long
        /// The last ones; behind them frames of an earlier log, whose pages are in the database.
        case restarted
        /// Pages that are in the database already.
        case moved
        /// Pieces of compaction behind the commits.
        case compacted
        /// The same, and all pages are in the database already.
        case compactedAndMoved
    }

    @Test(arguments: Log.allCases, Seed.each(1))
    func
        `never an older state: a killed store with a flipped bit or a cut file is refused, or serves what it had`(
            log: Log,
            seed: UInt64
        ) throws
    {
        var test = self
        try test.damageFiles(log, seed)
    }

    private mutating func damageFiles(_ log: Log, _ seed: UInt64) throws {
        try stage.run(log, seed: seed)
        var numbers = SplitMix(seed: seed)
        var refusedCount = 0
        var count = 0
        for _ in 0..<max(20, FlipTests.flipCount / LogFlipTests.parts) {
            let damage = stage.damage(&numbers)
            try stage.put(damage)
            let comment: Comment = "\(log), seed \(seed): \(damage)"
            let isRefused = try check(damage, comment)
            // All of its frames are in the database, and the header has nothing else.
            if stage.isMoved, damage.isOfLogHeader { #expect(!isRefused, comment) }
            refusedCount += isRefused ? 1 : 0
            count += 1
        }
        // Of fewer than 20 all may be where they matter.
        #expect(refusedCount > count / 4 && refusedCount < count)
        // One flip in 80 costs such a row; of few salvages it may be more.
        #expect(lostCount <= max(3, salvageCount / 20), "\(lostCount) of \(salvageCount)")
    }

    /// - Returns: Whether the start was refused.
    private mutating func check(_ damage: KilledStore.Damage, _ comment: Comment) throws -> Bool {
        let store = stage.store
        let files = try store.files()
        let findings = (try? store.check().findings) ?? ["refused"]
        #expect(try store.files() == files, comment)
        do {
            let found = try store.contents()
            let isSame = found == stage.expected
            #expect(isSame, "\(comment): it is at \(found.loaded.revision)")
            #expect(!damage.isAcknowledged || damage.isOfLogHeader && stage.isMoved, comment)
            #expect(findings == [], comment)
            return false
        } catch let error as StateError {
            #expect(error.message.contains(store.database), comment)
            #expect(
                [.corrupt, .newerFormat, .storage].contains(error.code),
                "\(comment): \(error)"
            )
            #expect(try store.files() == files, comment)
            #expect(findings != [], "\(comment): the check found nothing, the start \(error)")
            if damage.isAcknowledged {
                #expect(error.code == .corrupt, "\(comment): \(error)")
                try checkSalvage(damage, comment)
            }
            return true
        }
    }

    private mutating func checkSalvage(_ damage: KilledStore.Damage, _ comment: Comment) throws {
        let target = try TemporaryStore()
        let (lines, summary) = try stage.store.salvage(to: target)
        let found = try target.contents()
        let expected = stage.expected.changes
        let lost = Set(expected).subtracting(found.changes)
        // Where the log is cut, compaction at its end has not been, and the past is longer.
        let all = found.changes.map(\.plain)
        let isPast = stage.changes.filter { all.contains($0) } == all
        #expect(isPast, comment)
        let hasRest = Set(found.changes).union(lost).isSuperset(of: expected)
        #expect(hasRest, comment)
        #expect(summary.isWhole || !lines.isEmpty, comment)
        if damage.isCut {
            #expect(!summary.isWhole || lost.isEmpty, "\(comment): \(lines)")
            // A row that cannot be read may be one that compaction removed: nobody can say so any more.
            let mayBeCompacted = stage.isMoved && stage.isCompacted
            let saysSo = summary.lostRowCount > 0
            #expect(saysSo == !lost.isEmpty || mayBeCompacted && saysSo, "\(comment): \(lines)")
        } else {
            // Mostly the checksum of its frame says which bit it was, and it costs nothing.
            let names = "\(comment): \(lost.count) rows, \(lines)"
            #expect(lost.count <= 1, "\(names)")
            #expect(!summary.isWhole || lost.isEmpty, "\(names)")
            // A row that cannot be read may be one that compaction removed: nobody can say so any more.
            let most = lost.count + (stage.isCompacted ? 1 : 0)
            #expect((lost.count...most).contains(Int(summary.lostRowCount)), "\(names)")
            #expect(!lines.isEmpty, "\(names)")
            // Several bits may be the one that explains the checksum. A row whose pages go on
            // elsewhere does not show which it was.
            #expect(lost.allSatisfy { KilledStore.isLong($0.plain.revision) }, "\(names)")
            lostCount += lost.count
            salvageCount += 1
        }
        #expect(found.loaded.epoch != stage.expected.loaded.epoch)
        #expect(found.loaded.revision > stage.expected.loaded.revision + 1 << 31, comment)
        #expect(try target.check().findings == [], comment)
    }

    // MARK: Larger damage

    @Test(arguments: [0, 1, 99, 511, 8_191])
    func `a database that was cut to nothing keeps its log`(byteCount: Int) throws {
        try stage.run(.long, seed: 4)
        try stage.put(database: Array(stage.database.prefix(byteCount)), log: stage.log)
        let files = try stage.store.files()
        _ = try? stage.store.check()
        #expect(try stage.store.files() == files)
        let error = try #require(throws: StateError.self) { try stage.store.contents() }
        #expect(error.code == .corrupt)
        #expect(try stage.store.files() == files)
    }

    /// A page in the middle of the log, all of it, or the frame with what says which page it is.
    @Test(arguments: [24..<frameByteCount, 0..<frameByteCount, 3_000..<3_100, 0..<2_048])
    func `a frame that is gone costs its own rows at most, and they are reported`(
        range: Range<Int>
    ) throws {
        try stage.run(.long, seed: 5)
        let end = usedLogByteCount(of: stage.log)
        for frame in stride(from: 3, to: (end - 32) / frameByteCount, by: 7) {
            let start = 32 + frame * frameByteCount
            var log = stage.log
            for index in range { log[start + index] = 0xA5 }
            try stage.put(database: stage.database, log: log)
            let error = try #require(throws: StateError.self) { try stage.store.contents() }
            #expect(error.code == .corrupt)
            let target = try TemporaryStore()
            let (lines, summary) = try stage.store.salvage(to: target)
            let found = try target.contents().changes
            let lost = Set(stage.expected.changes).subtracting(found)
            #expect(found == stage.expected.changes.filter { !lost.contains($0) })
            // A page has been written by one commit since the version before.
            #expect(lost.count <= 1, "frame \(frame): \(lost.count) rows, \(lines)")
            #expect(!lines.isEmpty)
            #expect(lost.isEmpty || !summary.isWhole && summary.lostRowCount > 0, "\(lines)")
        }
    }

    /// The highest bit of a word may change one byte of the checksum only, as a flip in the checksum itself would.
    @Test func `a flipped bit that looks like one of the checksum costs no short row`() throws {
        try stage.run(.long, seed: 9)
        let end = usedLogByteCount(of: stage.log)
        for frame in stride(from: 3, to: (end - 32) / frameByteCount - 1, by: 7) {
            var log = stage.log
            log[32 + frame * frameByteCount + 24 + 39] ^= 0x80
            try stage.put(database: stage.database, log: log)
            let target = try TemporaryStore()
            let (lines, _) = try stage.store.salvage(to: target)
            let found = try target.contents().changes
            let lost = Set(stage.expected.changes).subtracting(found)
            let isLong = lost.allSatisfy { KilledStore.isLong($0.plain.revision) }
            #expect(lost.count <= 1 && isLong, "frame \(frame): \(lines)")
        }
    }

    @Test func `what was acknowledged and is nowhere is a loss, with its revisions`() throws {
        try stage.run(.long, seed: 6)
        try stage.put(
            database: stage.database,
            log: Array(stage.log.prefix(32 + 100 * frameByteCount))
        )
        let error = try #require(throws: StateError.self) { try stage.store.contents() }
        let last = stage.expected.loaded.revision
        #expect(error.message.contains("records revision \(last) as acknowledged"))
        #expect(error.message.contains("stated --salvage"))
        let target = try TemporaryStore()
        let (lines, summary) = try stage.store.salvage(to: target)
        let newest = try #require(target.contents().changes.last?.plain.revision)
        #expect(newest < last)
        #expect(error.message.contains("it ends at revision \(newest), but "))
        let revisions = "revisions \(newest + 1) to \(last)"
        #expect(
            lines.contains(
                "lost: \(revisions), which were acknowledged according to stated.db-mark"
            )
        )
        #expect(!summary.isWhole && summary.lostRowCount >= 1)
        #expect(summary.revision == last + 1 << 32)
    }

    @Test func `a log that somebody removed, or put another in its place of, is another store's`()
        throws
    {
        try stage.run(.long, seed: 7)
        unlink(stage.store.log)
        let removed = try stage.store.contents()
        #expect(removed.loaded.epoch != stage.expected.loaded.epoch)
        #expect(removed.loaded.revision > stage.expected.loaded.revision)
        try stage.put(database: stage.database, log: stage.log)
        unlink(stage.store.log)
        try write(Array(stage.log.prefix(32 + 50 * frameByteCount)), to: stage.store.log)
        let replaced = try stage.store.contents()
        #expect(replaced.loaded.epoch != stage.expected.loaded.epoch)
        #expect(replaced.loaded.revision > stage.expected.loaded.revision)
    }

    /// The mark itself is no part of the store: what it cannot say is not noticed, and nothing is refused for it.
    @Test func `a flipped bit in the mark of what was acknowledged refuses nothing`() throws {
        try stage.run(.long, seed: 8)
        for place in 2_048..<2_096 {
            try stage.put(database: stage.database, log: stage.log)
            var mark = stage.mark
            mark[place] ^= 0x10
            try stage.store.putMark(mark)
            let isSame = try stage.store.contents() == stage.expected
            #expect(isSame, "byte \(place)")
        }
    }
}
