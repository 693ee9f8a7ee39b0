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

    /// Starts, commits some keys and stops.
    private func live(_ life: Int) throws -> [Told] {
        let keyspace = try StoredHistory.whenUnlocked {
            try LocalKeyspace(backing: SQLiteBacking(directory: data))
        }
        defer { keyspace.close() }
        return try (0..<4).map { number in
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
