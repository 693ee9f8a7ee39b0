import CSQLite
import Glibc
import StateEngine
import StateLog
import StateSQLite
import StateTestSupport

/// A disk for one store, of which a copy is made as a power failure would leave it, again and again, while the
/// store goes on.
///
/// What changes is in values that have locks, and the rest stays: the proof of `@unchecked Sendable`.
final class CuttableDisk: @unchecked Sendable {
    struct Cut {
        /// The call for the log before which the power failed.
        let place: Int
        /// What is left of the database.
        let directory: String
        /// What is left of the log.
        let log: SimulatedFiles
    }

    private let directory: TemporaryDirectory
    private let faults: Faults
    private let log: SimulatedFiles
    private let taken = Observed<[Cut]>([])
    private let problems = Observed<[String]>([])
    /// The files of the log.
    let files: FaultyFiles

    private var data: String { directory.path(of: "data") }

    init(seed: UInt64) throws {
        directory = try TemporaryDirectory()
        mkdir(directory.path(of: "data"), 0o700)
        faults = try Faults(below: directory.path(of: "data"))
        log = SimulatedFiles(sectorByteCount: seed % 2 == 0 ? 512 : 4_096, seed: seed)
        files = FaultyFiles(log)
    }

    /// Its store; nothing is opened yet.
    func backing() -> SQLiteBacking { StoredHistory.backing(data, files) }

    /// The cuts that were taken.
    var cuts: [Cut] { taken.current }
    /// What was wrong with taking them.
    var findings: [String] { problems.current }

    /// Takes so many from now on, each at most `gap` calls after the one before.
    func cutPower(_ count: Int, eachWithin gap: Int, seed: UInt64) {
        let random = Observed(SplitMix(seed: seed))
        let next = Observed(files.callCount)
        func plan() { next.update { $0 += random.update { Int.random(in: 1...gap, using: &$0) } } }
        plan()
        files.onCall { [self] place in
            guard place >= next.current, taken.current.count < count else { return }
            plan()
            do {
                let cut = try cutPower(at: place, seed: random.update { $0.next() })
                taken.update { $0.append(cut) }
            } catch {
                problems.update { $0.append("a cut: \(error)") }
            }
        }
    }

    /// No call for the log goes on meanwhile.
    private func cutPower(at place: Int, seed: UInt64) throws -> Cut {
        let left = log.restarted(keepsCache: false)
        let target = directory.path(of: "cut-\(place)")
        try faults.cutPower(at: faults.place + 1, leaving: target, seed: seed)
        // Any operation of SQLite below the directory takes the cut, before it is done.
        var other: OpaquePointer?
        sqlite3_open(data + "/other.db", &other)
        sqlite3_exec(other, "CREATE TABLE other(a)", nil, nil, nil)
        sqlite3_close(other)
        unlink(data + "/other.db")
        return Cut(place: place, directory: target, log: left)
    }

    /// Everything that ever was in the store, which has stopped.
    func history() throws -> StoredHistory { try StoredHistory(data, log) }

    /// What a start finds after a cut: in the same files, because a copy would be another store.
    func left(by cut: Cut) throws -> StoredHistory {
        for name in ["stated.db", "stated.db-wal", "stated.db-shm"] {
            let (source, target) = (cut.directory + "/" + name, data + "/" + name)
            if name != "stated.db-shm", access(source, F_OK) == 0 {
                try CuttableDisk.copyBytes(of: source, into: target)
            } else {
                unlink(target)
            }
        }
        return try StoredHistory(data, cut.log)
    }

    private static func copyBytes(of path: String, into other: String) throws {
        let bytes = try readFile(path)
        let descriptor = open(other, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        defer { close(descriptor) }
        guard descriptor >= 0, write(descriptor, bytes, bytes.count) == bytes.count else {
            throw SystemFailure(call: "write", errno)
        }
    }
}
