import Glibc
import StateTestSupport
import Testing

/// `redis-cli` as it is installed, on the built daemon.
@Suite(
    .enabled(if: RedisClient.isInstalled, "redis-cli is not installed: apt-get install redis-tools")
)
struct RedisClientTests {
    private let daemon: Daemon

    init() throws { daemon = try Daemon() }

    @Test(arguments: ["-2", "-3"])
    func `redis-cli PSUBSCRIBE sees sets and deletes that statectl makes`(version: String) throws {
        let pattern = "__keyspace@0__:audio/*"
        let subscriber = try RedisClient.start(daemon, version, "PSUBSCRIBE", pattern)
        #expect(try subscriber.lines(3) == ["psubscribe", pattern, "1"])
        for arguments in [
            ["set", "audio/volume", "0.7"], ["set", "video/volume", "1"],
            ["delete", "audio/volume"],
            ["set", "audio/a/b", ""], ["delete", "audio/"],
        ] {
            let result = try runCommand(
                builtProgram("statectl"),
                ["--socket", daemon.socketPath] + arguments
            )
            #expect(result.exitCode == 0, "\(result)")
        }
        for notice in ["volume set", "volume del", "a/b set", "a/b del"] {
            let (key, operation) = (notice.prefix { $0 != " " }, notice.suffix(3))
            #expect(
                try subscriber.lines(4)
                    == ["pmessage", pattern, "__keyspace@0__:audio/\(key)", String(operation)]
            )
        }
        subscriber.signal(SIGTERM)
        _ = subscriber.wait()
    }

    @Test func `redis-cli sends messages that another receives`() throws {
        let subscriber = try RedisClient.start(daemon, "-2", "SUBSCRIBE", "news")
        #expect(try subscriber.lines(3) == ["subscribe", "news", "1"])
        let publisher = try RedisClient.start(daemon, "-2", "PUBLISH", "news", "hello world")
        #expect(try publisher.finish().text == "1\n")
        #expect(try subscriber.lines(3) == ["message", "news", "hello world"])
        subscriber.signal(SIGTERM)
        _ = subscriber.wait()
    }
}

private enum RedisClient {
    static var isInstalled: Bool {
        (try? runCommand("redis-cli", ["--version"]))?.exitCode == 0
    }

    /// Starts it against a daemon.
    static func start(_ daemon: Daemon, _ arguments: String...) throws -> RunningCommand {
        let arguments = ["-s", daemon.socketPath] + arguments
        return try RunningCommand("redis-cli", arguments.map { Array($0.utf8) })
    }
}

extension RunningCommand {
    fileprivate func lines(_ count: Int) throws -> [String] {
        try (0..<count).map { _ in try nextLine() }
    }
}
