import Glibc
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// Keys that live in files beside the history of all keys.
struct FileContainerTests {
    @Test func `keys in files and others are one commit, and history goes on`() throws {
        let stage = try FileContainerStage()
        let first = try stage.keyspace.apply([
            .set("app/a", Array("1".utf8)), .set("plain", Array("1".utf8)),
        ])
        #expect(try stage.fileValues() == ["app/a": "1"])
        try stage.shell("echo -n 2 > a")
        #expect(stage.adopts("app/a", "2"))
        let entry = try #require(stage.keyspace.entry(for: "app/a"))
        #expect(entry.revision == first + 1 && entry.created == first && entry.version == 2)
        #expect(entry.cause == .file(uid: geteuid(), gid: getegid()))
        try stage.delete("app/a")
        #expect(try stage.fileValues() == [:])
        #expect(stage.keyspace.revision == first + 2)
    }

    @Test func `many edits at once are one commit, each difference told once`() throws {
        let stage = try FileContainerStage()
        try stage.set("app/same", "same")
        // A directory that is moved there is there at once, however slow the machine is.
        try stage.shell(
            """
            mkdir ../made; for i in 1 2 3 4 5 6 7 8 9; do echo -n $i > ../made/$i; done
            mv ../made many; touch same
            """
        )
        #expect(stage.adopts("app/many/9", "9"))
        #expect(stage.editCount == 1)
        #expect(stage.changeCount("app/same") == 1)
        try stage.shell("cd many; rm 1 2 3; echo -n 4 > 4; echo -n new > 5")
        #expect(stage.adopts("app/many/3", nil))
        #expect(stage.hears("app/many/5", "new"))
        #expect(stage.changeCount("app/many/4") == 1 && stage.changeCount("app/many/5") == 2)
    }

    @Test(arguments: [
        ("app/x~", "editors"), ("app/x.lock", "editors"), ("app/d/b/c", "below key 'app/d/b'"),
        ("app/d", "is below key"), ("app/" + String(repeating: "x", count: 256), "256 bytes"),
    ])
    func `a key that no file can have is refused`(key: String, reason: String) throws {
        let stage = try FileContainerStage()
        try stage.set("app/d/b", "1")
        let before = stage.values()
        let error = #expect(throws: StateError.self) { try stage.set(key, "1") }
        #expect(error?.code == .rejected && error?.message.contains(reason) ?? false)
        #expect(stage.values() == before)
        try stage.set("other/d/b", "1")
        try stage.set("other/d", "1")
    }

    @Test(arguments: [
        "app/a//b", "app//a", "app/.hidden", "app/100%", "app/..", "app/é", "app/a b", "app/%41",
    ])
    func `names are one to one both ways`(key: String) throws {
        let stage = try FileContainerStage()
        try stage.set(key, "1")
        stage.close()
        let path = try #require(
            try runCommand(
                "find",
                [stage.path(""), "-type", "f", "-not", "-path", "*/.stated/*"]
            )
            .lines.first
        )
        _ = try runCommand("/bin/sh", ["-c", "echo -n 2 > \"$0\"", path])
        let next = try FileContainerStage(stage.directory)
        #expect(next.values() == [key: "2"])
    }

    @Test func `a transaction that makes two keys of one path is refused whole`() throws {
        let stage = try FileContainerStage()
        #expect(throws: StateError.self) {
            try stage.keyspace.apply([
                .set("app/a", Array("1".utf8)), .set("app/a/b", Array("1".utf8)),
            ])
        }
        #expect(stage.values() == [:])
        try stage.set("app/a", "1")
        try stage.keyspace.apply([.delete("app/a"), .set("app/a/b", Array("1".utf8))])
        #expect(try stage.fileValues() == ["app/a/b": "1"])
        try stage.keyspace.apply([.delete("app/a/b"), .set("app/a", Array("2".utf8))])
        #expect(try stage.fileValues() == ["app/a": "2"])
    }

    @Test func `a more specific rule keeps its keys out of the files, one for a key has one file`()
        throws
    {
        let stage = try FileContainerStage(rules: [
            .init(keys: "app/", directory: "d"), .init(keys: "app/cache/", directory: nil),
            .init(keys: "host/name", directory: "e"),
        ])
        try stage.set("app/cache/x", "1")
        try stage.set("app/x", "1")
        try stage.set("host/name", "1")
        try stage.set("host/other", "1")
        #expect(try stage.fileValues() == ["app/x": "1"])
        #expect(try readFile(stage.directory.path(of: "e/name")) == Array("1".utf8))
        try stage.shell(
            "mkdir cache; echo -n 2 > cache/x; echo -n 2 > ../e/other; echo -n 2 > ../e/name"
        )
        #expect(stage.adopts("host/name", "2"))
        #expect(stage.notices("d/cache/x is ignored"))
        #expect(stage.values()["app/cache/x"] == "1" && stage.values()["host/other"] == "1")
        #expect(stage.files.refused.map(\.path) == [stage.path("cache/x")])
    }

    @Test func `what is no value is listed and left, and a write to its key is refused`() throws {
        var limits = Limits()
        limits.valueByteCount = 100
        let stage = try FileContainerStage(limits: limits)
        try stage.set("app/a", "1")
        try stage.shell(
            "rm a; ln -s /etc/passwd a; mkfifo pipe; head -c 101 /dev/zero > large; echo > 'a%zz'"
        )
        #expect(stage.notices("d/a is ignored"))
        #expect(stage.notices("d/pipe is ignored"))
        #expect(stage.notices("101 bytes"))
        #expect(stage.notices("a%zz is ignored"))
        #expect(stage.values() == ["app/a": "1"])
        for key in ["app/a", "app/pipe", "app/large"] {
            #expect(throws: StateError.self) { try stage.set(key, "2") }
        }
        #expect(
            Set(stage.files.refused.map(\.path))
                == Set(["a", "pipe", "large", "a%zz"].map(stage.path))
        )
        try stage.shell("rm a pipe large 'a%zz'")
        #expect(stage.adopts("app/a", nil))
        #expect(eventually { stage.files.refused.isEmpty })
        try stage.set("app/a", "2")
        #expect(try stage.fileValues() == ["app/a": "2"])
    }

    @Test func `names beyond the limit are not looked at, until there are fewer`() throws {
        var limits = Limits()
        limits.fileCount = 20
        let directory = try TemporaryDirectory()
        let stage = try FileContainerStage(directory, limits: limits)
        for number in 0..<15 { try stage.set("app/k\(number)", "1") }
        stage.close()
        try directory.shell("cd d; rm k3; mkdir -p s/t; cd s/t; touch .1 .2 .3 .4 .5 .6")
        let next = try FileContainerStage(directory, limits: limits)
        #expect(next.notices("it has more than 20 names"))
        #expect(next.files.refused.map(\.path) == [directory.path(of: "d")])
        #expect(next.values().count == 15)
        let error = #expect(throws: StateError.self) { try next.set("app/k1", "2") }
        #expect(error?.message.contains("limits.files") ?? false)
        try directory.shell("rm -r d/s")
        #expect(eventually { next.files.refused.isEmpty })
        #expect(eventually { next.values().count == 14 })
        try next.set("app/k1", "2")
    }

    /// The inodes of the directories that this process watches, of any test.
    private func watchedInodes() throws -> Set<String> {
        // proc_pid_fdinfo(5): `inotify wd:1 ino:7ef82a sdev:800001 …`.
        let lines = try runCommand("grep", ["-rhs", "^inotify", "/proc/\(getpid())/fdinfo"]).lines
        return Set(
            lines.compactMap { line in
                line.split(separator: " ").first { $0.hasPrefix("ino:") }
                    .flatMap { UInt64($0.dropFirst(4), radix: 16) }.map { "\($0)" }
            }
        )
    }

    @Test
    func `bounded: a start looks for directories to watch no further than names are looked at`()
        throws
    {
        var limits = Limits()
        limits.fileCount = 20
        let directory = try TemporaryDirectory()
        try directory.shell("mkdir d; cd d; for n in $(seq 100); do mkdir -p $n/in; done")
        let stage = try FileContainerStage(directory, limits: limits)
        #expect(stage.notices("it has more than 20 names"))
        let inodes = Set(
            try runCommand("find", [directory.path(of: "d"), "-printf", "%i\n"]).lines
        )
        #expect(inodes.count == 201)
        let count = try withExtendedLifetime(stage) {
            try watchedInodes().intersection(inodes).count
        }
        #expect((1...21).contains(count), "\(count)")
    }

    @Test func `more than a transaction may hold is taken over bit by bit, at the start and later`()
        throws
    {
        var limits = Limits()
        limits.transactionByteCount = 1_000
        let directory = try TemporaryDirectory()
        let fill = "for i in 1 2 3 4 5 6 7 8 9; do head -c 400 /dev/zero > "
        try directory.shell("mkdir d; cd d; \(fill) a$i; done")
        let stage = try FileContainerStage(directory, limits: limits)
        #expect(eventually { stage.values().count == 9 })
        // No more than three files at once.
        #expect(stage.editCount >= 3)
        try stage.shell("\(fill) b$i; done; rm a1")
        #expect(eventually { stage.values().count == 17 && stage.values()["app/a1"] == nil })
        #expect(try stage.fileValues() == stage.values())
    }

    @Test func `directories that overlap are refused, also by way of a link`() throws {
        let directory = try TemporaryDirectory()
        try directory.shell("mkdir -p d/sub; ln -s d/sub link")
        for second in ["d/sub", "link", "d/../d", "d"] {
            let error = #expect(throws: StateError.self) {
                try FileContainerStage(
                    directory,
                    rules: [
                        .init(keys: "app/", directory: "d"), .init(keys: "b/", directory: second),
                    ]
                )
            }
            #expect(
                error?.message.contains("overlap") ?? false,
                "\(second): \(String(describing: error))"
            )
        }
    }

    @Test func `one process owns a directory, and who else may write it is refused`() throws {
        let stage = try FileContainerStage()
        let other = try LocalKeyspace(
            backing: SQLiteBacking(directory: stage.directory.path(of: "other"))
        )
        defer { other.close() }
        let rule = FileRule(keys: "app/", directory: stage.directory.path(of: "d"))
        let files = FileContainers([rule], limits: Limits(), notice: { _ in })
        let error = #expect(throws: StateError.self) { try other.attach(files) }
        #expect(error?.code == .locked)
        #expect(error?.message.contains("process \(getpid())") ?? false)
        let open = try TemporaryDirectory()
        try open.shell("mkdir d; chmod 777 d")
        let refusal = #expect(throws: StateError.self) { try FileContainerStage(open) }
        #expect(refusal?.message.contains("others may write") ?? false)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a directory away"))
    func `a key whose file cannot be written has no other key's commit fail`() throws {
        let stage = try FileContainerStage()
        try stage.set("app/sub/bad", "1")
        #expect(chown(stage.path("sub"), 4_242, 4_242) == 0)
        let answers = Observed<[Result<Int64, StateError>]>([])
        for key in ["app/good", "app/sub/bad", "app/too", "other"] {
            stage.keyspace.submit([.set(try Key(key), [50])]) { result in
                answers.update { $0.append(result) }
            }
        }
        #expect(answers.wait { $0.count == 4 })
        for case .failure(let error) in answers.current {
            // Its own, where the directory was looked at before.
            #expect(error.message.contains("'app/sub/bad'"))
        }
        #expect(answers.current.count { (try? $0.get()) == nil } <= 1)
        #expect(stage.values()["app/good"] == "2" && stage.values()["other"] == "2")
        #expect(try readFile(stage.path("good")) + readFile(stage.path("too")) == [50, 50])
        #expect(try readFile(stage.path("sub/bad")) == [49])
        #expect(stage.notices("d/sub"))
        let error = #expect(throws: StateError.self) { try stage.set("app/sub/bad", "3") }
        #expect(error?.code == .readOnly && error?.message.contains("others may change") ?? false)
        // What was acknowledged is in its file once that can be written.
        #expect(chown(stage.path("sub"), geteuid(), getegid()) == 0)
        let value = stage.values()["app/sub/bad"]
        #expect(try eventually { try stage.fileValues()["app/sub/bad"] == value })
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a directory away"))
    func `a file that cannot take its place keeps no other of the commit from its own`() throws {
        let directory = try TemporaryDirectory()
        let isArmed = Observed(false)
        let stage = try FileContainerStage(directory) { step in
            guard step == 2, isArmed.current else { return }
            isArmed.update { $0 = false }
            chown(directory.path(of: "d/sub"), 4_242, 4_242)
        }
        try stage.set("app/sub/bad", "1")
        isArmed.update { $0 = true }
        try stage.keyspace.apply([
            .set("app/good", [50]), .set("app/sub/bad", [50]), .set("app/too", [50]),
        ])
        #expect(try readFile(stage.path("good")) + readFile(stage.path("too")) == [50, 50])
        #expect(try readFile(stage.path("sub/bad")) == [49])
        try stage.set("app/good", "3")
        #expect(throws: StateError.self) { try stage.set("app/sub/bad", "3") }
        #expect(chown(stage.path("sub"), geteuid(), getegid()) == 0)
        #expect(try eventually { try stage.fileValues()["app/sub/bad"] == "2" })
        #expect(stage.editCount == 0)
    }

    @Test func `an edit in the moment of a write comes after it`() throws {
        let directory = try TemporaryDirectory()
        let isArmed = Observed(false)
        let stage = try FileContainerStage(directory) { step in
            guard step == 2, isArmed.current else { return }
            isArmed.update { $0 = false }
            _ = try? runCommand(
                "/bin/sh",
                ["-c", "echo -n edited > '\(directory.path(of: "d/a"))'"]
            )
        }
        try stage.set("app/a", "old")
        isArmed.update { $0 = true }
        try stage.set("app/a", "new")
        #expect(stage.adopts("app/a", "edited"))
        #expect(try stage.fileValues() == ["app/a": "edited"])
        #expect(stage.values() == ["app/a": "edited"])
        #expect(stage.changeCount("app/a") == 3)
    }
}
