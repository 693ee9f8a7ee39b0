import StateEngine
import StateTestSupport
import Testing

@Suite struct KeyspaceCoreTests {
    private let stage: Stage

    init() throws { stage = try Stage() }

    // MARK: Fields

    @Test func `an entry keeps who created it, and counts how often it was set since`() throws {
        try stage.transact(by: 1, at: 10) { (core) throws(StateError) in try core.set("k", "a") }
        try stage.transact(by: 2, at: 20) { (core) throws(StateError) in try core.set("k", "b") }
        try stage.commit()
        let entry = try #require(stage.keyspace.entry(for: "k"))
        #expect(entry.value == Array("b".utf8))
        #expect((entry.created, entry.revision, entry.version) == (1, 2, 2))
        #expect((entry.owner, entry.cause.uid, entry.time) == (1, 2, 20))
        #expect(entry.cause.client == "writer 2")
    }

    @Test func `an entry that is deleted and set again is a new one of its new owner`() throws {
        try stage.transact(by: 1) { (core) throws(StateError) in try core.set("k", "a") }
        try stage.delete("k")
        try stage.transact(by: 2) { (core) throws(StateError) in try core.set("k", "b") }
        try stage.commit()
        let entry = try #require(stage.keyspace.entry(for: "k"))
        #expect((entry.created, entry.revision, entry.version, entry.owner) == (3, 3, 1, 2))
        #expect(stage.faults() == [])
    }

    @Test func `an empty value is a value`() throws {
        try stage.set("k", "")
        try stage.commit()
        #expect(stage.keyspace.entry(for: "k")?.value == [])
        #expect(stage.keyspace.keyCount == 1)
    }

    // MARK: One change per key and commit

    @Test func `several sets of a key in one transaction are one change, the last`() throws {
        try stage.transact { (core) throws(StateError) in
            try core.set("k", "a")
            try core.set("other", "x")
            try core.set("k", "b")
            try core.append("k", "c")
        }
        let changes = try stage.publish()
        #expect(changes.map(\.key) == [Array("k".utf8), Array("other".utf8)])
        #expect(changes.map(\.ordinal) == [0, 1])
        #expect(changes[0].value == Array("bc".utf8))
        try stage.succeed()
        #expect(stage.faults() == [])
    }

    @Test func `a set and a delete of a new key are no commit`() throws {
        let revision = try stage.transact { (core) throws(StateError) in
            try core.set("k", "a")
            #expect(try core.delete("k"))
        }
        #expect(revision == 0)
        #expect(stage.withCore { $0.revisions.newest } == 0)
        #expect(!stage.keyspace.publish())
        #expect(stage.newest() == [:])
        #expect(try stage.set("other", "x") == 1)
        #expect(stage.faults() == [])
    }

    @Test func `a change taken back leaves no hole among the others`() throws {
        try stage.transact { (core) throws(StateError) in
            try core.set("a", "1")
            try core.set("b", "2")
            try core.delete("a")
            try core.set("c", "3")
        }
        let changes = try stage.publish()
        #expect(changes.map(\.ordinal) == [0, 1])
        #expect(changes.map { String(decoding: $0.key, as: UTF8.self) } == ["b", "c"])
    }

    @Test func `a delete and a set of an entry in one transaction make a new entry`() throws {
        try stage.transact(by: 1) { (core) throws(StateError) in try core.set("k", "a") }
        try stage.commit()
        try stage.transact(by: 2) { (core) throws(StateError) in
            try core.delete("k")
            try core.set("k", "b")
        }
        let change = try #require(try stage.publish().first)
        #expect((change.created, change.version, change.owner) == (2, 1, 2))
        #expect((change.previousRevision, change.previousOrdinal) == (1, 0))
        try stage.succeed()
        #expect(stage.keyspace.keyCount == 1)
        #expect(stage.faults() == [])
    }

    // MARK: Limits and rolling back

    @Test func `a value over the limit is refused and the transaction goes on`() throws {
        var limits = Limits()
        limits.valueByteCount = 4
        let stage = try Stage(limits: limits)
        try stage.transact { (core) throws(StateError) in
            try core.set("k", "1234")
            #expect(throws: StateError.self) { try core.set("k", "12345") }
            #expect(throws: StateError.self) { try core.append("k", "5") }
        }
        #expect(stage.newest() == ["k": "1234"])
        #expect(stage.faults() == [])
    }

    @Test func `a transaction over its limit of bytes or changes is refused`() throws {
        var limits = Limits()
        limits.transactionByteCount = 10
        limits.transactionChangeCount = 3
        let stage = try Stage(limits: limits)
        let bytes = #expect(throws: StateError.self) {
            try stage.transact { (core) throws(StateError) in
                try core.set("a", "1234")
                try core.set("b", "12345")
            }
        }
        #expect(bytes?.code == .tooBig)
        let changes = #expect(throws: StateError.self) {
            try stage.transact { (core) throws(StateError) in
                for key in ["a", "b", "c", "d"] { try core.set(key, "") }
            }
        }
        #expect(changes?.code == .tooBig)
        #expect(stage.newest() == [:])
        #expect(stage.withCore { $0.revisions.newest } == 0)
        #expect(stage.faults() == [])
    }

    @Test func `rolling back takes everything back, newest first`() throws {
        try stage.set("kept", "1")
        try stage.set("gone", "1")
        try stage.delete("gone")
        try stage.commit()
        #expect(throws: StateError.self) {
            try stage.transact { (core) throws(StateError) in
                try core.set("kept", "2")
                try core.delete("kept")
                try core.set("gone", "2")
                try core.set("new", "1")
                try core.set("new", "2")
                throw StateError(.err, "no more")
            }
        }
        #expect(stage.newest() == ["kept": "1"])
        #expect(stage.withCore { $0.pending.byteCount } == 0)
        #expect(stage.faults() == [])
    }

    // MARK: Conditions

    @Test func `a condition holds or names the current revision`() throws {
        try stage.set("k", "a")
        try stage.transact { (core) throws(StateError) in
            try core.check(.isPresent, "k")
            try core.check(.revision(1), "k")
            try core.check(.revision(0), "absent")
            try core.check(.isAbsent, "absent")
            try Array("a".utf8).withBorrowed { (value) throws(StateError) in
                try core.check(.value(value), "k")
            }
        }
        #expect(refusal(.isAbsent, "k") == "CONFLICT key 'k' is at revision 1")
        #expect(refusal(.revision(0), "k") == "CONFLICT key 'k' is at revision 1")
        #expect(refusal(.isPresent, "absent") == "CONFLICT key 'absent' is absent (revision 0)")
        #expect(refusal(.revision(1), "absent") == "CONFLICT key 'absent' is absent (revision 0)")
        #expect(refusal(.value(Bytes(start: nil, count: 0)), "k") != nil)
        #expect(refusal(.value(Bytes(start: nil, count: 0)), "absent") != nil)
        try stage.delete("k")
        #expect(refusal(.revision(1), "k") == "CONFLICT key 'k' is absent (revision 0)")
        #expect(refusal(.revision(0), "k") == nil)
    }

    private func refusal(_ condition: Condition, _ key: String) -> String? {
        do {
            try stage.transact { (core) throws(StateError) in try core.check(condition, key) }
            return nil
        } catch {
            return error.description
        }
    }
}
