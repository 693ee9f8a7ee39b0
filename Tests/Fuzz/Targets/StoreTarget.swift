import CFuzzer
import Glibc
import StateEngine
import StateSQLite
import StateSalvage
import StateTestSupport

/// A small store whose bytes or rows were altered, as a start, `--check` and `--salvage` open it.
///
/// ```
/// 0  1: all is in the log only   2: a start   4: a check   8: a salvage
/// 1  edits, see Edit
/// ```
enum StoreTarget {
    /// Where the stores are, and what they are made of.
    private struct Stage {
        let place: TemporaryDirectory
        let whole: SampleStore
        let logged: SampleStore

        init() throws {
            place = try TemporaryDirectory(in: "/dev/shm")
            whole = try SampleStore(in: place.path(of: "whole"), hasLog: false)
            logged = try SampleStore(in: place.path(of: "logged"), hasLog: true)
        }
    }

    private static let stage = Result { try Stage() }

    static func run(_ bytes: Bytes) throws {
        guard bytes.count > 1 else { return }
        let stage = try stage.get()
        let (place, sample) = (stage.place, bytes[0] & 1 == 0 ? stage.whole : stage.logged)
        let (store, target) = (place.path(of: "store"), place.path(of: "target"))
        var files = sample.files
        var edits: [RowEdit] = []
        var input = bytes.slice(1, bytes.count)
        while let edit = Edit(&input) { edit.apply(to: &files, &edits) }
        func prepare() throws {
            cfuzzer_remove(store)
            mkdir(store, 0o700)
            mkdir(store + "/log", 0o700)
            for file in files { try place.write(file.bytes, to: "store/" + file.name) }
            for edit in edits { edit.apply(to: store) }
        }
        if bytes[0] & 2 != 0 {
            try prepare()
            start(store)
        }
        if bytes[0] & 4 != 0 {
            try prepare()
            try ignoringErrors { _ = try StoreCheck(store: store, report: { _ in }).run() }
        }
        if bytes[0] & 8 != 0 {
            try prepare()
            cfuzzer_remove(target)
            try ignoringErrors {
                _ = try StoreSalvage(store: store, target: target, report: { _ in }).run()
            }
            // What was saved can be used.
            if access(target + "/stated.db", F_OK) == 0 {
                try LocalKeyspace(backing: SQLiteBacking(directory: target)).close()
            }
        }
    }

    /// Loads a store and looks at its history; a store that is refused is refused.
    private static func start(_ store: String) {
        do throws(StateError) {
            _ = try RevisionReservation(path: store + "/memory.revisions")
            let backing = SQLiteBacking(directory: store)
            let keyspace = try LocalKeyspace(backing: backing)
            defer { keyspace.close() }
            let faults = keyspace.withCore { $0.checkInvariants(retainedCauseCount: 0) }
            require(faults.isEmpty, "\(faults)")
            try keyspace.apply([.set("k1", [1])])
        } catch {
            require(!error.message.isEmpty, "an error without a message")
        }
    }

    private static func ignoringErrors(_ body: () throws -> Void) throws {
        do {
            try body()
        } catch is StateError {}
    }
}
