import Glibc
import StateEngine
import StateTestSupport
import Testing

/// What the end of a process leaves in its directory, and what the kernel was asked for before.
struct FileBackingCrashTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func writer(_ arguments: String...) throws -> RunningCommand {
        try RunningCommand(
            builtProgram("filewriter"),
            ([directory.path] + arguments).map { Array($0.utf8) }
        )
    }

    @Test(arguments: [["k"], ["a/1", "b/2", "3"]])
    func `SIGKILL at any moment leaves the old or the new value whole`(keys: [String]) throws {
        var random = SplitMix(seed: Seed.base)
        for round in 0..<Extent.named("STATED_TEST_FILE_CRASHES", short: 20) {
            let program = try RunningCommand(
                builtProgram("filewriter"),
                ([directory.path, "loop", "40000"] + keys).map { Array($0.utf8) }
            )
            #expect(try program.nextLine() == "open")
            var told = 0
            for _ in 0..<Int.random(in: 1...5, using: &random) {
                told = Int(try program.nextLine()) ?? 0
            }
            var pause = timespec(tv_sec: 0, tv_nsec: Int.random(in: 0..<3_000_000, using: &random))
            nanosleep(&pause, nil)
            program.signal(SIGKILL)
            let rest = try program.finish().lines
            told = rest.last.flatMap { Int($0) } ?? told
            let numbers = try found(keys)
            #expect(Set(numbers).count == 1, "round \(round): \(numbers)")
            #expect(numbers[0] == told || numbers[0] == told + 1, "round \(round)")
        }
    }

    /// The number that each key's lines have after a start.
    private func found(_ keys: [String]) throws -> [Int] {
        let stage = try FileStage(directory)
        #expect(try stage.leftovers() == [])
        return try keys.map { key in
            let lines = try #require(try stage.value(key)).split(separator: "\n")
            #expect(Set(lines).count == 1)
            #expect(lines.count * (lines[0].count + 1) >= 40_000)
            return try #require(Int(lines[0]))
        }
    }

    static let old = ["a": "old", "gone": "old"]
    static let new = ["a": "new", "d/b": "new"]

    /// The calls where a transaction is cut, at each of its kind, and what is there after a start: from the first rename on
    /// the journal has it all.
    static let cuts: [(call: String, outcomes: Set<[String: String]>)] = [
        ("renameat2", [new]), ("fsync", [old, new]), ("unlinkat", [old, new]),
        ("fchmod", [old, new]),
    ]

    @Test(
        .enabled(if: isInstalled("strace"), "strace is not installed"),
        arguments: cuts
    )
    func `atomic: a transaction over several files is whole at each system call`(
        call: String,
        expected: Set<[String: String]>
    ) throws {
        var outcomes: Set<[String: String]> = []
        var isThrough = false
        for number in 1...20 where !isThrough {
            let directory = try TemporaryDirectory()
            try directory.write("old", to: "a")
            try directory.write("old", to: "gone")
            // Otherwise opening the directory syncs as often as the transaction.
            mkdir(directory.path(of: ".stated"), 0o700)
            try directory.write("*\n", to: ".stated/.gitignore")
            let trace = try runCommand(
                "strace",
                [
                    "-f", "-o", "/dev/null", "-e", "trace=\(call)", "-e",
                    "inject=\(call):signal=SIGKILL:when=\(number)", builtProgram("filewriter"),
                    directory.path, "a=new,d/b=new,gone-",
                ]
            )
            isThrough = trace.lines.contains("closed")
            let stage = try FileStage(directory)
            #expect(try stage.leftovers() == [])
            if isThrough {
                #expect(stage.values() == Self.new)
            } else {
                outcomes.insert(stage.values())
            }
        }
        #expect(isThrough)
        #expect(outcomes == expected)
    }

    @Test(.enabled(if: isInstalled("strace"), "strace is not installed"))
    func `a file is synced before its rename, and its directory after it`() throws {
        let trace = directory.path(of: ".trace")
        _ = try runCommand(
            "strace",
            [
                "-f", "-y", "-o", trace, "-e", "trace=fsync,renameat2", builtProgram("filewriter"),
                directory.path, "k=1", "k=2", "d/e=3",
            ]
        )
        let calls = String(decoding: try readFile(trace), as: UTF8.self).split(separator: "\n")
        let renames = calls.indices.filter { calls[$0].contains("renameat2(") }
        #expect(renames.count == 3)
        for rename in renames {
            #expect(calls[rename - 1].contains("fsync(") && calls[rename - 1].contains(".stated-"))
            #expect(
                calls[rename + 1].contains("fsync(")
                    && calls[rename + 1].contains("<\(directory.path)")
            )
        }
        #expect(calls[renames[2]...].contains { $0.contains("<\(directory.path)/d>") })
        #expect(calls[renames[2]...].contains { $0.contains("<\(directory.path)>") })
    }

    /// Runs the writer with one system call failing.
    private func run(
        failing call: String,
        _ error: String,
        when: String,
        _ changes: String...
    ) throws -> [String] {
        try runCommand(
            "strace",
            [
                "-f", "-o", "/dev/null", "-e", "trace=\(call)", "-e",
                "inject=\(call):error=\(error):when=\(when)", builtProgram("filewriter"),
                directory.path,
            ] + changes
        ).lines
    }

    @Test(
        .enabled(if: isInstalled("strace"), "strace is not installed"),
        arguments: [("ENOSPC", "NOSPACE"), ("EDQUOT", "NOSPACE"), ("EIO", "READONLY")]
    )
    func `a failure before the renames leaves every file as it was`(
        error: String,
        code: String
    ) throws {
        try directory.write("old", to: "k")
        let lines = try run(failing: "fchmod", error, when: "1", "k=new", "k=later")
        try #require(lines.count == 4, "\(lines)")
        #expect(lines[1].hasPrefix("\(code) ") && lines[1].contains("nothing was committed"))
        #expect(lines[2...] == ["done k=later", "closed"])
        #expect(try FileStage(directory).values() == ["k": "later"])
    }

    @Test(.enabled(if: isInstalled("strace"), "strace is not installed"))
    func `a failed sync of the directory is an unknown outcome, and then what the files hold`()
        throws
    {
        try FileStage(directory).set("other", "1")
        // Each thread counts by itself: of the commit thread the second is that of the directory, at the start of the other
        // reading is the second.
        _ = try runCommand("rm", [directory.path(of: "other")])
        let lines = try run(failing: "fsync", "EIO", when: "2", "k=first", "k=second")
        #expect(lines[1].hasPrefix("READONLY outcome unknown: fsync "))
        let stored = try FileStage(directory).value("k")
        #expect(stored == (lines.contains("done k=second") ? "second" : "first"))
    }

    @Test(.enabled(if: isInstalled("strace"), "strace is not installed"))
    func `a transaction that fails in its middle is finished when the store is open again`() throws
    {
        try directory.write("old", to: "a")
        let lines = try run(failing: "renameat2", "EIO", when: "2", "a=new,b=new,c=new")
        #expect(lines.contains { $0.hasPrefix("READONLY outcome unknown: renameat2 ") })
        #expect(try FileStage(directory).values() == ["a": "new", "b": "new", "c": "new"])
    }

    @Test(
        .enabled(if: isInstalled("strace"), "strace is not installed"),
        arguments: ["k=mine", "a=1,k=mine", "a=1,k-"]
    )
    func `an edit between the look at a file and its rename stands, as the next commit`(
        change: String
    ) throws {
        try directory.write("old", to: "k")
        let writer = try RunningCommand(
            "strace",
            [
                "-f", "-o", "/dev/null", "-e", "trace=renameat2", "-e",
                "inject=renameat2:delay_enter=700000", builtProgram("filewriter"), directory.path,
                change,
            ]
            .map { Array($0.utf8) }
        )
        #expect(try writer.nextLine() == "open")
        // The new file is written: the look was before, the rename waits.
        try #require(
            eventually { names(directory.path).contains { $0.hasPrefix(".stated-") } }
        )
        let edit = try directory.write("edit", to: ".edit")
        #expect(rename(edit, directory.path(of: "k")) == 0)
        #expect(try writer.finish().lines == ["done \(change)", "closed"])
        #expect(try FileStage(directory).values()["k"] == "edit")
    }

    private func names(_ path: String) -> [String] {
        guard let stream = opendir(path) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            names.append(
                withUnsafeBytes(of: entry.pointee.d_name) {
                    String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
                }
            )
        }
        return names
    }
}
