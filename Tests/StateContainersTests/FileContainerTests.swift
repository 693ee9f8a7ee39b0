import StateContainers
import StateTestSupport
import Testing

/// Containers whose values are files that others edit.
struct FileContainerTests {
    private let directory: TemporaryDirectory
    private let files: StateDirectory

    init() throws {
        directory = try TemporaryDirectory()
        files = try StateDirectory(path: directory.path)
    }

    private func shell(_ line: String) throws {
        let result = try runCommand("/bin/sh", ["-ec", "cd '\(directory.path)'; \(line)"])
        try #require(result.exitCode == 0, "\(result)")
    }

    /// Notes its changes and who made them.
    private final class Level: PersistentState<Int>, @unchecked Sendable {
        // Under its own lock.
        let seen = Observed<[(value: Int, writer: String)]>([])

        override func didModify(_ change: StateChange<Int>) {
            super.didModify(change)
            seen.update { $0.append((change.new, change.cause.command)) }
        }
    }

    @Test(arguments: ["sed -i s/5/7/ level", "echo 7 > .x; mv .x level", "printf 7 > level"])
    func `an edit of the file arrives in the container`(line: String) throws {
        let level = try Level(5, key: "level", in: files.keyspace)
        try level.modify(5)
        try shell(line)
        #expect(level.seen.wait { $0.last?.value == 7 })
        #expect(level.seen.current.last?.writer == "file")
        #expect(level.value == 7)
    }

    @Test func `increments are all there though commits are interrupted by edits of another file`()
        throws
    {
        let count = try PersistentState(0, key: "count", in: files.keyspace)
        let other = try PersistentState(0, key: "other", in: files.keyspace)
        let editor = try RunningCommand(
            "/bin/sh",
            [
                "-c",
                "cd \(directory.path); i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo $i > .x; mv .x other; done",
            ]
            .map { Array($0.utf8) }
        )
        onThreads(4) { _ in
            for _ in 0..<25 {
                do {
                    try count.modify { $0 += 1 }
                    try other.modify { $0 += 100 }
                } catch {
                    Issue.record(error)
                }
            }
        }
        #expect(try editor.finish().exitCode == 0)
        #expect(count.value == 100)
        #expect(String(decoding: try readFile(directory.path(of: "count")), as: UTF8.self) == "100")
    }
}
