import Glibc
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// Files of a settled store that somebody removes or replaces while it is open.
struct SettledFilesTests {
    private let directory: TemporaryDirectory
    private var data: String { directory.path(of: "data") }

    init() throws {
        directory = try TemporaryDirectory()
        mkdir(directory.path(of: "data"), 0o700)
    }

    private func segment() throws -> String {
        let names = names(in: data + "/log").filter { $0.hasSuffix(".log") }
        return "log/" + (try #require(names.min()))
    }

    @Test(arguments: ["stated.db", "a segment", "log"])
    func `never silent about storage: a commit to files without names is not acknowledged`(
        what: String
    ) throws {
        var found: [String] = []
        let backing = SQLiteBacking(directory: data)
        _ = try backing.load { _ in }
        try BuiltBatch([change(1)]).commit(to: backing)
        let name = what == "a segment" ? try segment() : what
        let away = directory.path(of: "away")
        #expect(rename(data + "/" + name, away) == 0)
        let error = #expect(throws: StateError.self) {
            try BuiltBatch([change(2)]).commit(to: backing)
        }
        #expect(error?.isOutcomeUnknown == true)
        #expect(error?.message.contains(name) == true, "\(error?.message ?? "")")
        #expect(throws: StateError.self) { try BuiltBatch([change(3)]).commit(to: backing) }
        #expect(throws: StateError.self) { try backing.reopen(after: 1) { _ in } }
        // Put back: what was in doubt is there.
        #expect(rename(away, data + "/" + name) == 0)
        try backing.reopen(after: 1) { found.append("\($0.revision)") }
        #expect(found == ["2"])
        try BuiltBatch([change(3)]).commit(to: backing)
        backing.close()
        let again = SQLiteBacking(directory: data)
        #expect(try again.load { _ in }.revision == 3)
        again.close()
    }

    @Test func `a store whose database is gone is not begun anew in silence`() throws {
        let backing = SQLiteBacking(directory: data)
        _ = try backing.load { _ in }
        try BuiltBatch([change(1)]).commit(to: backing)
        backing.close()
        for name in names(in: data) where name.hasPrefix("stated.db") { unlink(data + "/" + name) }
        for name in names(in: data + "/log") { unlink(data + "/log/" + name) }
        let error = #expect(throws: StateError.self) {
            try SQLiteBacking(directory: data).load { _ in }
        }
        #expect(error?.code == .corrupt)
    }

    private func change(_ revision: Int64) -> BuiltBatch.Change {
        BuiltBatch.Change(
            revision: revision,
            ordinal: 0,
            key: Array("k/\(revision)".utf8),
            value: [1],
            created: revision,
            version: 1,
            time: revision,
            cause: Array("tester".utf8),
            previousRevision: 0
        )
    }
}
