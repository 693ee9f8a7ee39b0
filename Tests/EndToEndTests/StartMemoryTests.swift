import Glibc
import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// The memory of a start, with as much of one kind beside the values as the daemon takes.
struct StartMemoryTests {
    enum Kind: CaseIterable { case pendingFiles, memoryPatterns, handlers, intervalLog }

    private let directory: TemporaryDirectory
    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    init() throws {
        directory = try TemporaryDirectory()
        mkdir(directory.path(of: "d"), 0o755)
    }

    private func rules(_ kind: Kind) -> String {
        switch kind {
        case .pendingFiles:
            "{ keys: 'app/', backing: 'file', directory: '\(directory.path(of: "d"))' }"
        case .memoryPatterns:
            (0..<5_000).map { "{ keys: 'm\($0)/', backing: 'memory' }" }.joined(separator: ",\n")
        case .handlers: ""
        case .intervalLog: "{ keys: 'i/', durability: 'interval', commitEvery: '1h' }"
        }
    }

    /// Has the daemon take as much as it does.
    private func fill(_ kind: Kind, _ daemon: Daemon) throws {
        let peer = try Peer(daemon.socketPath)
        switch kind {
        case .pendingFiles:
            let made = try runCommand(
                "bash",
                ["-ec", "cd \(directory.path(of: "d")); mkdir {1..5000}"]
            )
            #expect(made.exitCode == 0)
            let pairs = (1...5_000).flatMap { [bytes("app/\($0)"), bytes("v\($0)")] }
            #expect(try peer.ask([bytes("MSET")] + pairs) == .simple("OK"))
        case .memoryPatterns:
            for number in 0..<5_000 { try peer.send([[bytes("SET"), bytes("m\(number)/k"), [1]]]) }
            #expect(try peer.next(5_000).allSatisfy { $0 == .simple("OK") })
        case .handlers:
            for number in 0..<1_000 {
                let pattern = bytes("h\(number)/" + String(repeating: "p", count: 900))
                let words = ["STATE.HANDLER", "ATTACH", "n\(number)"].map(bytes)
                #expect(try peer.ask(words + [pattern]).elements != nil)
            }
        case .intervalLog:
            let value = [UInt8](repeating: 7, count: 200)
            for number in 0..<30_000 {
                try peer.send([[bytes("SET"), bytes("i/\(number)"), value]])
            }
            #expect(try peer.next(30_000).allSatisfy { $0 == .simple("OK") })
        }
    }

    /// Whether what was taken is there, or named.
    private func check(_ kind: Kind, _ daemon: Daemon) throws {
        let client = try daemon.connect()
        switch kind {
        case .pendingFiles:
            #expect(try client.value(for: "app/5000") == bytes("v5000"))
            func report() throws -> String {
                try client.status().first { $0.name == "files" }?.text ?? ""
            }
            #expect(try eventually { try report().contains("(and 4999 more)") })
        case .memoryPatterns:
            #expect(try client.value(for: "m1/k") == nil)
            try client.set([2], for: "m1/k")
        case .handlers:
            let reply = try client.call([bytes("STATE.HANDLERS")])
            #expect(reply.elements?.count == 1_000)
        case .intervalLog: #expect(try client.count(of: "i/") == 30_000)
        }
    }

    /// The largest address space that a process has had, in bytes.
    private func peak(of daemon: Daemon) throws -> Int {
        let status = String(decoding: try readFile("/proc/\(daemon.pid)/status"), as: UTF8.self)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmPeak:") })
        return try #require(Int(line.split(whereSeparator: \.isWhitespace)[1])) << 10
    }

    @Test(arguments: Kind.allCases)
    func `bounded: a start takes no more than half as much again as what it starts with`(
        kind: Kind
    ) throws {
        let file = try directory.write("{ rules: [\(rules(kind))] }", to: "c.json5")
        let daemon = try Daemon(["--config", file], directory: directory)
        try fill(kind, daemon)
        let need = try peak(of: daemon)
        daemon.kill()
        let again = try Daemon(
            ["--config", file],
            directory: directory,
            launcher: ["prlimit", "--as=\(need + need / 2)"]
        )
        try again.connect().set([1], for: "plain")
        try check(kind, again)
        try again.restart()
        try check(kind, again)
        try again.stop()
    }
}
