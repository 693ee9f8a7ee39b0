import StateContainers
import StateEngine
import StateTestSupport
import Testing

/// A query in the order of keys with a limit: only what it shows is read.
struct QueryPageTests {
    private let keyspace: LocalKeyspace

    init() throws { keyspace = try LocalKeyspace(backing: MemoryBacking()) }

    /// The entries that decode, one way or the other.
    private static let all = StateQuery("r/", as: Int.self)

    /// What the documentation promises, without any cleverness.
    private func expect(
        _ page: LiveQuery<Int>,
        offset: Int,
        limit: Int,
        in keyspace: any Keyspace
    ) throws {
        let entries = try keyspace.entries("r/", after: nil, limit: .max)
        let shown = entries.dropFirst(offset).prefix(limit)
        let readable = shown.filter { $0.entry.value != none }
        let rows = page.rows
        #expect(rows.map(\.key) == readable.map(\.key))
        #expect(rows.indices.map { rows[$0].key } == rows.map(\.key))
        #expect(rows.map { Array("\($0.value)".utf8) } == readable.map(\.entry.value))
        let (epoch, revisions) = (keyspace.epoch, readable.map(\.entry.revision))
        #expect(rows.map(\.revision) == revisions.map { Revision(epoch: epoch, number: $0) })
        #expect(Set(page.unreadable.keys) == Set(shown.map(\.key)).subtracting(rows.map(\.key)))
        #expect(page.count == entries.count && rows.totalCount == entries.count)
        #expect(rows.offset == offset)
        let numbers = entries.compactMap { Int(String(decoding: $0.entry.value, as: UTF8.self)) }
        #expect(page.sum(of: \.self) == numbers.reduce(0, +))
    }

    private let none = Array("none".utf8)

    /// A commit of some keys, of which some become unreadable or go, one of them twice.
    private func mutations(_ random: inout SplitMix) -> [Mutation] {
        (0..<Int.random(in: 1...4, using: &random)).flatMap { _ -> [Mutation] in
            let key = Key(verified: "r/\(Int.random(in: 0..<40, using: &random))")
            let value = Array("\(Int.random(in: 0..<100, using: &random))".utf8)
            switch Int.random(in: 0..<8, using: &random) {
            case 0...2: return [.delete(key)]
            case 3: return [.set(key, none)]
            case 4: return [.set(key, value), .delete(key)]
            case 5: return [.delete(key), .set(key, value)]
            default: return [.set(key, value)]
            }
        }
    }

    @Test(arguments: [1, 2, 3], [true, false])
    func `a page of the keys shows what the entries say, through random commits`(
        seed: UInt64,
        isHere: Bool
    ) throws {
        let keyspace: any Keyspace = isHere ? self.keyspace : ReplaceableKeyspace(self.keyspace)
        var random = SplitMix(seed: seed)
        for _ in 0..<10 { try keyspace.apply(mutations(&random)) }
        let windows = [(0, 5), (0, 0), (7, 6), (3, 1_000), (30, 20), (100, 2)]
        let pages = try windows.map { offset, limit in
            try keyspace.query(Self.all.offset(offset).limit(limit))
        }
        for _ in 0..<400 {
            try keyspace.apply(mutations(&random))
            // Not after each, so that several commits are shown at once.
            guard random.next() % 3 == 0 else { continue }
            for (page, window) in zip(pages, windows) {
                try expect(page, offset: window.0, limit: window.1, in: keyspace)
            }
        }
    }

    @Test func `a page follows a keyspace that becomes another one`() throws {
        let replaceable = ReplaceableKeyspace(keyspace)
        let page = try replaceable.query(Self.all.offset(2).limit(5))
        var random = SplitMix(seed: 4)
        for _ in 0..<20 {
            for _ in 0..<10 { try replaceable.apply(mutations(&random)) }
            try expect(page, offset: 2, limit: 5, in: replaceable)
            let next = try LocalKeyspace(backing: MemoryBacking())
            for _ in 0..<10 { try next.apply(mutations(&random)) }
            replaceable.become(next)
            try expect(page, offset: 2, limit: 5, in: replaceable)
        }
    }

    @Test func `a page agrees with the query in the same order without a limit`() throws {
        let whole = try keyspace.query(Self.all)
        let page = try keyspace.query(Self.all.limit(8))
        let sections = try keyspace.query(Self.all.limit(8).sectioned(by: \.self))
        for number in 1...50 {
            try keyspace.apply([.set(Key("r/\(number * 7 % 31)"), Array("\(number)".utf8))])
            #expect(Array(page.rows) == Array(whole.rows.prefix(8)))
            #expect(page.count == whole.count && page.sum(of: \.self) == whole.sum(of: \.self))
            #expect(sections.query.count == whole.count)
        }
    }

    @Test func `Atomic: a page shows whole commits, and what 4 threads have written`() throws {
        let page = try keyspace.query(StateQuery("p/", as: Int.self).offset(2).limit(3))
        let (torn, missing) = (Observed(0), Observed(0))
        let observation = page.observe(on: .notifier) { change in
            if Set(change.new.map(\.value)).count > 1 { torn.update { $0 += 1 } }
        }
        let keys = (0..<6).map { Key(verified: "p/\($0)") }
        onThreads(4) { [keyspace] thread in
            for number in 0..<250 {
                let bytes = Array("\(thread * 1_000 + number)".utf8)
                guard let revision = try? keyspace.apply(keys.map { .set($0, bytes) }) else {
                    return missing.update { $0 += 1 }
                }
                let rows = page.rows
                let shown = rows.first?.revision.number ?? 0
                if shown < revision || rows.count != 3 { missing.update { $0 += 1 } }
                if Set(rows.map(\.value)).count > 1 { torn.update { $0 += 1 } }
            }
        }
        #expect(torn.current == 0 && missing.current == 0)
        withExtendedLifetime(observation) {}
    }

    @Test func `a page decodes each value that it shows, once`() throws {
        let decoded = Observed(0)
        let codec = StateCodec<Int> { (value) throws(StateError) in
            Array("\(value)".utf8)
        } decode: { (bytes) throws(StateError) in
            decoded.update { $0 += 1 }
            return Int(String(decoding: bytes ?? [], as: UTF8.self)) ?? 0
        }
        let keys = (0..<1_000).map { Key(verified: "r/\($0 + 1_000)") }
        try keyspace.apply(keys.map { .set($0, Array("1".utf8)) })
        let query = StateQuery("r/", as: Int.self, codec: codec)
        let page = try keyspace.query(query.offset(10).limit(20))
        #expect(page.rows.count == 20 && page.count == 1_000)
        #expect(decoded.current == 20)
        try keyspace.apply([.delete("r/1000"), .set("r/1500", Array("2".utf8))])
        #expect(page.rows.first?.key == "r/1011" && page.count == 999)
        #expect(decoded.current == 21)
    }
}

/// A keyspace whose store may become another one, as that of a daemon does.
private final class ReplaceableKeyspace: Keyspace {
    private let present: StateLock<LocalKeyspace>
    private let watches = StateLock<[ReplaceableWatch]>([])

    init(_ keyspace: LocalKeyspace) { present = StateLock(keyspace) }

    private var keyspace: LocalKeyspace { present.withLock { $0 } }

    func become(_ next: LocalKeyspace) {
        present.withLock { $0 = next }
        for watch in watches.withLock({ $0 }) { watch.follow(next) }
    }

    var epoch: Epoch { keyspace.epoch }

    func submit(
        _ mutations: [Mutation],
        completion: @escaping @Sendable (Result<Int64, StateError>) -> Void
    ) -> Int64? {
        keyspace.submit(mutations, completion: completion)
    }

    func entry(for key: Key) throws(StateError) -> Entry? { keyspace.entry(for: key) }

    func entries(
        _ pattern: Pattern,
        after key: Key?,
        limit: Int
    ) throws(StateError) -> [(
        key: Key, entry: Entry
    )] {
        keyspace.entries(pattern, after: key, limit: limit)
    }

    func watch(_ receive: @escaping @Sendable (KeyspaceEvent) -> Void) -> any KeyspaceWatch {
        let watch = ReplaceableWatch(keyspace, receive)
        watches.withLock { $0.append(watch) }
        return watch
    }
}

private final class ReplaceableWatch: KeyspaceWatch {
    private let receive: @Sendable (KeyspaceEvent) -> Void
    private let present: StateLock<any KeyspaceWatch>
    private let patterns = StateLock<[Pattern]>([])

    init(_ keyspace: LocalKeyspace, _ receive: @escaping @Sendable (KeyspaceEvent) -> Void) {
        self.receive = receive
        present = StateLock(keyspace.watch(receive))
    }

    func follow(_ keyspace: LocalKeyspace) {
        let next = keyspace.watch(receive)
        let last = present.withLock { present in
            defer { present = next }
            return present
        }
        last.cancel()
        next.include(patterns.withLock { $0 })
    }

    func include(_ patterns: [Pattern]) {
        self.patterns.withLock { $0 += patterns }
        present.withLock { $0 }.include(patterns)
    }

    func exclude(_ patterns: [Pattern]) { present.withLock { $0 }.exclude(patterns) }

    func cancel() { present.withLock { $0 }.cancel() }
}
