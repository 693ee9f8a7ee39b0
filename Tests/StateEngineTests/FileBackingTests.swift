import Glibc
import StateEngine
import StateTestSupport
import Testing

/// Values as files of a directory.
struct FileBackingTests {
    @Test func `a value is the file as it is, and is there after a start`() throws {
        let directory = try TemporaryDirectory()
        do {
            let stage = try FileStage(directory)
            try stage.set("audio/volume", "0.5")
            try stage.set("audio/.name", "")
            try stage.set("note", "line\nline\n")
            #expect(try stage.file("audio/volume") == "0.5")
            #expect(try stage.names() == ["audio", "audio/%2Ename", "audio/volume", "note"])
            #expect(try stage.leftovers() == [])
        }
        let again = try FileStage(directory)
        #expect(
            again.values() == ["audio/volume": "0.5", "audio/.name": "", "note": "line\nline\n"]
        )
        let entry = try #require(again.keyspace.entry(for: "audio/volume"))
        #expect(entry.revision == 1 && entry.version == 1 && entry.cause.command == "file")
        #expect(entry.owner == geteuid())
    }

    @Test func `each start is another epoch, and revisions rise in it`() throws {
        let directory = try TemporaryDirectory()
        let first: Epoch
        do {
            let stage = try FileStage(directory)
            first = stage.keyspace.epoch
            #expect(try stage.set("a", "1") < stage.set("a", "2"))
        }
        let again = try FileStage(directory)
        #expect(again.keyspace.epoch != first)
        #expect(again.keyspace.revision == 1)
        #expect(try again.set("a", "3") > 1)
    }

    @Test func `reading never creates a file`() throws {
        let stage = try FileStage()
        #expect(try stage.value("absent") == nil)
        #expect(try stage.value("absent/too") == nil)
        #expect(try stage.keyspace.apply([.check(Key("absent"), revision: 0)]) == 0)
        #expect(try stage.names() == [])
    }

    @Test func `a delete removes the file, and the directories that it leaves empty`() throws {
        let stage = try FileStage()
        try stage.set("a/b/c", "1")
        try stage.set("a/d", "2")
        try stage.delete("a/b/c")
        #expect(try stage.names() == ["a", "a/d"])
        try stage.delete("a/d")
        #expect(try stage.names() == [])
        #expect(try stage.leftovers() == [])
    }

    @Test(arguments: [0o600, 0o640, 0o444, 0o7755] as [mode_t])
    func `a file keeps its mode, but not what would have it run as its owner`(mode: mode_t) throws {
        let directory = try TemporaryDirectory()
        chmod(try directory.write("old", to: "secret"), mode)
        let stage = try FileStage(directory)
        try stage.set("secret", "new")
        #expect(try stage.file("secret") == "new")
        #expect(stage.mode("secret") == mode & 0o777)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give files away"))
    func `a file keeps its owner`() throws {
        let directory = try TemporaryDirectory()
        try #require(chown(try directory.write("old", to: "k"), 4_242, 4_343) == 0)
        let stage = try FileStage(directory)
        try stage.set("k", "new")
        var status = stat()
        stat(stage.path("k"), &status)
        #expect(status.st_uid == 4_242 && status.st_gid == 4_343)
        #expect(stage.keyspace.entry(for: "k")?.owner == 4_242)
    }

    @Test func `a new file is for its user alone, a new directory as the one that it is in`() throws
    {
        let stage = try FileStage()
        chmod(stage.directory.path, 0o750)
        try stage.set("a/b", "1")
        #expect(stage.mode("a") == 0o750)
        #expect(stage.mode("a/b") == 0o600)
    }

    @Test func `a second owner is refused and told who has it`() throws {
        let stage = try FileStage()
        let error = try #require(throws: StateError.self) {
            try LocalKeyspace(backing: FileBacking(directory: stage.directory.path))
        }
        #expect(error.code == .locked)
        #expect(error.message.contains("process \(getpid())"))
    }

    @Test func `a directory that others may write is refused unless it is shared`() throws {
        let directory = try TemporaryDirectory()
        chmod(directory.path, 0o777)
        let error = try #require(throws: StateError.self) {
            try LocalKeyspace(backing: FileBacking(directory: directory.path))
        }
        #expect(error.code == .storage && error.message.contains("777"))
        let shared = FileBacking(directory: directory.path, isShared: true)
        try LocalKeyspace(backing: shared).close()
    }

    @Test(arguments: ["ln -s .. .stated", "mkdir -m 777 .stated; ln -s ../../lock .stated/lock"])
    func `a journal that others could write is refused, and no link of theirs followed`(
        line: String
    ) throws {
        let directory = try TemporaryDirectory()
        try directory.write("kept", to: "lock")
        let made = try runCommand(
            "/bin/sh",
            ["-ec", "cd '\(directory.path)'; mkdir -m 777 d; cd d; \(line)"]
        )
        try #require(made.exitCode == 0)
        let shared = FileBacking(directory: directory.path(of: "d"), isShared: true)
        let error = #expect(throws: StateError.self) { try LocalKeyspace(backing: shared) }
        #expect(error?.message.contains("'.stated'") ?? false)
        #expect(try readFile(directory.path(of: "lock")) == Array("kept".utf8))
    }

    @Test func `a key that the file system cannot hold is refused alone`() throws {
        let stage = try FileStage()
        let long = String(repeating: "x", count: 256)
        let answers = Observed<[Result<Int64, StateError>]>([])
        for key in ["good", long, "also good"] {
            stage.keyspace.submit([.set(try Key(key), [1])]) { result in
                answers.update { $0.append(result) }
            }
        }
        #expect(answers.wait { $0.count == 3 })
        #expect(answers.current.filter { (try? $0.get()) == nil }.count == 1)
        #expect(try stage.names() == ["also good", "good"])
    }

    @Test(arguments: [("a", "a/b"), ("a/b", "a"), ("a/b", "a/b/c/d"), ("a//b", "a")])
    func `a key beside one below it is rejected`(first: String, second: String) throws {
        let stage = try FileStage()
        try stage.set(first, "1")
        let error = try #require(throws: StateError.self) { try stage.set(second, "2") }
        #expect(error.code == .rejected)
        #expect(error.message.contains("'\(first)'") && error.message.contains("'\(second)'"))
        #expect(stage.values() == [first: "1"])
        try stage.set("ab", "3")
    }

    @Test func `one transaction makes a directory of a file, and a file of a directory`() throws {
        let stage = try FileStage()
        try stage.set("a", "1")
        try stage.keyspace.apply([.delete("a"), .set("a/b", [50]), .set("a/c/d", [51])])
        #expect(try stage.names() == ["a", "a/b", "a/c", "a/c/d"])
        try stage.keyspace.apply([.delete("a/b"), .delete("a/c/d"), .set("a", [52])])
        #expect(try stage.names() == ["a"])
        #expect(try stage.file("a") == "4")
        #expect(try stage.leftovers() == [])
    }

    @Test func `what a crash left of new files is removed, other hidden files stay`() throws {
        let directory = try TemporaryDirectory()
        var status = stat()
        try #require(stat(directory.path, &status) == 0)
        let own = ".stated-\(String(status.st_ino, radix: 36))-"
        let others = [
            ".stated-1z-7", ".stated-notes", own + "7", own + "1z-", own + "1z-7-8", own + "1z-x",
            ".gitignore", "notes~", "index.lock",
        ]
        for name in others + [own + "1z-7", "k"] { try directory.write("x", to: name) }
        try #require(mkdir(directory.path(of: own + "1z-8"), 0o700) == 0)
        let stage = try FileStage(directory)
        #expect(stage.values() == ["k": "x"])
        #expect(access(directory.path(of: own + "1z-7"), F_OK) != 0)
        #expect(access(directory.path(of: own + "1z-8"), F_OK) == 0)
        for name in others { #expect(try stage.file(name) == "x", "\(name)") }
    }

    @Test(arguments: Seed.each(2))
    func `files and entries agree after random transactions`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let directory = try TemporaryDirectory()
        let keys = ["a", "a/b", "a/b/c", "a/d", "e", "f/g", "f//h", ".i", "j%"]
        do {
            let stage = try FileStage(directory)
            for number in 0..<150 {
                let mutations = try (0..<Int.random(in: 1...4, using: &random)).map {
                    _ -> Mutation in
                    let key = try Key(keys.randomElement(using: &random) ?? "a")
                    return random.chance(40) ? .delete(key) : .set(key, Array("\(number)".utf8))
                }
                do { try stage.keyspace.apply(mutations) } catch {
                    #expect(error.code == .rejected)
                }
            }
            try stage.set("last", "one")
            let values = stage.values()
            for (key, value) in values {
                #expect(try stage.file(FileName.path(of: Key(key)).text) == value)
            }
            #expect(try stage.leftovers() == [])
        }
        let stage = try FileStage(directory)
        #expect(stage.values()["last"] == "one")
        #expect(
            stage.values().count
                == (try runCommand(
                    "find",
                    [directory.path, "-type", "f", "-not", "-path", "*/.*"]
                ).lines.count)
        )
    }
}

extension FilePath {
    var text: String { String(decoding: bytes, as: UTF8.self) }
}
