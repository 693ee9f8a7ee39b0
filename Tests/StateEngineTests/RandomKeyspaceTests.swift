import StateEngine
import StateTestSupport
import Testing

@Suite struct RandomKeyspaceTests {
    @Test(arguments: Seed.each(8))
    func `random transactions, commits and failures agree with a dictionary`(seed: UInt64) throws {
        let walk = try RandomWalk(seed: seed)
        for step in 0..<1_200 {
            try walk.step()
            walk.compare("step \(step)")
            try #require(walk.stage.faults() == [], "step \(step)")
        }
        try walk.finish()
        walk.compare("at the end")
        checkLinks(walk.stage.backing.kept)
        try checkReload(walk)
    }

    /// Each change names the one that it supersedes, and each commit is numbered from 0, each key once.
    private func checkLinks(_ kept: [HeldBacking.Change]) {
        var latest: [[UInt8]: (revision: Int64, ordinal: Int32)] = [:]
        var (revision, ordinal) = (Int64(0), Int32(0))
        for change in kept {
            #expect(change.revision >= revision)
            ordinal = change.revision == revision ? ordinal + 1 : 0
            revision = change.revision
            #expect(change.ordinal == ordinal)
            let previous = latest[change.key] ?? (0, 0)
            #expect(change.previousRevision == previous.revision && previous.revision < revision)
            #expect(change.previousOrdinal == previous.ordinal)
            latest[change.key] = (revision, ordinal)
        }
        #expect(Set(kept.map { "\($0.revision) \($0.key)" }).count == kept.count)
    }

    /// What storage holds is what the keyspace holds, and a change after the start knows what it supersedes.
    private func checkReload(_ walk: RandomWalk) throws {
        let first = walk.stage.backing
        let stage = try Stage(HeldBacking(kept: first.kept, epoch: first.epoch))
        #expect(stage.keyspace.epoch == first.epoch)
        #expect(stage.keyspace.revision == walk.model.durableRevision)
        #expect(stage.faults() == [])
        let entries = stage.keyspace.entries(.everything, after: nil, limit: .max)
        #expect(
            entries.map(\.entry)
                == walk.stage.keyspace.entries(.everything, after: nil, limit: .max).map(\.entry)
        )
        try stage.transact { (core) throws(StateError) in
            for key in RandomWalk.keys { try core.set(key, "after") }
        }
        try stage.commit()
        checkLinks(stage.backing.kept)
    }
}

/// Random steps of a keyspace and of the model beside it.
final class RandomWalk {
    static let keys = [
        "a", "a/b", "a/b/c", "ab", "b", "b/1", "b/2", "\u{E9}", "long/long/long/1", "z",
    ]

    let stage: Stage
    var model = KeyspaceModel()
    private(set) var random: SplitMix
    private var time: Int64 = 1_000
    /// The newest transaction that was handed over.
    private var publishedRevision: Int64 = 0

    init(seed: UInt64) throws {
        random = SplitMix(seed: seed)
        stage = try Stage()
    }

    func step() throws {
        switch Int.random(in: 0..<100, using: &random) {
        case ..<60: try transact()
        case ..<75: try publish()
        case ..<93: try settle(fails: false)
        default: try settle(fails: true)
        }
    }

    /// Commits all that is in flight.
    func finish() throws {
        try publish()
        while stage.backing.waiting != nil { try settle(fails: false) }
    }

    private func transact() throws {
        time += 1
        let uid = UInt32.random(in: 1...4, using: &random)
        let count = Int.random(in: 1...4, using: &random)
        let steps = (0..<count).map { _ in (key: randomKey(), step: randomStep()) }
        if random.chance(15) { return rollBack(steps, by: uid) }
        let revision = try stage.transact(by: uid, at: time) { (core) throws(StateError) in
            for (key, step) in steps { try RandomWalk.run(step, key, core) }
        }
        #expect(revision == model.transact(steps, by: uid, at: time))
    }

    /// Runs the steps and then takes them back, which must leave no trace.
    private func rollBack(_ steps: [(key: String, step: KeyspaceModel.Step)], by uid: UInt32) {
        #expect(throws: StateError.self) {
            try stage.transact(by: uid, at: time) { (core) throws(StateError) in
                for (key, step) in steps { try RandomWalk.run(step, key, core) }
                throw StateError(.err, "enough")
            }
        }
    }

    private static func run(
        _ step: KeyspaceModel.Step,
        _ key: String,
        _ core: KeyspaceCore
    ) throws(StateError) {
        switch step {
        case .set(let value): try core.set(key, value)
        case .append(let suffix): try core.append(key, suffix)
        case .delete: try core.delete(key)
        }
    }

    private func publish() throws {
        guard let newest = model.flying.last?.revision, newest > publishedRevision else { return }
        publishedRevision = newest
        try stage.publish()
    }

    private func settle(fails: Bool) throws {
        guard let revision = stage.backing.waiting?.last?.revision else { return }
        if fails {
            try stage.fail()
            model.fail()
        } else {
            try stage.succeed()
            model.settle(through: revision)
        }
        // Where more was handed over, the commit thread takes it by itself.
        guard let next = model.flying.first, next.revision <= publishedRevision else { return }
        #expect(stage.backing.held()?.first?.revision == next.revision)
    }

    private func randomKey() -> String { RandomWalk.keys.randomElement(using: &random) ?? "a" }

    private func randomStep() -> KeyspaceModel.Step {
        switch Int.random(in: 0..<100, using: &random) {
        case ..<45: .set(String(UInt16.random(in: 0...999, using: &random)))
        case ..<60: .append("+")
        default: .delete
        }
    }

    func compare(_ place: String) {
        let place: Comment = "\(place)"
        #expect(stage.newest() == model.newest.entries.mapValues(\.value), place)
        #expect(stage.keyspace.keyCount == model.durable.entries.count, place)
        #expect(stage.keyspace.revision == model.durableRevision, place)
        #expect(stage.withCore { $0.revisions.newest } == model.newestRevision, place)
        for key in RandomWalk.keys {
            #expect(entry(key, isDurable: false) == model.newest.entries[key], place)
            #expect(entry(key, isDurable: true) == model.durable.entries[key], place)
            #expect(stage.observed(reading: key) == model.observed(reading: key), place)
        }
        #expect(stage.durable() == model.durable.entries.mapValues(\.value), place)
    }

    private func entry(_ key: String, isDurable: Bool) -> KeyspaceModel.Entry? {
        stage.withCore { core in
            guard let record = isDurable ? core.readDurable(key) : core.read(key) else {
                return nil
            }
            return KeyspaceModel.Entry(
                value: record.value?.text ?? "(deleted)",
                revision: record.revision,
                created: record.created,
                version: record.version,
                owner: record.owner,
                writer: core.cause(of: record).uid,
                time: record.time
            )
        }
    }
}
