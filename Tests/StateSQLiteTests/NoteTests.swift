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
            // The files as they are now are what is left.
            let copy = try TemporaryStore()
            try store.copy(to: copy)
            keyspace.close()
            try replaceContents(with: copy)
        } else {
            keyspace.close()
        }
        return try result.get()
    }

    /// In place: the database stays the same file.
    private func replaceContents(with copy: TemporaryStore) throws {
        for name in names(in: store.directory) where name.hasPrefix("stated.db") {
            if !names(in: copy.directory).contains(name) { unlink("\(store.directory)/\(name)") }
        }
        for name in names(in: copy.directory) where name.hasPrefix("stated.db") {
            let bytes = try readFile("\(copy.directory)/\(name)")
            let path = "\(store.directory)/\(name)"
            // A crash leaves no mark of the clean stop that came after the copy.
            if path == store.mark { try store.putMark(bytes) } else { try write(bytes, to: path) }
        }
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

    @Test(arguments: [Faults.Operation.write, .sync])
    func `a commit that fails undoes its notes`(operation: Faults.Operation) throws {
        let faults = try Faults(below: store.directory)
        let keyspace = try LocalKeyspace(backing: store.backing())
        #expect(try keyspace.note("handler:0:a", "before") == 1)
        faults.fail(operation, of: .log)
        #expect(throws: StateError.self) { try keyspace.note("handler:0:a", "after") }
        faults.heal()
        // Undone, or adopted where storage has it after all: never a mixture of both.
        var revision: Int64?
        _ = eventually {
            revision = try? keyspace.apply([.set("k", [1])])
            return revision != nil
        }
        #expect(try #require(revision) >= 3)
        let metadata = keyspace.metadata
        #expect(["before", "after"].contains(metadata["handler:0:a"]))
        keyspace.close()
        try opened { keyspace in
            #expect(keyspace.metadata == metadata)
            #expect(keyspace.revision == revision)
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
    @Test(arguments: [2_000, 3_000, 20_000, 300_000])
    func `long notes go with what is salvaged`(byteCount: Int) throws {
        var expected: [String: String] = [:]
        try opened { keyspace in
            for index in 0..<5 {
                let line = "pattern \(index)/\n"
                let text = String(repeating: line, count: byteCount / line.utf8.count)
                expected["handler:0:\(index)"] = text
                _ = try keyspace.note("handler:0:\(index)", text)
            }
        }
        let salvaged = try TemporaryStore()
        let (lines, summary) = try store.salvage(to: salvaged)
        #expect(lines == [] && summary.isWhole)
        let found = try LocalKeyspace(backing: salvaged.backing())
        #expect(found.metadata == expected)
        found.close()
    }

    /// A byte of its words, of the page that they go on on, or of its name.
    @Test(arguments: ["a word", "the last", "handler:0:b"])
    func `a note that is damaged is lost by name`(place: String) throws {
        let text = "a word \(String(repeating: "and another ", count: 700)) the last"
        try opened { keyspace in
            for name in ["a", "c"] { _ = try keyspace.note("handler:0:\(name)", "12") }
            _ = try keyspace.note("handler:0:b", text)
            try keyspace.apply([.set("k", [1])])
        }
        var bytes = try readFile(store.database)
        let index = try #require(
            bytes.indices.last { bytes[$0...].starts(with: Array(place.utf8)) }
        )
        bytes[index + 1] ^= 1
        try write(bytes, to: store.database)
        #expect(throws: StateError.self) { try store.contents() }
        let salvaged = try TemporaryStore()
        let (lines, summary) = try store.salvage(to: salvaged)
        #expect(!summary.isWhole && summary.hasAllRows && summary.lostMetadataCount == 1)
        let named = place.hasPrefix("handler") ? "'h`ndler:0:b'" : "'handler:0:b'"
        #expect(lines.count == 1 && lines[0].hasPrefix("lost: "), "\(lines)")
        #expect(lines.first?.contains("\(named)") == true, "\(lines)")
        let found = try LocalKeyspace(backing: salvaged.backing())
        #expect(found.metadata == ["handler:0:a": "12", "handler:0:c": "12"])
        #expect(found.keyCount == 1)
        found.close()
    }

    @Test func `a page of notes that is gone is said to be`() throws {
        try opened { keyspace in
            for index in 0..<200 {
                let text = String(repeating: "\(index % 10)", count: 500)
                _ = try keyspace.submitNote("handler:0:\(index)", text)
            }
            try keyspace.apply([.set("k", [1])])
        }
        let rows = try Stranger(store.database).run(
            "SELECT pageno FROM dbstat WHERE name='meta' AND pagetype='leaf' ORDER BY path"
        )
        let page = try #require(rows[rows.count / 2][0].flatMap { Int($0) })
        var bytes = try readFile(store.database)
        for index in (page - 1) * pageByteCount..<page * pageByteCount { bytes[index] = 0 }
        try write(bytes, to: store.database)
        let salvaged = try TemporaryStore()
        let (lines, summary) = try store.salvage(to: salvaged)
        #expect(!summary.isWhole && summary.lostRowCount == 0)
        let line = "page \(page) of meta cannot be read: the metadata there is lost"
        #expect(lines.contains(line), "\(lines)")
        let found = try LocalKeyspace(backing: salvaged.backing())
        #expect((150..<200).contains(found.metadata.count))
        found.close()
    }

    @Test func `a removed note stays so if the store is reopened after a failed piece`() throws {
        let faults = try Faults(below: store.directory)
        let keyspace = try LocalKeyspace(backing: store.backing())
        for value in 1...3 as ClosedRange<UInt8> { try keyspace.apply([.set("k", [value])]) }
        _ = try keyspace.note("handler:0:a", "before")
        let revision = try keyspace.submitNote("handler:0:a", nil)
        faults.fail(.write, of: .log)
        #expect(throws: StateError.self) { try keyspace.compact(to: 3) }
        try #require(faults.failedCount == 1)
        #expect(keyspace.metadata == [:])
        keyspace.publish()
        try keyspace.waitUntilSettled(revision)
        #expect(keyspace.metadata == [:])
        keyspace.close()
        try opened { #expect($0.metadata == [:]) }
    }

    /// Compaction leaves nothing in doubt that was told, and so nothing that is under way.
    @Test func `a note under way is kept where the store is opened again after compaction failed`()
        throws
    {
        let faults = try Faults(below: store.directory)
        let keyspace = try LocalKeyspace(backing: store.backing())
        for value in 1...3 as ClosedRange<UInt8> { try keyspace.apply([.set("k", [value])]) }
        for name in ["a", "b"] { _ = try keyspace.note("handler:0:\(name)", "before") }
        // Not handed to the commit thread before the store is open again.
        _ = try keyspace.submitNote("handler:0:a", "after")
        _ = try keyspace.submitNote("handler:0:b", nil)
        let revision = try keyspace.submitNote("handler:0:c", "new")
        faults.fail(.write, of: .log)
        #expect(throws: StateError.self) { try keyspace.compact(to: 3) }
        try #require(faults.failedCount == 1)
        keyspace.publish()
        try keyspace.waitUntilSettled(revision)
        let expected = ["handler:0:a": "after", "handler:0:c": "new"]
        #expect(keyspace.metadata == expected)
        keyspace.close()
        try opened { #expect($0.metadata == expected) }
    }
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
