import StateEngine
import StateTestSupport
import Testing

/// Keys that live as long as a connection or a process; the clock is the test's.
struct HolderTests {
    private final class Writer: WritersHolders {
        let held: Holder
        init(_ held: Holder) { self.held = held }
        func holder(_ lifetime: Lifetime) throws(StateError) -> Holder { held }
    }

    private let stage: Stage
    private let passed = Observed<Int64>(0)
    private let first = Holder(connectionOf: 1_000, tag: 5)
    private let second = Holder(connectionOf: 1_000, tag: 6)

    init() throws {
        stage = try Stage()
        stage.withCore { [passed, first, second] core in
            core.entries.clock = { 1_000 + passed.current }
            core.awaitHolders(milliseconds: 5_000)
            _ = core.admit(first)
            _ = core.admit(second)
        }
    }

    private func set(_ key: String, by holder: Holder, _ expiry: Expiry = .with(.connection)) throws
    {
        try stage.withCore { core in
            let cause = core.retainCause(.unknown)
            defer { core.release(cause) }
            var receipt = core.makeReceipt()
            let writer = Writer(holder)
            core.begin(cause, at: 1, by: nil, writer)
            do throws(StateError) {
                try Array(key.utf8).withBorrowed { (key) throws(StateError) in
                    try core.set(key, to: key, expiry: expiry)
                }
            } catch {
                core.rollBack()
                throw error
            }
            core.finish(&receipt)
        }
    }

    private func end(_ holder: Holder) -> Int {
        stage.withCore { core in
            core.endHolder(holder)
            return core.endHolders(at: core.entries.clock(), wallTime: 1)
        }
    }

    private func isPresent(_ key: String) -> Bool { stage.withCore { $0.read(key) != nil } }

    @Test(arguments: [0, 1, 1_000, UInt32.max]) func `a connection is a number of the history`(
        uid: UInt32
    ) throws {
        for tag: UInt32 in [1, 5, .max] {
            let holder = Holder(connectionOf: uid, tag: tag)
            #expect(holder.lifetime == .connection && holder.uid == uid)
            #expect(holder.stored < 0 && holder.stored > -(1 << 53))
            #expect(Holder(stored: holder.stored) == holder)
            let claim = Array(holder.claim.utf8)
            #expect(claim.count == 16)
            #expect(claim.withUnsafeBytes { Holder(claim: $0) } == holder)
        }
    }

    @Test(arguments: [1, 4_711, 1 << 22 - 1]) func `a process is a number of the history`(
        pid: Int32
    ) {
        for tag: UInt64 in [0, 77, .max] {
            let holder = Holder(process: pid, tag: tag)
            #expect(holder.lifetime == .process && holder.pid == pid)
            #expect(holder.stored < 0 && holder.stored > -(1 << 53))
            let claim = Array(holder.claim.utf8)
            #expect(claim.withUnsafeBytes { Holder(claim: $0) } == nil)
        }
        #expect(Holder(process: pid, tag: 1) != Holder(process: pid, tag: 2))
        #expect(Holder(stored: 0) == nil && Holder(stored: nil) == nil)
    }

    @Test func `the keys of a holder end with it, in one commit, and no others`() throws {
        for key in ["a", "b", "c"] { try set(key, by: first) }
        try set("d", by: second)
        try set("e", by: first, .never)
        // Another holder, a time, and nothing take the place of a holder.
        try set("b", by: second)
        try set("c", by: first, .after(60_000))
        let before = stage.withCore { $0.revisions.newest }
        #expect(end(first) == 1)
        #expect(stage.withCore { $0.revisions.newest } == before + 1)
        #expect(!isPresent("a") && isPresent("b") && isPresent("c") && isPresent("d"))
        #expect(end(first) == 0 && end(second) == 2)
        #expect(isPresent("c") && isPresent("e") && stage.faults() == [])
    }

    @Test func `a value that is kept keeps its holder`() throws {
        try set("a", by: first)
        try set("a", by: second, .kept)
        #expect(end(second) == 0 && isPresent("a"))
        #expect(end(first) == 1 && !isPresent("a"))
        #expect(stage.faults() == [])
    }

    @Test func `a key whose holder ended before its set was undone is deleted`() throws {
        try set("a", by: first)
        stage.withCore { core in
            let cause = core.retainCause(.unknown)
            defer { core.release(cause) }
            core.begin(cause, at: 1)
            _ = try? Array("a".utf8).withBorrowed { (key) throws(StateError) in
                try core.set(key, to: key, expiry: .never)
            }
            core.endHolder(first)
            core.rollBack()
        }
        #expect(isPresent("a"))
        // Storage may refuse: a second later it is tried.
        passed.update { $0 += 1_000 }
        #expect(stage.withCore { $0.endHolders(at: $0.entries.clock(), wallTime: 1) } == 1)
        #expect(!isPresent("a") && stage.faults() == [])
    }

    @Test func `a holder has a limit of keys, and its own are replaced beyond it`() throws {
        for number in 0..<Holders.keyLimit { try set("k/\(number)", by: first) }
        #expect(throws: StateError.self) { try set("one/more", by: first) }
        try set("k/0", by: first)
        try set("one/more", by: second)
        #expect(end(first) == Holders.keyLimit && isPresent("one/more"))
        #expect(stage.faults() == [])
    }
}
