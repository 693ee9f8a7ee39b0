import Glibc
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// Directories that are away as their keys leave them, or as others are to take their place.
struct FileContainerLeftTests {
    private let stage: FileContainerStage

    init() throws {
        stage = try FileContainerStage()
        mkdir(stage.directory.path(of: "e"), 0o755)
    }

    /// Has the keys below `app/` live in another directory, or in none.
    private func exchange(
        to name: String?,
        keys: Pattern = "app/",
        onStep: @escaping @Sendable (Int) -> Void = { _ in }
    ) throws {
        let notices = stage.notices
        let rule = FileRule(keys: keys, directory: name.map { stage.directory.path(of: $0) })
        let notice = { @Sendable (line: String) in notices.update { $0.append(line) } }
        let files = FileContainers([rule], limits: Limits(), notice: notice)
        files?.onStep = onStep
        let rules = KeyRules([], memoryPatterns: [], usages: [], texts: NoTexts()) { _ in
            preconditionFailure("there are no rules")
        }
        try stage.keyspace.exchange(files: files, rules: rules, notice: notice)
    }

    /// A new start on the same data, with the keys below `app/` in a directory; nil for none.
    private func start(_ name: String?) throws -> FileContainerStage {
        stage.close()
        return try FileContainerStage(
            stage.directory,
            rules: [.init(keys: name == nil ? "other/" : "app/", directory: name ?? "f")]
        )
    }

    private func shell(_ line: String) throws { try stage.directory.shell(line) }

    // MARK: Away as its keys leave

    @Test(arguments: ["e", nil])
    func `what a directory that was away still holds is older than what its keys became`(
        next: String?
    ) throws {
        for key in ["app/x", "app/y", "app/gone"] { try stage.set(key, "one") }
        try shell("mv d away")
        try exchange(to: next)
        #expect(stage.notices("stay in \(stage.directory.path(of: "d"))"))
        try stage.set("app/x", "two")
        try shell("mv away d")
        try stage.set("app/y", "two")
        try stage.delete("app/gone")
        try exchange(to: "d")
        let values = ["app/x": "two", "app/y": "two"]
        #expect(stage.values() == values)
        #expect(try stage.fileValues() == values)
        #expect(try start("d").values() == values)
    }

    @Test func `what somebody made of a file in a directory that was away counts`() throws {
        for key in ["app/x", "app/y"] { try stage.set(key, "one") }
        try shell("mv d away")
        try exchange(to: nil)
        try stage.set("app/x", "two")
        try shell("mv away d; printf mine > d/y; printf new > d/z")
        try exchange(to: "d")
        #expect(stage.adopts("app/y", "mine") && stage.adopts("app/z", "new"))
        #expect(stage.values() == ["app/x": "two", "app/y": "mine", "app/z": "new"])
    }

    @Test func `a directory that comes back loses its files at the next start under other rules`()
        throws
    {
        try stage.set("app/x", "one")
        try shell("mv d away")
        try exchange(to: "e")
        try stage.set("app/x", "two")
        let next = try start("e")
        #expect(next.notices("stay in \(stage.directory.path(of: "d"))"))
        next.close()
        try shell("mv away d")
        let last = try start("e")
        #expect(try last.fileValues() == [:])
        #expect(last.values() == ["app/x": "two"])
    }

    @Test func `an empty directory below a mount that is missing holds no files that are removed`()
        throws
    {
        try stage.set("app/x", "one")
        stage.close()
        try shell("mv d away; mkdir d")
        let next = try start(nil)
        try next.set("app/x", "two")
        next.close()
        try shell("rm -r d; mv away d")
        #expect(try start("d").values() == ["app/x": "two"])
    }

    // MARK: Half filled

    @Test(arguments: ["app/", "epoch x/"])
    func `a crash while a directory is filled leaves no files that count later`(keys: String) throws
    {
        let source = stage.directory
        let crash = try TemporaryDirectory()
        let pattern = try Pattern(keys)
        try exchange(to: nil)
        for number in 0..<10 { try stage.set("\(keys)\(number)", "old") }
        try exchange(to: "d", keys: pattern) { step in
            guard step == 0 else { return }
            _ = try? runCommand("/bin/cp", ["-a", source.path + "/.", crash.path])
        }
        stage.close()
        try #require(try crash.fileValues().count == 10)
        // Into the same files, for the store is no copy.
        try shell("rm -r d; cp -a '\(crash.path)'/d '\(crash.path)'/data .")
        let without = try start(nil)
        #expect(try without.fileValues() == [:])
        try without.set("\(keys)0", "new")
        without.close()
        let next = try FileContainerStage(
            source,
            rules: [.init(keys: pattern, directory: "d")]
        )
        #expect(next.values()["\(keys)0"] == "new")
        #expect(try readFile(next.path("0")) == Array("new".utf8))
    }

    // MARK: Neither can be used

    /// Makes the present directory unusable, and another one that cannot take its place.
    private func failToExchange() throws {
        try shell("mkdir -p e/x; touch e/x/keep.me; mv d away")
        #expect(throws: StateError.self) { try exchange(to: "e") }
    }

    @Test func `where neither directory can be used, keys are not written until one can be`()
        throws
    {
        try stage.set("app/x", "one")
        try failToExchange()
        let error = #expect(throws: StateError.self) { try stage.set("app/x", "two") }
        #expect(error?.code == .readOnly)
        #expect(stage.keyspace.files?.report.contains(stage.directory.path(of: "d")) == true)
        try stage.set("other", "1")
        try shell("mv away d")
        #expect(stage.notices("is in use again"))
        try stage.set("app/x", "three")
        #expect(try stage.fileValues() == ["app/x": "three"])
        #expect(stage.editCount == 0)
        #expect(try start("d").values() == ["app/x": "three", "other": "1"])
    }

    @Test func `what was acknowledged as neither directory could be used comes after its file`()
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
        try failToExchange()
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
