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
        case filesOfTheirOwn = #"rm -rf "$D"/*; cp -a "$B"/. "$D""#
        case databaseAlone =
            #"rm -rf "$D"/log "$D"/stated.db-*; cp -a "$B"/stated.db "$D"/stated.db"#
        case renamedOver =
            #"rm -rf "$D"/log "$D"/stated.db-*; cp "$B"/stated.db "$D"/new; mv "$D"/new "$D"/stated.db"#
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

    @Test(arguments: [Restore.directory, .filesOfTheirOwn], End.allCases)
    func `a copy that was made while the daemon ran is another store`(
        restore: Restore,
        end: End
    ) throws {
        let stage = try Stage()
        try stage.write(20, 1)
        try stage.shell(#"cp -a "$D" "$B""#)
        try expectAnother(stage, restore.rawValue, end)
    }

    @Test func `a copy of the whole directory has the history, too`() throws {
        let stage = try Stage()
        let told = try stage.write(20, 1)
        try stage.write(20, 2)
        try stage.daemon.stop()
        try stage.shell(#"cp -a "$D" "$B"; rm -rf "$D"; mv "$B" "$D""#)
        try stage.daemon.start()
        let client = try stage.daemon.connect()
        #expect(try client.history(of: "key/0", limit: 100).count == 6)
        #expect(try client.entry(for: "key/0", at: told)?.value == [1])
        #expect(try client.set([3], for: "key/0").revision > told + 1 << 32)
        #expect(try client.history(of: "key/0", limit: 100).count == 7)
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
        var epochs: Set<String> = [try stage.identity().epoch]
        for number in 1...3 {
            try stage.daemon.stop()
            try stage.shell(Restore.directory.rawValue)
            try stage.daemon.start()
            #expect(epochs.insert(try stage.identity().epoch).inserted)
            #expect(try stage.daemon.connect().value(for: "key/0") == [1])
            try stage.write(10 * number, 2)
        }
    }

    @Test func `a store whose log is gone after a clean stop is another store`() throws {
        let stage = try Stage()
        let told = try stage.write(15, 2)
        let before = try stage.identity()
        try stage.daemon.stop()
        try stage.shell(#"rm -r "$D"/log"#)
        try stage.daemon.start()
        let after = try stage.identity()
        #expect(after.epoch != before.epoch && after.revision > told)
        #expect(try stage.daemon.connect().value(for: "key/0") == [2])
    }

    // MARK: Refused

    /// The error of a start; what is in the directory stays as it is.
    private func expectRefusal(_ stage: Stage, _ words: String...) throws {
        let arguments = ["--socket", stage.daemon.directory.path(of: "s2")]
        let start = try runCommand(
            builtProgram("stated"),
            arguments + ["--data", stage.daemon.dataPath]
        )
        #expect(start.exitCode == 5, "\(start)")
        for word in words { #expect(start.errorText.contains(word), "\(start)") }
    }

    @Test func `a store whose log is gone after a kill is refused until that is put back`() throws {
        let stage = try Stage()
        let told = try stage.write(15, 2)
        let before = try stage.identity()
        stage.daemon.kill()
        try stage.shell(#"mv "$D"/log "$B""#)
        try expectRefusal(stage, "the log of \(stage.daemon.dataPath)/stated.db is missing")
        try stage.shell(#"rm -rf "$D"/log; mv "$B" "$D"/log"#)
        try stage.daemon.start()
        #expect(try stage.identity() == (before.epoch, told))
    }

    @Test(arguments: End.allCases)
    func `a database of an earlier life beside the log of today is refused, and the reverse`(
        end: End
    ) throws {
        let stage = try Stage()
        try stage.write(20, 1)
        try stage.daemon.stop()
        try stage.shell(#"cp -a "$D" "$B""#)
        try stage.daemon.start()
        let told = try stage.write(15, 2)
        try stage.end(end)
        try stage.daemon.start()
        let before = try stage.identity()
        try stage.end(end)
        try stage.shell(#"cp -a "$D" "$D"-today"#)
        let data = stage.daemon.dataPath
        try stage.shell(#"rm -f "$D"/stated.db-*; cat "$B"/stated.db > "$D"/stated.db"#)
        try expectRefusal(stage, "\(data)/stated.db and \(data)/log are of different times")
        try stage.shell(
            #"""
            cat "$D"-today/stated.db > "$D"/stated.db
            if test -e "$D"-today/stated.db-wal; then cat "$D"-today/stated.db-wal > "$D"/stated.db-wal; fi
            for f in "$D"/log/*; do rm "$f"; done; cp -a "$B"/log/. "$D"/log
            """#
        )
        try expectRefusal(stage, "\(data)/log")
        try stage.shell(#"for f in "$D"/log/*; do rm "$f"; done; cp -a "$D"-today/log/. "$D"/log"#)
        try stage.daemon.start()
        #expect(try stage.identity() == (before.epoch, told))
    }

    @Test func `a database of a moment ago loses nothing: the log has what came since`() throws {
        let stage = try Stage()
        try stage.write(20, 1)
        try stage.shell(#"cp -a "$D" "$B""#)
        let before = try stage.identity()
        let told = try stage.write(15, 2)
        stage.daemon.kill()
        try stage.shell(#"rm -f "$D"/stated.db-*; cat "$B"/stated.db > "$D"/stated.db"#)
        try stage.shell(
            #"if test -e "$B"/stated.db-wal; then cp "$B"/stated.db-wal "$D"/stated.db-wal; fi"#
        )
        try stage.daemon.start()
        #expect(try stage.identity() == (before.epoch, told))
        #expect(try stage.daemon.connect().value(for: "key/0") == [2])
    }

    @Test(arguments: End.allCases)
    func `a database that was moved away is missed until it is back`(end: End) throws {
        let stage = try Stage()
        let told = try stage.write(20, 1)
        let before = try stage.identity()
        try stage.end(end)
        try stage.shell(#"mkdir "$B"; mv "$D"/stated.db* "$B""#)
        try expectRefusal(
            stage,
            "\(stage.daemon.dataPath)/stated.db is missing, but its log is there"
        )
        try stage.shell(#"mv "$B"/stated.db* "$D""#)
        try stage.daemon.start()
        #expect(try stage.identity() == (before.epoch, told))
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
