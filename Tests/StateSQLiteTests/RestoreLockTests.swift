import StateEngine
import StateModel
import StateSQLite
import StateSalvage
import StateTestSupport
import Testing

struct RestoreLockTests {
    /// A backup without rows, of a store that had so many keys.
    private func backup(keyCount: Int) -> [UInt8] {
        var writer = BackupWriter()
        let head = [
            ("epoch", "e"), ("revision", "5"), ("since", "0"), ("history", "yes"),
            ("keys", "\(keyCount)"),
        ]
        return BackupFrame.magic + writer.frame(.head, head.map { (name: $0.0, value: $0.1) })
            + writer.end([(name: "compacted", value: "5")])
    }

    @Test func `a backup that lacks keys is refused by name`() throws {
        let directory = try TemporaryDirectory()
        let (file, target) = (directory.path(of: "b"), directory.path(of: "new"))
        try write(backup(keyCount: 1), to: file)
        let error = #expect(throws: StateError.self) {
            try StoreRestore(files: [file], target: target).run()
        }
        let problem = "\(file): the store had 1 keys at its revision, but 0 are found"
        #expect(error?.code == .corrupt && error?.message == problem)
        #expect(FileIdentity(path: target) == nil)
        let found = #expect(throws: StateError.self) {
            let reader = try BackupReader(path: file, countsKeys: true)
            while try reader.next() != nil {}
        }
        #expect(found?.message == problem)
    }

    @Test func `a restored store has an owner until it was checked`() throws {
        let directory = try TemporaryDirectory()
        let (file, target) = (directory.path(of: "b"), directory.path(of: "new"))
        try write(backup(keyCount: 0), to: file)
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
