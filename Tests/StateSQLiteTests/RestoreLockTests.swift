import StateEngine
import StateModel
import StateSQLite
import StateSalvage
import StateTestSupport
import Testing

struct RestoreLockTests {
    /// A backup without rows.
    private let backup: [UInt8] = {
        var writer = BackupWriter()
        let head = [("epoch", "e"), ("revision", "5"), ("since", "0"), ("history", "yes")]
        return BackupFrame.magic + writer.frame(.head, head.map { (name: $0.0, value: $0.1) })
            + writer.end([(name: "compacted", value: "5")])
    }()

    @Test func `a restored store has an owner until it was checked`() throws {
        let directory = try TemporaryDirectory()
        let (file, target) = (directory.path(of: "b"), directory.path(of: "new"))
        try write(backup, to: file)
        var checkCount = 0
        let restore = StoreRestore(files: [file], target: target) { _ in
            let error = #expect(throws: StateError.self) {
                _ = try OwnerLock(path: target + "/lock", for: target)
            }
            #expect(error?.code == .locked)
            checkCount += 1
        }
        let summary = try restore.run()
        #expect(summary.entryCount == 0 && summary.backupRevision == 5)
        #expect(checkCount > 0)
        _ = try OwnerLock(path: target + "/lock", for: target)
    }
}
