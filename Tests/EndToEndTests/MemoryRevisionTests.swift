import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// `stated --memory` keeps no value, and tells no revision twice.
struct MemoryRevisionTests {
    /// What the writers of one life were told.
    private struct Told {
        var lowest = Int64.max
        var highest: Int64 = 0
        var count = 0

        mutating func add(_ revision: Int64) {
            lowest = min(lowest, revision)
            highest = max(highest, revision)
            count += 1
        }
    }

    /// 4 writers until the daemon is gone, which is killed after `count` replies.
    private func kill(_ daemon: Daemon, after count: Int) throws -> Told {
        let path = daemon.socketPath
        let told = Observed(Told())
        let writers = (0..<4).map { number in
            let writer = WorkerThread(name: "writer \(number)")
            writer.start {
                guard let client = try? Client(socket: path) else { return }
                while let commit = try? client.set([1], for: Key(verified: "key/\(number)")) {
                    told.update { $0.add(commit.revision) }
                }
            }
            return writer
        }
        let isReached = told.wait { $0.count >= count }
        daemon.kill()
        for writer in writers { writer.join() }
        try #require(isReached)
        return told.current
    }

    /// `STATED_KILLS=100 scripts/test --filter MemoryRevisionTests` does it as often as the promise says.
    @Test func `revisions of memory never repeat`() throws {
        let daemon = try Daemon("--memory")
        var random = SplitMix(seed: 11)
        var highest: Int64 = 0
        var epochs: Set<String> = []
        let count = Extent.named("STATED_KILLS", short: 8)
        for round in 1...count {
            let status = try daemon.connect().status()
            epochs.insert(try #require(status.first { $0.name == "epoch" }).text)
            let told = try kill(daemon, after: Int.random(in: 1...2_000, using: &random))
            #expect(told.lowest > highest, "round \(round)")
            highest = told.highest
            try daemon.start()
        }
        #expect(epochs.count == count)
    }

    @Test func `a kill while the last life's reservation is damaged brings no lower revision`()
        throws
    {
        let daemon = try Daemon("--memory")
        var highest: Int64 = 0
        for slot in [0, 2_048, 0, 2_048] {
            let told = try kill(daemon, after: 10)
            #expect(told.lowest > highest)
            highest = told.highest
            var bytes = try readFile(daemon.dataPath + "/memory.revisions")
            bytes.replaceSubrange(slot..<slot + 24, with: [UInt8](repeating: 0xFF, count: 24))
            try daemon.directory.write(bytes, to: "data/memory.revisions")
            try daemon.start()
        }
    }

    @Test func `a store far above every reservation is written once a rule keeps keys in memory`()
        throws
    {
        let directory = try TemporaryDirectory()
        let path = directory.path(of: "stated.json5")
        let (rules, none) = ("{ rules: [{ keys: 'mem/', backing: 'memory' }] }", "{}")
        try directory.write(none, to: "stated.json5")
        let daemon = try Daemon(["--config", path], directory: directory)
        _ = try daemon.connect().set([1], for: "k")
        try daemon.stop()
        // A copy is another store, 2^32 revisions above.
        let data = daemon.dataPath
        let copy = "mv '\(data)' '\(data)0'; cp -r '\(data)0' '\(data)'"
        _ = try runCommand("/bin/sh", ["-ec", copy])
        try directory.write(rules, to: "stated.json5")
        try daemon.start()
        let client = try daemon.connect()
        #expect(try client.set([2], for: "k").revision > 1 << 32)
        #expect(try client.set([2], for: "mem/k").revision > 1 << 32)
    }

    /// Keys in memory beside a store, and a daemon without one.
    private func daemon(isStored: Bool) throws -> Daemon {
        guard isStored else { return try Daemon("--memory") }
        let directory = try TemporaryDirectory()
        let rules = "{ rules: [{ keys: 'mem/', backing: 'memory' }] }"
        let path = try directory.write(rules, to: "stated.json5")
        return try Daemon(["--config", path], directory: directory)
    }

    @Test(arguments: [true, false])
    func `a clean stop costs a revision and no block, and a kill after it repeats none`(
        isStored: Bool
    ) throws {
        let daemon = try daemon(isStored: isStored)
        var last: Int64 = 0
        for _ in 0..<3 {
            for _ in 0..<2 {
                let first = try daemon.connect().set([1], for: "mem/k").revision
                #expect(first > last && first <= last + 2)
                last = try daemon.connect().set([2], for: "mem/k").revision
                try daemon.restart()
            }
            let told = try kill(daemon, after: 100)
            #expect(told.lowest > last)
            last = told.highest
            try daemon.start()
            let next = try daemon.connect().set([1], for: "mem/k").revision
            #expect(next > last)
            last = next
        }
    }

    @Test(arguments: [true, false])
    func `a watch that resumes at the last revision before a clean stop gets a gap`(
        isStored: Bool
    ) throws {
        let daemon = try daemon(isStored: isStored)
        let last = try daemon.connect().set([1], for: "mem/k").revision
        try daemon.restart()
        let peer = try Peer(daemon.socketPath)
        let answer = try peer.ask("STATE.CHANGES SINCE \(last) mem/").shown
        #expect(answer.hasPrefix(#"["gap""#), "\(answer)")
    }

    @Test func `STATE.STATUS tells the reservation and where it is`() throws {
        let daemon = try Daemon("--memory")
        let status = try daemon.connect().status()
        func text(_ name: String) -> String? { status.first { $0.name == name }?.text }
        #expect(text("backing") == "memory")
        #expect(text("reservation_file") == daemon.dataPath + "/memory.revisions")
        #expect(text("reserved_revision") == "\(1 << 24)")
        #expect(text("reservation") == "ok")
    }

    @Test(arguments: [[], ["--memory"]], [[], ["--memory"]])
    func `a directory that a daemon owns is refused to another, in memory or not`(
        first: [String],
        second: [String]
    ) throws {
        let scratch = try TemporaryDirectory()
        let data = scratch.path(of: "data")
        func start(_ name: String, _ arguments: [String]) throws -> Program {
            let socket = scratch.path(of: name)
            return try Program(
                [builtProgram("stated"), "--socket", socket, "--data", data] + arguments
            )
        }
        let owner = try start("a", first)
        try owner.waitForErrors(containing: " serves ")
        let other = try start("b", second)
        #expect(try other.end() == 3)
        #expect(other.errors.contains(data))
        #expect(other.errors.contains("process \(owner.pid)"))
    }

    @Test func `a store and a memory of one directory leave each other alone`() throws {
        let directory = try TemporaryDirectory()
        let stored = try Daemon(directory: directory)
        _ = try stored.connect().set([1], for: "stored")
        let epoch = try stored.connect().status().first { $0.name == "epoch" }
        try stored.stop()
        let memory = try Daemon("--memory", directory: directory)
        #expect(try memory.connect().value(for: "stored") == nil)
        _ = try memory.connect().set([2], for: "stored")
        try memory.stop()
        try stored.start()
        let client = try stored.connect()
        #expect(try client.value(for: "stored") == [1])
        #expect(try client.status().first { $0.name == "epoch" } == epoch)
    }

    @Test func `a reservation that is damaged is refused by name`() throws {
        let scratch = try TemporaryDirectory()
        mkdir(scratch.path(of: "data"), 0o700)
        let path = try scratch.write([1, 2, 3], to: "data/memory.revisions")
        let program = try Program([
            builtProgram("stated"), "--memory", "--socket", scratch.path(of: "s"), "--data",
            scratch.path(of: "data"),
        ])
        #expect(try program.end() == 5)
        #expect(program.errors.contains("\(path) is damaged"))
        #expect(try readFile(path) == [1, 2, 3])
    }
}
