import Glibc
import StateEngine
import StateSQLite
import StateSalvage
import StateTestSupport
import Testing

/// Single bits that a disk turned over.
struct DamageTests {
    let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    @Test(arguments: 0..<8 as Range<UInt64>)
    func `never silent about storage: a flipped bit is refused by name, or changes nothing`(
        seed: UInt64
    ) throws {
        var changes = sampleChanges(150)
        for index in stride(from: 0, to: 150, by: 10) {
            changes[index].value = [UInt8](repeating: UInt8(index), count: 3_000)
        }
        try store.fill(changes)
        let whole = try readFile(store.database)
        let mark = try readFile(store.mark)
        let expected = try store.contents()
        var numbers = SplitMix(seed: seed)
        for _ in 0..<50 {
            var bytes = whole
            let page = Int.random(in: 0..<whole.count / pageByteCount, using: &numbers)
            // Every other one where pages say how many cells they have and where.
            let span = Bool.random(using: &numbers) ? pageByteCount : 32
            let place = page * pageByteCount + Int.random(in: 0..<span, using: &numbers)
            let bit = UInt8(1) << UInt8.random(in: 0..<8, using: &numbers)
            bytes[place] ^= bit
            try store.put(bytes, markedBy: mark)
            try check(bytes, expected, "byte \(place), bit mask \(bit)")
        }
    }

    private func check(_ bytes: [UInt8], _ expected: Contents, _ comment: Comment) throws {
        unlink(store.log)
        unlink(store.database + "-shm")
        do {
            let found = try store.contents()
            #expect(found == expected, comment)
        } catch let error as StateError {
            #expect(error.message.contains(store.database), comment)
            #expect(
                [.corrupt, .newerFormat, .storage].contains(error.code),
                "\(comment): \(error)"
            )
            #expect(try readFile(store.database) == bytes, comment)
        }
    }

    @Test(arguments: 0..<8 as Range<UInt64>)
    func `a flipped bit in the log after a crash is refused, or changes nothing`(
        seed: UInt64
    ) throws {
        try store.fill(sampleChanges(60))
        do {
            let backing = store.backing()
            _ = try backing.load { _ in }
            for change in sampleChanges(60, from: 61) {
                try BuiltBatch([change]).commit(to: backing)
            }
        }
        let database = try readFile(store.database)
        let mark = try readFile(store.mark)
        let log = try readFile(store.log)
        let kept = store.directory + "/kept"
        try #require(link(store.log, kept) == 0)
        let all = (sampleChanges(60) + sampleChanges(60, from: 61)).map(\.revision)
        var numbers = SplitMix(seed: seed)
        for _ in 0..<15 {
            var damaged = log
            let place = Int.random(in: 0..<min(70 * frameByteCount, log.count), using: &numbers)
            damaged[place] ^= UInt8(1) << UInt8.random(in: 0..<8, using: &numbers)
            try store.put(database, markedBy: mark)
            // A clean stop takes the log away: it is to be the same file.
            try write(damaged, to: kept)
            unlink(store.log)
            try #require(link(kept, store.log) == 0)
            unlink(store.database + "-shm")
            do {
                let found = try store.contents().changes.map(\.plain.revision)
                #expect(found == all, "byte \(place)")
                #expect(place >= usedLogByteCount(of: log), "byte \(place)")
            } catch let error as StateError {
                #expect(error.code == .corrupt, "byte \(place): \(error)")
                #expect(try readFile(store.log) == damaged, "byte \(place)")
            }
        }
    }

    /// No checksum covers it, and no row is lost.
    @Test func `a row with a wrong number is no gap`() throws {
        let (store, target) = (try TemporaryStore(), try TemporaryStore())
        try store.crashAfterHistory(commitCount: 60, seed: 4)
        try Stranger(store.database).run("UPDATE history SET number = -20 WHERE number = 20")
        let summary = try store.salvage(to: target).summary
        #expect(summary.lostRowCount == 0)
    }
}
