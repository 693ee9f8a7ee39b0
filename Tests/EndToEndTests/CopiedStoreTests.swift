import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// A data directory that is copied, restored or wiped is another store, whichever way that was done.
///
/// What a test calls *told* is the newest revision that the daemon answered with before; what comes after a restore has
/// another epoch and revisions that were never told in this one.
struct CopiedStoreTests {
    /// How a life ends.
    enum End: String, CaseIterable {
        case stopped
        case killed
    }

    /// How an older copy comes back, as a person would type it; `$D` is the data directory, `$B` the backup.
    enum Restore: String, CaseIterable {
        case directory = #"rm -rf "$D"; cp -a "$B" "$D""#
        case filesOfTheirOwn = #"rm -f "$D"/*; cp -a "$B"/. "$D""#
        case databaseAlone = #"cp -a "$B"/stated.db "$D"/stated.db; rm -f "$D"/stated.db-*"#
        case intoTheSameFile =
            #"cat "$B"/stated.db > "$D"/stated.db; rm -f "$D"/stated.db-wal "$D"/stated.db-shm"#
        case databaseAndLogIntoTheSameFiles = #"""
            cat "$B"/stated.db > "$D"/stated.db; rm -f "$D"/stated.db-wal "$D"/stated.db-shm
            if test -e "$B"/stated.db-wal; then cat "$B"/stated.db-wal > "$D"/stated.db-wal; fi
            """#
        case renamedOver =
            #"cp "$B"/stated.db "$D"/new; rm -f "$D"/stated.db-wal "$D"/stated.db-shm; mv "$D"/new "$D"/stated.db"#
    }

    /// The directory of a daemon, and where backups go.
    private struct Stage {
        let daemon: Daemon
        var backup: String { daemon.directory.path(of: "backup") }

        init() throws { daemon = try Daemon() }

        /// Epoch and revision, as STATE.STATUS has them.
        func identity() throws -> (epoch: String, revision: Int64) {
            let status = try daemon.connect().status()
            let epoch = try #require(status.first { $0.name == "epoch" }?.text)
            return (epoch, try #require(status.first { $0.name == "revision" }?.number))
        }

        /// Sets so many values; the newest revision told.
        @discardableResult
        func write(_ count: Int, _ value: UInt8) throws -> Int64 {
            let client = try daemon.connect()
            var told: Int64 = 0
            for number in 0..<count {
                told = try client.set([value], for: Key(verified: "key/\(number % 7)")).revision
            }
            return told
        }

        func end(_ end: End) throws {
            switch end {
            case .stopped: try daemon.stop()
            case .killed: daemon.kill()
            }
        }

        func shell(_ script: String) throws {
            let result = try runCommand(
                "/bin/sh",
                ["-e", "-c", script],
                environment: ["D": daemon.dataPath, "B": backup]
            )
            try #require(result.exitCode == 0, "\(result)")
        }
    }

    // MARK: The same store

    @Test(arguments: End.allCases)
    func `a store that nobody touched is the same, however it ended`(end: End) throws {
        let stage = try Stage()
        let before = try stage.identity()
        for _ in 0..<3 {
            let told = try stage.write(20, 1)
            try stage.end(end)
            try stage.daemon.start()
            #expect(try stage.identity() == (before.epoch, told))
        }
        #expect(!stage.daemon.log.contains("a new epoch"))
    }

    @Test(arguments: End.allCases)
    func `a directory that moved is the same store`(end: End) throws {
        let stage = try Stage()
        let told = try stage.write(20, 1)
        let before = try stage.identity()
        try stage.end(end)
        try stage.shell(#"mv "$D" "$B"; mv "$B" "$D""#)
        try stage.daemon.start()
        #expect(try stage.identity() == (before.epoch, told))
    }

    // MARK: Another store

    @Test(arguments: Restore.allCases, End.allCases)
    func `an older copy of a stopped store is another store`(restore: Restore, end: End) throws {
        let stage = try Stage()
        try stage.write(20, 1)
        try stage.daemon.stop()
        try stage.shell(#"cp -a "$D" "$B""#)
        try stage.daemon.start()
        try expectAnother(stage, restore.rawValue, end)
    }

    @Test(arguments: Restore.allCases, End.allCases)
    func `a copy that was made while the daemon ran is another store`(
        restore: Restore,
        end: End
    ) throws {
        let stage = try Stage()
        try stage.write(20, 1)
        try stage.shell(#"cp -a "$D" "$B""#)
        try expectAnother(stage, restore.rawValue, end)
    }

    /// Writes more, ends, restores and starts: nothing is mistaken for what was told.
    private func expectAnother(_ stage: Stage, _ restore: String, _ end: End) throws {
        let before = try stage.identity()
        let told = try stage.write(15, 2)
        try stage.end(end)
        try stage.shell(restore)
        try stage.daemon.start()
        let after = try stage.identity()
        #expect(after.epoch != before.epoch)
        #expect(after.revision > told)
        let said = "\(stage.daemon.dataPath)/stated.db was copied or restored"
        #expect(eventually { stage.daemon.log.contains(said) }, "law: never silent about storage")
        // None, if the values were in the log only and that was not copied.
        let kept = try stage.daemon.connect().entry(for: "key/0")
        #expect(kept?.value != [2])
        #expect(try stage.write(1, 3) > told)
        try expectSet(stage, after: kept)
        // From here on it is the same store again.
        let last = try stage.identity()
        try stage.daemon.restart()
        #expect(try stage.identity() == last)
        try expectSet(stage, after: kept)
    }

    /// Revisions have jumped by 2^32 between its creation and its newest version.
    private func expectSet(_ stage: Stage, after kept: Client.Entry?) throws {
        let entry = try #require(try stage.daemon.connect().entry(for: "key/0"))
        guard let kept else { return #expect(entry.version == 1) }
        #expect(entry.revision - entry.created > Int64(UInt32.max))
        #expect((entry.created, entry.version) == (kept.created, kept.version + 1))
    }

    @Test func `a copy that is put back twice is not mistaken for what it became the first time`()
        throws
    {
        let stage = try Stage()
        try stage.write(20, 1)
        try stage.daemon.stop()
        try stage.shell(#"cp -a "$D" "$B""#)
        try stage.daemon.start()
        for _ in 0..<2 { try expectAnother(stage, Restore.intoTheSameFile.rawValue, .stopped) }
    }

    @Test(arguments: End.allCases)
    func `a store whose log is gone is another store`(end: End) throws {
        let stage = try Stage()
        let before = try stage.identity()
        let told = try stage.write(15, 2)
        stage.daemon.kill()
        try stage.shell(#"rm "$D"/stated.db-wal; rm -f "$D"/stated.db-shm"#)
        try stage.daemon.start()
        let after = try stage.identity()
        #expect(after.epoch != before.epoch)
        #expect(after.revision > told)
        try stage.end(end)
    }

    @Test(arguments: End.allCases)
    func `a file that was moved away, and back after another had its place, is another store`(
        end: End
    ) throws {
        let stage = try Stage()
        try stage.write(20, 1)
        let first = try stage.identity()
        try stage.daemon.stop()
        try stage.shell(#"mkdir "$B"; mv "$D"/stated.db "$B""#)
        try stage.daemon.start()
        let second = try stage.identity()
        #expect(second.epoch != first.epoch)
        #expect(second.revision > first.revision)
        let told = try stage.write(15, 2)
        try stage.end(end)
        try stage.shell(#"rm -f "$D"/stated.db-wal "$D"/stated.db-shm; mv "$B"/stated.db "$D""#)
        try stage.daemon.start()
        let third = try stage.identity()
        #expect(third.epoch != first.epoch && third.epoch != second.epoch)
        #expect(third.revision > told)
    }

    @Test(arguments: End.allCases)
    func `the bytes of the whole directory put back into the same files are another store`(
        end: End
    ) throws {
        let stage = try Stage()
        try stage.write(20, 1)
        try stage.daemon.stop()
        try stage.shell(#"cp -r "$D" "$B""#)
        try stage.daemon.start()
        // Where the file system keeps no attributes, nothing inside the directory could tell.
        let mark = stage.daemon.dataPath + "/stated.db-mark"
        guard hasAttribute("user.stated.generation", mark) else { return }
        try expectAnother(
            stage,
            #"rm -f "$D"/stated.db-wal "$D"/stated.db-shm; for f in "$B"/*; do cat "$f" > "$D/${f##*/}"; done"#,
            end
        )
    }

    @Test(arguments: End.allCases)
    func `a store without its mark is another store`(end: End) throws {
        let stage = try Stage()
        let told = try stage.write(20, 1)
        let before = try stage.identity()
        try stage.end(end)
        try stage.shell(#"rm "$D"/stated.db-mark"#)
        try stage.daemon.start()
        let after = try stage.identity()
        #expect(after.epoch != before.epoch)
        #expect(after.revision > told)
    }

    @Test(arguments: End.allCases)
    func `a mark that somebody cuts to nothing costs no commit and ends no daemon`(
        end: End
    ) throws {
        let stage = try Stage()
        try stage.write(5, 1)
        let before = try stage.identity()
        try stage.shell(#": > "$D"/stated.db-mark"#)
        let told = try stage.write(5, 2)
        try stage.end(end)
        try stage.daemon.start()
        #expect(try stage.daemon.connect().value(for: "key/0") == [2])
        // A clean stop writes it anew; without one nothing tells the store from a restored one.
        let after = try stage.identity()
        #expect((after.epoch == before.epoch) == (end == .stopped))
        #expect(after.revision >= told)
    }

    @Test(arguments: End.allCases)
    func `a wiped directory begins another store`(end: End) throws {
        let stage = try Stage()
        try stage.write(20, 1)
        let before = try stage.identity()
        try stage.end(end)
        try stage.shell(#"rm -rf "$D""#)
        try stage.daemon.start()
        let after = try stage.identity()
        #expect(after.epoch != before.epoch)
        #expect(after.revision == 0)
    }

    @Test func `a copy beside its original is another store, and the original stays what it was`()
        throws
    {
        let stage = try Stage()
        let told = try stage.write(20, 1)
        let before = try stage.identity()
        try stage.daemon.stop()
        let other = try TemporaryDirectory()
        let copied = try runCommand("cp", ["-a", stage.daemon.dataPath, other.path])
        try #require(copied.exitCode == 0)
        try stage.daemon.start()
        let copy = try Daemon(directory: other)
        let status = try copy.connect().status()
        #expect(status.first { $0.name == "epoch" }?.text != before.epoch)
        #expect(status.first { $0.name == "revision" }?.number ?? 0 > told + 1 << 31)
        #expect(try stage.identity() == (before.epoch, told))
    }
}
