import Glibc
import StateEngine
import StateTestSupport
import Testing

/// What others do to the files of a directory that is open.
struct FileBackingEditTests {
    let stage: FileStage

    init() throws {
        let directory = try TemporaryDirectory()
        try directory.write("one\n", to: "k")
        stage = try FileStage(directory, valueByteCount: 4_096)
    }

    @Test(arguments: [
        "sed -i s/one/two/ k", "echo two > new.tmp; mv new.tmp k", "echo two > k",
        "rm k; echo two > k", "printf two > k; printf '\\n' >> k",
        "printf 'two\\n' | tee k > /dev/null",
        "echo two > .k.swp; mv .k.swp k",
        "mkdir d; mv k d; rmdir d 2> /dev/null || mv d/k k; echo two > k",
    ])
    func `an edit is a commit whose cause is file`(line: String) throws {
        try stage.shell(line)
        #expect(stage.adopts("k", "two\n"))
        #expect(try stage.value("k") == "two\n")
        #expect(try stage.file("k") == "two\n")
    }

    @Test func `a file that is removed is a delete`() throws {
        try stage.shell("rm k")
        #expect(stage.adopts("k", nil))
        #expect(try stage.value("k") == nil)
        #expect(stage.keyspace.keyCount == 0)
    }

    @Test func `an edit keeps its mode when the value changes again`() throws {
        chmod(stage.path("k"), 0o600)
        try stage.shell("sed -i s/one/two/ k")
        #expect(stage.adopts("k", "two\n"))
        try stage.set("k", "three")
        #expect(stage.mode("k") == 0o600)
        #expect(try stage.file("k") == "three")
    }

    @Test func `an empty file is an empty value`() throws {
        try stage.shell(": > k")
        #expect(stage.adopts("k", ""))
        #expect(try stage.value("k") == "")
    }

    @Test func `directories that appear, move and go are followed`() throws {
        try stage.shell("mkdir -p a/b; echo 1 > a/b/c; echo 2 > a/d")
        #expect(stage.adopts("a/b/c", "1\n") && stage.adopts("a/d", "2\n"))
        try stage.shell("mv a z")
        #expect(stage.adopts("z/b/c", "1\n") && stage.adopts("a/b/c", nil))
        try stage.shell("echo 3 > z/b/c")
        #expect(stage.adopts("z/b/c", "3\n"))
        try stage.shell("rm -r z")
        #expect(stage.adopts("z/b/c", nil) && stage.adopts("z/d", nil))
        #expect(stage.values() == ["k": "one\n"])
    }

    @Test func `a directory takes the place of a file, as a checkout does it`() throws {
        try stage.shell("rm k; mkdir k; echo 1 > k/below")
        #expect(stage.adopts("k/below", "1\n"))
        #expect(stage.values() == ["k/below": "1\n"])
        try stage.shell("rm -r k; echo 2 > k")
        #expect(stage.adopts("k", "2\n"))
        #expect(stage.values() == ["k": "2\n"])
    }

    @Test(arguments: [
        "rm k; mkdir k", "rm k; mkfifo k", "ln -sf /etc/passwd k", "head -c 5000 /dev/zero > k",
    ])
    func `what is no value is reported, the entry stays and nothing is overwritten`(
        line: String
    ) throws {
        try stage.shell(line)
        #expect(stage.reports("k"))
        #expect(try stage.value("k") == "one\n")
        #expect(stage.backing.unreadable.map(\.path) == ["'k'"])
        let error = try #require(throws: StateError.self) { try stage.set("k", "mine") }
        #expect(error.message.contains("'k'"))
        #expect(throws: StateError.self) { try stage.delete("k") }
        #expect(throws: StateError.self) { try stage.set("k/below", "mine") }
        try stage.set("other", "goes on")
        try stage.shell("rm -r k; echo two > k")
        #expect(stage.adopts("k", "two\n"))
        #expect(stage.backing.unreadable.isEmpty)
        try stage.set("k", "mine")
        #expect(try stage.file("k") == "mine")
    }

    @Test func `what is no value at the start is reported and not overwritten`() throws {
        let directory = try TemporaryDirectory()
        #expect(mkfifo(directory.path(of: "pipe"), 0o600) == 0)
        let other = try FileStage(directory)
        #expect(other.backing.unreadable.map(\.path) == ["'pipe'"])
        #expect(throws: StateError.self) { try other.set("pipe", "x") }
    }

    @Test func `a key is not written through a link that leaves the directory`() throws {
        let outside = try TemporaryDirectory()
        try stage.shell("ln -s \(outside.path) out")
        #expect(throws: StateError.self) { try stage.set("out/x", "1") }
        #expect(throws: SystemFailure.self) { try readFile(outside.path(of: "x")) }
        try stage.set("fine", "1")
    }

    @Test func `a directory in the place of a new key refuses its writer alone`() throws {
        try stage.shell("mkdir -p dir/.keep")
        let answers = Observed<[String: Bool]>([:])
        for key in ["dir", "x", "y"] {
            stage.keyspace.submit([.set(try Key(key), [49])]) { result in
                answers.update { $0[key] = (try? result.get()) != nil }
            }
        }
        #expect(answers.wait { $0.count == 3 })
        #expect(answers.current == ["dir": false, "x": true, "y": true])
    }

    @Test func `an edit that a write meets comes before it, and the write wins`() throws {
        for round in 0..<10 {
            try stage.shell("echo edit\(round) > k")
            try stage.set("k", "mine\(round)")
            #expect(try stage.file("k") == "mine\(round)")
            #expect(stage.adopts("k", "edit\(round)\n"))
        }
        #expect(
            stage.history("k") == (0..<10).flatMap { ["file: edit\($0)\n", "mine\($0)"] }
        )
    }

    @Test func `a condition on the revision before the edit fails`() throws {
        let revision = try stage.set("k", "mine")
        try stage.shell("echo edit > k")
        let error = try #require(throws: StateError.self) {
            try stage.set("k", "blind", ifRevision: revision)
        }
        #expect(error.code == .conflict)
        #expect(try stage.file("k") == "edit\n")
        #expect(try stage.value("k") == "edit\n")
    }

    @Test func `a delete that meets an edit deletes it, after it was told`() throws {
        try stage.shell("echo edit > k")
        try stage.delete("k")
        #expect(stage.history("k") == ["file: edit\n", "nil"])
        #expect(try stage.names() == [])
    }

    @Test func `what was submitted on an interrupted commit keeps its order and its conditions`()
        throws
    {
        try stage.shell("echo edit > k")
        let answers = Observed<[Result<Int64, StateError>]>([])
        let first = stage.keyspace.submit([.set("k", [49])]) { r in answers.update { $0.append(r) }
        }
        stage.keyspace.submit([.set("k", [50], ifRevision: first)]) { r in
            answers.update { $0.append(r) }
        }
        stage.keyspace.submit([.set("j", [51])]) { r in answers.update { $0.append(r) } }
        #expect(answers.wait { $0.count == 3 })
        #expect(answers.current.allSatisfy { (try? $0.get()) != nil })
        #expect(stage.history("k") == ["file: edit\n", "1", "2"])
        #expect(try stage.file("k") + stage.file("j") == "23")
    }

    @Test func `our own writes are no edits`() throws {
        for number in 0..<20 { try stage.set("k", "\(number)") }
        try stage.shell("echo edit > other")
        #expect(stage.adopts("other", "edit\n"))
        #expect(stage.commitCount == 21)
        #expect(!stage.history("k").contains { $0.hasPrefix("file") })
    }

    @Test func `convergent: files and entries agree once writers and editors rest`() throws {
        let directory = stage.directory.path
        let editor = try RunningCommand(
            "/bin/sh",
            [
                "-c",
                "cd \(directory); i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo edit$i > .t; mv .t k$((i%3)); done",
            ]
            .map { Array($0.utf8) }
        )
        for number in 0..<60 { try stage.set("k\(number % 3)", "mine\(number)") }
        #expect(try editor.finish().exitCode == 0)
        try stage.shell("echo end > marker")
        #expect(stage.adopts("marker", "end\n"))
        for key in ["k0", "k1", "k2"] { #expect(try stage.value(key) == stage.file(key)) }
    }
}
