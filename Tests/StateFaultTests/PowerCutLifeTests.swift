import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// Power fails while a store is made, written to, stopped and started again.
struct PowerCutLifeTests {
    private let directory: TemporaryDirectory
    private let faults: Faults
    private let data: String

    init() throws {
        directory = try TemporaryDirectory()
        data = directory.path(of: "data")
        faults = try Faults(below: data)
    }

    /// Starts, commits some keys, calls `beforeStop` and stops.
    private func live(
        _ life: Int,
        beforeStop: (LocalKeyspace) throws -> Void = { _ in }
    ) throws -> [Told] {
        let keyspace = try StoredHistory.whenUnlocked {
            try LocalKeyspace(backing: SQLiteBacking(directory: data))
        }
        defer { keyspace.close() }
        let told = try (0..<4).map { number in
            let value = "\(life).\(number)"
            let revision = try keyspace.apply([
                .set(Key("k\(number)"), Array(value.utf8)), .set(Key("l\(number)"), [UInt8(life)]),
            ])
            return Told(
                place: faults.place,
                revision: revision,
                changes: [Told.Change(key: "k\(number)", value: value)]
            )
        }
        try beforeStop(keyspace)
        return told
    }

    /// Plans power cuts for the operations that come next, eight for each.
    private func cutPower(untilPlace count: Int, _ random: inout SplitMix) throws {
        for number in 0..<8 * count {
            let place = faults.place + 1 + Int64(number / 8)
            let target = directory.path(of: "cut-\(number)")
            try faults.cutPower(at: place, leaving: target, seed: random.next())
        }
    }

    /// Cut to nothing and written back by half, the log would be put over newer pages of the database.
    @Test(arguments: Seed.each(2))
    func `durable before told: a power cut at any point of a clean stop takes no commit back`(
        seed: UInt64
    ) throws {
        var random = SplitMix(seed: seed)
        let told = try live(0) { _ in try cutPower(untilPlace: 15, &random) }
        let count = Int(faults.cutCount)
        #expect(count > 40)
        for number in 0..<count {
            let left = try StoredHistory(directory.path(of: "cut-\(number)"))
            #expect(left.rows.count == told.count * 2, "STATED_TEST_SEED=\(seed), cut \(number)")
        }
    }

    @Test(arguments: Seed.each(1))
    func `durable before told: a power cut at any point of shrinking takes no commit back`(
        seed: UInt64
    ) throws {
        var random = SplitMix(seed: seed)
        var cutCount = 0
        let told = try live(0) { keyspace in
            try cutPower(untilPlace: 40, &random)
            _ = try keyspace.compact(to: 3, shrinks: true)
            cutCount = Int(faults.cutCount)
        }
        #expect(cutCount > 80)
        for number in 0..<cutCount {
            let left = try StoredHistory(directory.path(of: "cut-\(number)"))
            #expect(left.values.count == told.count * 2, "STATED_TEST_SEED=\(seed), cut \(number)")
        }
    }

    @Test(arguments: Seed.each(2))
    func `a power cut at any point of a store's life leaves a store that starts`(
        seed: UInt64
    ) throws {
        var random = SplitMix(seed: seed)
        var places: [Int64] = []
        var place: Int64 = 0
        for number in 0..<120 {
            place += Int64.random(in: 1...3, using: &random)
            let target = directory.path(of: "cut-\(number)")
            try faults.cutPower(at: place, leaving: target, seed: random.next())
            places.append(place)
        }
        var told: [Told] = []
        for life in 0..<3 { told += try live(life) }
        let history = try StoredHistory(data)
        let bounds = ToldBounds(told, in: history)
        #expect(bounds.faults == [])
        let count = Int(faults.cutCount)
        #expect(count > 20)
        for (number, place) in places.prefix(count).enumerated() {
            let left = try StoredHistory(directory.path(of: "cut-\(number)"))
            let place: Comment = "STATED_TEST_SEED=\(seed), power cut at operation \(place)"
            #expect(left.rows == Array(history.rows.prefix(left.rows.count)), place)
            #expect(left.rows.count.isMultiple(of: 2), place)
            #expect(left.rows.count >= bounds.told(before: places[number]).rowCount, place)
        }
    }
}
