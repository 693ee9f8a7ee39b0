import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// What a crash between the steps of a commit leaves, and what the next start makes of it.
struct FileContainerCrashTests {
    /// A copy of what is on disk, made in the moment of a step, as a crash would leave it.
    private final class Crash: Sendable {
        let directory: TemporaryDirectory
        private let source: TemporaryDirectory
        private let step: Int
        private let isTaken = Observed(false)
        let isArmed = Observed(false)

        init(of source: TemporaryDirectory, at step: Int) throws {
            directory = try TemporaryDirectory()
            self.source = source
            self.step = step
        }

        func reach(_ step: Int) {
            guard step == self.step, isArmed.current, !isTaken.current else { return }
            isTaken.update { $0 = true }
            _ = try? runCommand("cp", ["-a", source.path + "/.", directory.path])
        }

        var hasHappened: Bool { isTaken.current }
    }

    /// Writes `before`, then crashes at a step of the commit of `change`.
    private func crash(
        at step: Int,
        _ change: (FileContainerStage) throws -> Void
    ) throws -> TemporaryDirectory {
        let directory = try TemporaryDirectory()
        let crash = try Crash(of: directory, at: step)
        let stage = try FileContainerStage(directory) { crash.reach($0) }
        try stage.keyspace.apply([
            .set("app/a", Array("old".utf8)), .set("app/gone", Array("old".utf8)),
            .set("other", Array("old".utf8)),
        ])
        crash.isArmed.update { $0 = true }
        try change(stage)
        #expect(crash.hasHappened)
        return crash.directory
    }

    private static func change(_ stage: FileContainerStage) throws {
        try stage.keyspace.apply([
            .set("app/a", Array("new".utf8)), .delete("app/gone"),
            .set("app/d/b", Array("new".utf8)), .set("other", Array("new".utf8)),
        ])
    }

    private static let old = ["app/a": "old", "app/gone": "old", "other": "old"]
    private static let new = ["app/a": "new", "app/d/b": "new", "other": "new"]

    @Test(arguments: [(1, old), (2, new), (3, new)])
    func `atomic: a crash at any step leaves all or nothing, in files and entries alike`(
        step: Int,
        expected: [String: String]
    ) throws {
        let directory = try crash(at: step) { try Self.change($0) }
        let stage = try FileContainerStage(directory)
        #expect(stage.values() == expected)
        #expect(try stage.fileValues() == expected.filter { $0.key != "other" })
        #expect(stage.editCount == 0)
        #expect(
            try runCommand("find", [directory.path(of: "d"), "-name", ".stated-*"]).lines
                == []
        )
    }

    @Test func `an edit after a crash counts, unless it is what the file held before`() throws {
        let edited = try crash(at: 2) { try Self.change($0) }
        try edited.shell("echo -n edited > d/a; rm d/gone")
        let stage = try FileContainerStage(edited)
        #expect(stage.values() == ["app/a": "edited", "app/d/b": "new", "other": "new"])
        #expect(try stage.fileValues() == ["app/a": "edited", "app/d/b": "new"])
        #expect(stage.editCount == 1)
        let old = try crash(at: 2) { try Self.change($0) }
        try old.shell("echo -n old > d/a")
        #expect(try FileContainerStage(old).values() == Self.new)
    }

    @Test func `what a crash left of a commit does not count where the next start has other rules`()
        throws
    {
        let moved = try crash(at: 2) { try Self.change($0) }
        let stage = try FileContainerStage(moved, rules: [.init(keys: "app/", directory: "e")])
        #expect(stage.values() == Self.new)
        try moved.shell("test \"$(cat e/a)\" = new; test \"$(cat e/d/b)\" = new; test ! -e e/gone")
        #expect(stage.editCount == 0)
    }

    @Test func `after a clean stop nothing is pending: an old value that is put back is an edit`()
        throws
    {
        let stage = try FileContainerStage()
        try stage.set("app/a", "old")
        try stage.set("app/a", "new")
        stage.close()
        try stage.shell("echo -n old > a")
        let next = try FileContainerStage(stage.directory)
        #expect(next.values() == ["app/a": "old"])
        #expect(next.editCount == 1)
    }

    @Test func `an edit that crashes before it is stored is found by the next start`() throws {
        let directory = try crash(at: 1) { stage in
            try stage.shell("mkdir d; echo -n edited > d/b; echo -n edited > a")
            #expect(stage.adopts("app/a", "edited"))
        }
        let stage = try FileContainerStage(directory)
        let expected = ["app/a": "edited", "app/d/b": "edited", "app/gone": "old", "other": "old"]
        #expect(stage.values() == expected)
        #expect(stage.editCount == 1)
    }
}
