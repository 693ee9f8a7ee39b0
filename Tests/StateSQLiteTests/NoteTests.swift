import Glibc
import StateEngine
import StateSQLite
import StateSalvage
import StateTestSupport
import Testing

/// Notes beside the entries: in the same transactions, and no part of the history.
struct NoteTests {
    let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    /// Runs `body` on the keyspace of the store, then ends it as a crash does, or cleanly.
    private func opened<R>(
        crashing: Bool = false,
        _ body: (LocalKeyspace) throws -> R
    ) throws -> R {
        let keyspace = try LocalKeyspace(backing: store.backing())
        let result = Result { try body(keyspace) }
        if crashing {
            // The files as they are now are what is left, in place: the database stays the same file.
            let copy = try TemporaryStore()
            try store.copy(to: copy)
            keyspace.close()
            for name in names(in: store.log) { unlink("\(store.log)/\(name)") }
            try copy.copy(to: store)
        } else {
            keyspace.close()
        }
        return try result.get()
    }

    @Test(arguments: [false, true])
    func `a note and its revision outlive a restart and a crash`(crashing: Bool) throws {
        try opened(crashing: crashing) { keyspace in
            try keyspace.apply([.set("k", [1])])
            #expect(try keyspace.note("handler:0:a", "one\ntwo") == 2)
            #expect(try keyspace.note("handler:0:b", "x") == 3)
            #expect(try keyspace.note("handler:0:a", "three") == 4)
            #expect(try keyspace.note("handler:0:b", nil) == 5)
        }
        try opened { keyspace in
            #expect(keyspace.metadata == ["handler:0:a": "three"])
            #expect(keyspace.keyCount == 1)
            // Revisions never go back, though no row has the last ones.
            #expect(keyspace.revision == 5)
            let next = try keyspace.apply([.set("k", [2])])
            #expect(next == 6)
        }
        #expect(try store.contents().changes.map(\.plain.revision) == [1, 6])
    }

    @Test func `a commit of changes and notes keeps both`() throws {
        try opened(crashing: true) { keyspace in
            // Finished together, they are one batch.
            keyspace.withCore { core in
                let cause = core.retainCause(Cause(uid: 1, gid: 1, pid: 1, command: "test"))
                for index in 0..<20 {
                    var receipt = core.makeReceipt()
                    core.begin(cause, at: 1)
                    if index % 2 == 0 {
                        let key = Array("k\(index)".utf8)
                        try? key.withUnsafeBytes { try core.set($0, to: $0) }
                    }
                    try? core.setMetadata("handler:0:\(index % 3)", to: "\(index)")
                    _ = core.finish(&receipt)
                }
                core.release(cause)
            }
            _ = try keyspace.note("handler:0:last", "x")
        }
        try opened { keyspace in
            #expect(
                keyspace.metadata == [
                    "handler:0:0": "18", "handler:0:1": "19", "handler:0:2": "17",
                    "handler:0:last": "x",
                ]
            )
            #expect(keyspace.revision == 21)
        }
    }

    @Test func `a damaged note is refused by name and found by the check`() throws {
        try opened { _ = try $0.note("handler:0:a", "12") }
        try Stranger(store.database).run("UPDATE meta SET value='13' WHERE name='handler:0:a'")
        let error = #expect(throws: StateError.self) { try store.contents() }
        #expect(error?.code == .corrupt)
        #expect(error?.message.contains("'handler:0:a' in meta does not match") == true)
        var findings: [String] = []
        _ = try StoreCheck(store: store.directory) { findings.append($0) }.run()
        #expect(findings.count == 1)
        #expect(findings.first?.contains("'handler:0:a'") == true)
    }

    @Test func `a row of no known name is still refused`() throws {
        try opened { _ = try $0.note("handler:0:a", "12") }
        try Stranger(store.database).run("UPDATE meta SET name='Handler:0:a' WHERE value='12'")
        #expect(throws: StateError.self) { try store.contents() }
    }

    @Test func `notes go with a copy, and with what is salvaged`() throws {
        // So many that they fill pages above the leaves, too.
        var expected: [String: String] = [:]
        try opened { keyspace in
            for index in 0..<600 {
                expected["handler:0:\(index)"] = String(repeating: "\(index % 10)", count: 500)
            }
            for (name, text) in expected { _ = try keyspace.submitNote(name, text) }
            try keyspace.apply([.set("k", [1])])
        }
        let copy = try TemporaryStore()
        try store.copy(to: copy)
        let keyspace = try LocalKeyspace(backing: copy.backing())
        #expect(keyspace.metadata == expected)
        keyspace.close()
        let salvaged = try TemporaryStore()
        _ = try StoreSalvage(store: store.directory, target: salvaged.directory) { _ in }.run()
        let found = try LocalKeyspace(backing: salvaged.backing())
        #expect(found.metadata == expected)
        #expect(found.keyCount == 1)
        found.close()
    }

    /// So many words that a page of `meta` holds a part only.
}

extension LocalKeyspace {
    fileprivate var metadata: [String: String] {
        withCore { core in
            var metadata: [String: String] = [:]
            var receipt = core.makeReceipt()
            core.forEachMetadataEntry(&receipt) { metadata[$0] = $1 }
            return metadata
        }
    }

    /// Finishes a transaction of one note.
    fileprivate func submitNote(_ name: String, _ text: String?) throws -> Int64 {
        try withCore { (core) throws(StateError) in
            let cause = core.retainCause(Cause(uid: 1, gid: 1, pid: 1, command: "test"))
            var receipt = core.makeReceipt()
            core.begin(cause, at: 1)
            defer { core.release(cause) }
            do throws(StateError) {
                try core.setMetadata(name, to: text)
            } catch {
                core.rollBack()
                throw error
            }
            return core.finish(&receipt)
        }
    }

    /// Writes a note, and waits until it is durable.
    fileprivate func note(_ name: String, _ text: String?) throws -> Int64 {
        let revision = try submitNote(name, text)
        // Its outcome is that of a write behind it which changes nothing but has to wait for it.
        publish()
        try waitUntilSettled(revision)
        return revision
    }

    fileprivate func waitUntilSettled(_ revision: Int64) throws {
        let isSettled = try eventually {
            let (durable, provisional) = withCore {
                ($0.revisions.durable, $0.revisions.provisional)
            }
            if durable < revision, provisional < revision {
                throw StateError(.noSpace, "the commit failed")
            }
            return durable >= revision
        }
        guard isSettled else { throw TestFailure("revision \(revision) is not settled in time") }
    }
}
