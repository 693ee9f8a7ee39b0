import Glibc
import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// Files and entries stay equal, whoever writes and whatever ends the daemon.
struct FileContainerRoundTests {
    /// Within how many seconds of the last edit the daemon's state is the directory's; one in the long form.
    private static let limit = Duration.seconds(Extent.named("STATED_FILE_SECONDS", short: 10))

    @Test func `10,000 files and every tool: equal soon after, and each difference told once`()
        throws
    {
        let count = Extent.named("STATED_FILE_COUNT", short: 1_000)
        let stage = try FileContainerDaemon { directory in
            let made = try runCommand(
                "/bin/sh",
                [
                    "-ec",
                    """
                    cd '\(directory.path)/d'
                    for i in $(seq 0 9); do mkdir k$i; done
                    seq 1 \(count) | awk '{ f = "k" $1 % 10 "/" $1; print "value " $1 > f; close(f) }'
                    """,
                ]
            )
            try #require(made.exitCode == 0, "\(made)")
        }
        let start = try #require(try stage.becomeEqual(within: Self.limit))
        #expect(start < Self.limit)
        try stage.shell(
            "git init -q .; git add .; git commit -qm 1; git checkout -qb two; "
                + "sed -i s/value/other/ k*/*5; git rm -q k1/1; mkdir k0/new; echo x > k0/new/x; "
                + "git add .; git commit -qm 2; git checkout -q -"
        )
        #expect(try stage.becomeEqual(within: .seconds(20)) != nil)
        let tools = [
            "sed -i s/value/VALUE/ k*/*7", "git checkout -q .; git checkout -q two",
            "git checkout -q -", "cp -r k3 ../moved; mv ../moved k5/moved",
            "mv k6 ../away", "mv k7 k8/k7", "rm -rf k9",
            "command -v rsync > /dev/null || exit 0; rsync -a k0/ k1/",
        ]
        for tool in tools {
            let before = try stage.files()
            let revision = try stage.daemon.connect().status().first { $0.name == "revision" }?
                .number
            try stage.shell(tool)
            let time = try stage.becomeEqual(within: Self.limit)
            #expect(time != nil, "\(tool)")
            try expectOnce(stage, before, since: revision ?? 0, tool)
        }
        stage.daemon.kill()
        try stage.daemon.start()
        #expect(try stage.entries(stage.daemon.connect()) == stage.files())
    }

    /// Every difference is one change since `revision`, and nothing else is.
    private func expectOnce(
        _ stage: FileContainerDaemon,
        _ before: [String: [UInt8]],
        since revision: Int64,
        _ tool: String
    ) throws {
        let after = try stage.files()
        let changes = try stage.daemon.connect().changes(since: revision, of: ["app/"])
        guard case .commits(let commits, _) = changes else {
            Issue.record("\(tool): a gap")
            return
        }
        let told = commits.joined().map { String(decoding: $0.key.dropFirst(4), as: UTF8.self) }
        let changed = Set(before.keys).union(after.keys).filter { before[$0] != after[$0] }
        let (repeated, others) = (
            told.count - Set(told).count, Set(told).symmetricDifference(changed)
        )
        #expect(repeated == 0, "\(tool)")
        #expect(others.isEmpty, "\(tool)")
    }

    private static let keys = ["a", "b", "c/d", "c/e"]

    @Test func `SIGKILL at any moment, then start: equal, and nothing that was told is lost`()
        throws
    {
        let stage = try FileContainerDaemon()
        var random = SplitMix(seed: Seed.base)
        for round in 0..<Extent.named("STATED_FILE_ROUNDS", short: 5) {
            let writers = Writers(stage, round)
            let duration = Int32.random(in: 20...250, using: &random)
            let told = writers.run { poll(nil, 0, duration) }
            try stage.daemon.start()
            let client = try stage.daemon.connect()
            #expect(try stage.entries(client) == stage.files(), "round \(round)")
            for (key, outcome) in told {
                let value = try client.value(for: Key("app/\(key)"))
                #expect(outcome.contains(value), "round \(round): \(key)")
            }
            let left = try runCommand("find", [stage.path("."), "-name", ".stated-*"])
            #expect(left.lines == [])
        }
    }

    /// Threads that write through the daemon and edit beside it until the daemon is killed.
    private struct Writers {
        let stage: FileContainerDaemon
        let round: Int

        init(_ stage: FileContainerDaemon, _ round: Int) {
            (self.stage, self.round) = (stage, round)
        }

        /// - Returns: The values that each key may have: the one that was told last, and the one under way.
        func run(_ wait: () -> Void) -> [String: [[UInt8]?]] {
            let told = Observed<[String: [[UInt8]?]]>([:])
            let isStopping = Observed(false)
            let (socket, root, round) = (stage.daemon.socketPath, stage.path(""), round)
            let threads = FileContainerRoundTests.keys.map { key in
                let thread = WorkerThread(name: "writer")
                thread.start {
                    guard let client = try? Client(socket: socket, timeout: .seconds(20)),
                        let first = try? [client.value(for: Key("app/\(key)"))]
                    else { return }
                    told.update { $0[key] = first }
                    for number in 0... {
                        guard !isStopping.current else { return }
                        let value: [UInt8]? =
                            number % 5 == 4 ? nil : Array("\(round) \(number)".utf8)
                        told.update { $0[key]?.append(value) }
                        do {
                            if let value {
                                try client.set(value, for: Key("app/\(key)"))
                            } else {
                                try client.delete([Pattern("app/\(key)")])
                            }
                            told.update { $0[key] = [value] }
                        } catch {
                            return
                        }
                    }
                }
                return thread
            }
            let editor = WorkerThread(name: "editor")
            editor.start {
                for number in 0... {
                    guard !isStopping.current else { return }
                    FileContainerRoundTests.edit(root + ["x", "y"][number % 2], number)
                    poll(nil, 0, 1)
                }
            }
            wait()
            stage.daemon.kill()
            isStopping.update { $0 = true }
            for thread in threads { thread.join() }
            editor.join()
            return told.current
        }
    }

    /// Writes a file in place, replaces it, or removes it.
    static func edit(_ path: String, _ number: Int) {
        switch number % 5 {
        case 0, 1:
            let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
            let text = Array("edit \(number)".utf8)
            write(file, text, text.count)
            close(file)
        case 2, 3:
            let file = open(path + "~", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
            let text = Array("rename \(number)".utf8)
            write(file, text, text.count)
            close(file)
            rename(path + "~", path)
        default: unlink(path)
        }
    }

    @Test func `written through the daemon and edited at once: always equal in the end`() throws {
        let stage = try FileContainerDaemon()
        let socket = stage.daemon.socketPath
        let paths = ["a", "b", "c", "d"].map { (key: "app/\($0)", path: stage.path($0)) }
        for round in 0..<Extent.named("STATED_FILE_EDIT_ROUNDS", short: 20) {
            onThreads(3) { thread in
                var random = SplitMix(seed: Seed.base &+ UInt64(round * 3 + thread))
                let client = try? Client(socket: socket, timeout: .seconds(20))
                for number in 0..<Int.random(in: 1...5, using: &random) {
                    let (key, path) = paths[Int.random(in: 0..<4, using: &random)]
                    if thread == 0 {
                        Self.edit(path, Int.random(in: 0..<1_000, using: &random))
                    } else {
                        let value = Array("\(round).\(thread).\(number)".utf8)
                        _ = try? client?.set(value, for: Key(key))
                    }
                    poll(nil, 0, Int32.random(in: 0...8, using: &random))
                }
            }
            let (key, path) = paths[round % 4]
            Self.edit(path, 0)
            let last = Array("last \(round)".utf8)
            try stage.daemon.connect().set(last, for: Key(key))
            #expect(try stage.becomeSettled(), "round \(round)")
            #expect(try readFile(path) == last, "round \(round)")
        }
    }
}

extension FileContainerDaemon {
    /// Waits until files and entries are equal while both may still change.
    func becomeSettled() throws -> Bool {
        let client = try daemon.connect()
        return try eventually { try entries(client) == files() }
    }
}
