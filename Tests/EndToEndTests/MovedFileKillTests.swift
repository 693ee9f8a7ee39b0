import Glibc
import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// A daemon that is killed while it writes keys to files, and while a start moves them to another directory: a transaction is there whole,
/// or not at all.
///
/// `STATED_MOVE_KILLS=150 scripts/test --filter MovedFileKillTests` does it more often.
struct MovedFileKillTests {
    private static let rounds =
        getenv("STATED_MOVE_KILLS").flatMap { Int(String(cString: $0)) } ?? 12
    private static let keyCount = 200

    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        for name in ["one", "two"] { mkdir(directory.path(of: name), 0o755) }
        path = directory.path(of: "c.json5")
    }

    private func configure(_ place: String) throws {
        let rule = "{ keys: 'f/', backing: 'file', directory: '\(directory.path(of: place))' }"
        try directory.write("{ rules: [ \(rule) ] }", to: "c.json5")
    }

    @Test func `atomic: a transaction of a moved key and another is whole after a kill`() throws {
        try configure("one")
        let daemon = try Daemon(["--config", path], directory: directory)
        let start = [
            builtProgram("stated"), "--config", path, "--socket", daemon.socketPath, "--data",
            daemon.dataPath,
        ]
        var random = SplitMix(seed: Seed.each(1)[0])
        var isFirst = true
        for round in 0..<Self.rounds {
            let socket = daemon.socketPath
            let (delay, seed) = (UInt32.random(in: 500..<250_000, using: &random), random.next())
            let writer = WorkerThread(name: "writer")
            writer.start { try? Self.write(socket, seed) }
            usleep(20_000 + delay)
            daemon.kill()
            writer.join()
            isFirst.toggle()
            try configure(isFirst ? "one" : "two")
            let moving = try RunningCommand(start[0], start.dropFirst().map { Array($0.utf8) })
            usleep(delay / 2)
            moving.signal(SIGKILL)
            _ = moving.wait()
            // The start that ends the move, and one that goes back before it has ended.
            if round % 3 == 2 {
                isFirst.toggle()
                try configure(isFirst ? "one" : "two")
            }
            try daemon.start()
            let halves = try halves(daemon)
            #expect(halves == [], "round \(round), \(delay) us: \(halves)")
        }
        try daemon.stop()
    }

    private func temporaries() throws -> [String] {
        try runCommand("find", [directory.path(of: "one"), "-name", ".stated-*"]).lines
    }

    @Test(.enabled(if: isInstalled("strace"), "strace is not installed"))
    func `what a commit left beside its file goes with the rule`() throws {
        try configure("one")
        let daemon = try Daemon(["--config", path], directory: directory)
        try daemon.connect().set([1], for: "f/a/x")
        try daemon.stop()
        let traced = try RunningCommand(
            "strace",
            [
                "-f", "-qq", "-o", "/dev/null", "-e", "trace=renameat2", "-e",
                "inject=renameat2:signal=SIGKILL", builtProgram("stated"), "--config", path,
                "--socket", daemon.socketPath, "--data", daemon.dataPath,
            ]
            .map { Array($0.utf8) }
        )
        #expect(eventually { (try? daemon.connect().status()) != nil })
        #expect(throws: StateError.self) { try daemon.connect().set([2], for: "f/a/x") }
        _ = traced.wait()
        #expect(try temporaries().count == 1)
        try directory.write("mine", to: "one/a/.stated-notes")
        try directory.write("{ rules: [] }", to: "c.json5")
        try daemon.start()
        // Who connects while it opens its files is answered once it has.
        #expect(try daemon.connect().value(for: "f/a/x") == [2])
        #expect(try temporaries() == ["\(directory.path(of: "one"))/a/.stated-notes"])
        try daemon.stop()
    }

    /// Gives keys files and takes them away, each time with a note of it in another key, until the connection ends.
    private static func write(_ socket: String, _ seed: UInt64) throws {
        let peer = try Peer(socket)
        var random = SplitMix(seed: seed)
        while true {
            let commands = (0..<32).map { _ in
                let number = Int.random(in: 0..<keyCount, using: &random)
                return Bool.random(using: &random)
                    ? Peer.words("STATE.APPLY 2 SET f/\(number) v SET s/\(number) here")
                    : Peer.words("STATE.APPLY 2 DELETE f/\(number) SET s/\(number) gone")
            }
            try peer.send(commands)
            _ = try peer.next(32)
        }
    }

    /// The keys of which one half of a transaction is there.
    private func halves(_ daemon: Daemon) throws -> [String] {
        let client = try daemon.connect()
        return try (0..<Self.keyCount).filter { number in
            let hasFile = try client.value(for: Key("f/\(number)")) != nil
            let note = try client.value(for: Key("s/\(number)")).map {
                String(decoding: $0, as: UTF8.self)
            }
            return hasFile != (note == "here")
        }
        .map { "f/\($0)" }
    }
}
