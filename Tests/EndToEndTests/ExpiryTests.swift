import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// Keys that expire, over kills of the daemon, and from the command line.
struct ExpiryTests: RuledTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    @Test func `deadlines hold over a SIGKILL, and what ends meanwhile is gone`() throws {
        let daemon = try daemon("")
        let peer = try Peer(daemon.socketPath)
        _ = try peer.ask("SET long v EX 1000")
        _ = try peer.ask("SET at v PXAT 33177117420500")
        _ = try peer.ask("SET ever v EX 1000")
        _ = try peer.ask("PERSIST ever")
        _ = try peer.ask("SET soon v")
        let time = try peer.ask("PEXPIRETIME long")
        #expect(try peer.ask("PEXPIRE soon 1") == .integer(1))
        daemon.kill()
        try daemon.start()
        let again = try Peer(daemon.socketPath)
        #expect(try again.ask("PEXPIRETIME long") == time)
        #expect(try again.ask("PEXPIRETIME at") == .integer(33_177_117_420_500))
        #expect(try again.ask("TTL ever") == .integer(-1))
        #expect(try eventually { try again.ask("EXISTS soon") == .integer(0) })
        let left = try #require(try again.ask("PTTL long").integerValue)
        #expect((1...1_000_000).contains(left))
    }

    @Test func `statectl sets, tells and ends the time of a key`() throws {
        let daemon = try daemon("")
        #expect(try Statectl.run(daemon, "set", "k", "v", "--ttl", "90m").exitCode == 0)
        #expect(try Statectl.run(daemon, "ttl", "k").text.hasPrefix("1h"))
        #expect(try Statectl.run(daemon, "expire", "k", "7d").exitCode == 0)
        let days = try Statectl.run(daemon, "ttl", "k").text
        #expect(days == "7d\n" || days.hasPrefix("6d23h"), "\(days)")
        #expect(try Statectl.run(daemon, "get", "k").text == "v\n")
        #expect(try Statectl.run(daemon, "persist", "k").exitCode == 0)
        #expect(try Statectl.run(daemon, "persist", "k").exitCode == 0)
        #expect(try Statectl.run(daemon, "ttl", "k").text == "never\n")
        #expect(
            try Statectl.run(daemon, "ttl", "k", "--json").text == "{\"key\":\"k\",\"ttl\":null}\n"
        )
        #expect(try Statectl.run(daemon, "expire", "k", "1ms").exitCode == 0)
        #expect(
            try Statectl.run(daemon, "wait", "k", "--absent", "--timeout", "60s").exitCode == 0
        )
        for words in [["ttl", "k"], ["persist", "k"], ["expire", "k", "5s"]] {
            let result = try Statectl.run(["--socket", daemon.socketPath] + words)
            #expect(result.exitCode == 1 && result.output.isEmpty, "\(words)")
        }
        for words in [
            ["expire", "k", "soon"], ["expire", "k", "5"], ["set", "k", "v", "--ttl", "0"],
        ] {
            let result = try Statectl.run(["--socket", daemon.socketPath] + words)
            #expect(result.exitCode == 2, "\(words)")
        }
    }

    @Test func `a revert brings back the time that a value had, and no time for one without`()
        throws
    {
        let daemon = try daemon("")
        let peer = try Peer(daemon.socketPath)
        _ = try peer.ask("SET timed 1 PXAT 33177117420500")
        _ = try peer.ask("SET plain 1")
        let revision = try #require(try peer.ask("STATE.GET plain")["revision"]?.integerValue)
        _ = try peer.ask("SET timed 2")
        _ = try peer.ask("SET plain 2 EX 1000")
        let revert = try Statectl.run(daemon, "revert", "--all", "--to", "\(revision)")
        #expect(revert.exitCode == 0, "\(revert.errorText)")
        #expect(try peer.ask("GET timed").textValue == "1")
        #expect(try peer.ask("PEXPIRETIME timed") == .integer(33_177_117_420_500))
        #expect(try peer.ask("TTL plain") == .integer(-1))
    }

    @Test func `a rule limits the time of its keys`() throws {
        let daemon = try daemon(
            """
            { keys: 'lock/', limits: { ttl: '1m' } }, { keys: 'lease/', expire: '30s', limits: { ttl: '1m' } }
            """
        )
        let peer = try Peer(daemon.socketPath)
        let limit = "; the limit is 1m (rule 1, line 1, limits.ttl)"
        #expect(
            try peer.ask("SET lock/a 1").errorText
                == "LIMIT the value of key 'lock/a' would expire never" + limit
        )
        #expect(
            try peer.ask("SET lock/a 1 EX 61").errorText
                == "LIMIT the value of key 'lock/a' would expire in 61s" + limit
        )
        #expect(try peer.ask("SET lock/a 1 EX 60") == .simple("OK"))
        #expect(try peer.ask("PERSIST lock/a").errorText?.hasSuffix(limit) == true)
        #expect(try peer.ask("EXPIRE lock/a 3600").errorText?.hasSuffix(limit) == true)
        #expect(try peer.ask("EXPIRE lock/a 10") == .integer(1))
        #expect(try peer.ask("SET lease/a 1") == .simple("OK"))
        #expect(try peer.ask("PERSIST lease/a").errorText?.hasPrefix("LIMIT ") == true)
    }

    @Test(arguments: [
        ("expire: '2m', limits: { ttl: '1m' }", "it is longer than limits.ttl of the same rule"),
        ("limits: { ttl: '0' }", "expected a time above 0"),
        ("softLimits: { ttl: '1m' }", "ttl has no soft limit"),
        ("limits: { ttl: 5 }", "a time such as 500ms"),
    ]) func `a limit that makes no sense is refused`(options: String, words: String) throws {
        let daemon = try daemon("")
        _ = try file("{ keys: 'k/', \(options) }")
        let reload = try Statectl.run(daemon, "reload")
        #expect(reload.exitCode != 0 && reload.errorText.contains(words), "\(reload.errorText)")
    }
}
