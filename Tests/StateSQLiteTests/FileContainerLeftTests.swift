import Glibc
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// Directories that are away as their keys leave them, or as others are to take their place.
struct FileContainerLeftTests {
    private var stage: FileContainerStage

    init() throws {
        stage = try FileContainerStage()
        mkdir(stage.directory.path(of: "e"), 0o755)
    }

    /// A new start on the same data, with the keys below `app/` in a directory; nil for none.
    private mutating func start(
        _ name: String?,
        keys: Pattern = "app/",
        log: Observed<FaultyFiles?>? = nil,
        onStep: (@Sendable (Int) -> Void)? = nil
    ) throws {
        stage.close()
        stage = try FileContainerStage(
            stage.directory,
            rules: [.init(keys: name == nil ? "other/" : keys, directory: name ?? "f")],
            log: log,
            onStep: onStep
        )
    }

    private func shell(_ line: String) throws { try stage.directory.shell(line) }

    // MARK: A start that fails

    @Test mutating func `files that a start has made are gone if the store cannot be written then`()
        throws
    {
        try stage.set("app/x", "one")
        try start("f", keys: "app/y")
        #expect(try stage.fileValues() == [:])
        let log = Observed<FaultyFiles?>(nil)
        let error = #expect(throws: StateError.self) {
            try start("d", log: log) { step in
                // The files are made, and the record of that is next.
                if step == 0 { log.current?.fail(.write, isLasting: true) }
            }
        }
        #expect(log.current?.failedCount ?? 0 > 0, "\(String(describing: error))")
        #expect(try stage.directory.fileValues() == [:])
        // What somebody makes of the directory meanwhile counts.
        try start("f", keys: "app/y")
        try stage.set("app/x", "two")
        try start("d")
        #expect(stage.values() == ["app/x": "two"])
        #expect(try stage.fileValues() == ["app/x": "two"])
    }

    // MARK: Away as its keys leave

    @Test(arguments: ["e", nil])
    mutating func `what a directory that was away still holds is older than what its keys became`(
        next: String?
    ) throws {
        for key in ["app/x", "app/y", "app/gone"] { try stage.set(key, "one") }
        try shell("mv d away")
        try start(next)
        #expect(stage.notices("were not removed from \(stage.directory.path(of: "d"))"))
        try stage.set("app/x", "two")
        try shell("mv away d")
        try stage.set("app/y", "two")
        try stage.delete("app/gone")
        try start("d")
        let values = ["app/x": "two", "app/y": "two"]
        #expect(stage.values() == values)
        #expect(try stage.fileValues() == values)
        try start("d")
        #expect(stage.values() == values)
    }

    @Test mutating func `what somebody made of a file in a directory that was away counts`() throws
    {
        for key in ["app/x", "app/y"] { try stage.set(key, "one") }
        try shell("mv d away")
        try start(nil)
        try stage.set("app/x", "two")
        try shell("mv away d; printf mine > d/y; printf new > d/z")
        try start("d")
        #expect(stage.adopts("app/y", "mine") && stage.adopts("app/z", "new"))
        #expect(stage.values() == ["app/x": "two", "app/y": "mine", "app/z": "new"])
    }

    @Test
    mutating func
        `a directory that comes back loses its files at the next start under other rules`()
        throws
    {
        try stage.set("app/x", "one")
        try shell("mv d away")
        try start("e")
        try stage.set("app/x", "two")
        try start("e")
        #expect(stage.notices("were not removed from \(stage.directory.path(of: "d"))"))
        stage.close()
        try shell("mv away d")
        try start("e")
        #expect(try stage.fileValues() == [:])
        #expect(stage.values() == ["app/x": "two"])
    }

    @Test
    mutating func
        `an empty directory below a mount that is missing holds no files that are removed`()
        throws
    {
        try stage.set("app/x", "one")
        stage.close()
        try shell("mv d away; mkdir d")
        try start(nil)
        try stage.set("app/x", "two")
        stage.close()
        try shell("rm -r d; mv away d")
        try start("d")
        #expect(stage.values() == ["app/x": "two"])
    }

    // MARK: Half filled

    @Test(arguments: ["app/", "epoch x/"])
    mutating func `a crash while a directory is filled leaves no files that count later`(
        keys: String
    ) throws {
        let source = stage.directory
        let crash = try TemporaryDirectory()
        let pattern = try Pattern(keys)
        try start(nil)
        for number in 0..<10 { try stage.set("\(keys)\(number)", "old") }
        try start("d", keys: pattern) { step in
            guard step == 0 else { return }
            _ = try? runCommand("cp", ["-a", source.path + "/.", crash.path])
        }
        stage.close()
        try #require(try crash.fileValues().count == 10)
        // Into the same files, for the store is no copy.
        try shell("rm -r d; cp -a '\(crash.path)'/d '\(crash.path)'/data .")
        try start(nil)
        #expect(try stage.fileValues() == [:])
        try stage.set("\(keys)0", "new")
        try start("d", keys: pattern)
        #expect(stage.values()["\(keys)0"] == "new")
        #expect(try readFile(stage.path("0")) == Array("new".utf8))
    }

    // MARK: Away at a reload

    /// Has a reload come while the directory is away.
    private func reload() throws {
        try shell("mkdir -p e/x; mv d away")
        stage.files.reload(limits: Limits())
        #expect(stage.notices("\(stage.directory.path(of: "d")) cannot be used"))
    }

    @Test mutating func `where a directory cannot be used, keys are not written until it can be`()
        throws
    {
        try stage.set("app/x", "one")
        try reload()
        let error = #expect(throws: StateError.self) { try stage.set("app/x", "two") }
        #expect(error?.code == .readOnly)
        #expect(stage.keyspace.files?.report.contains(stage.directory.path(of: "d")) == true)
        try stage.set("other", "1")
        try shell("mv away d")
        #expect(stage.notices("is in use again"))
        try stage.set("app/x", "three")
        #expect(try stage.fileValues() == ["app/x": "three"])
        #expect(stage.editCount == 0)
        try start("d")
        #expect(stage.values() == ["app/x": "three", "other": "1"])
    }

    @Test func `what was acknowledged as a directory could not be used comes after its file`()
        throws
    {
        try stage.set("app/x", "0")
        let acknowledged = Observed(0)
        let isOver = Observed(false)
        let keyspace = stage.keyspace
        let writer = WorkerThread(name: "writer")
        writer.start {
            var number = 0
            while !isOver.current {
                number += 1
                let value = Array("\(number)".utf8)
                guard (try? keyspace.apply([.set("app/x", value)])) != nil else { continue }
                acknowledged.update { [number] in $0 = number }
            }
        }
        #expect(acknowledged.wait { $0 > 10 })
        try reload()
        isOver.update { $0 = true }
        writer.join()
        try shell("mv away d")
        #expect(stage.notices("is in use again"))
        let expected = ["app/x": "\(acknowledged.current)"]
        #expect(stage.values() == expected)
        #expect(try stage.fileValues() == expected)
        #expect(stage.editCount == 0)
    }
}
