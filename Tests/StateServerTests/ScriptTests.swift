import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// EVAL of scripts that are known.
struct ScriptTests {
    private let server: ServedKeyspace
    private let peer: Peer
    private static let release =
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
    private static let expire =
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end"

    init() throws {
        server = try ServedKeyspace(HeldBacking(isHeld: false))
        peer = try server.connect()
    }

    private func evaluate(_ text: String, _ arguments: String) throws -> Reply {
        let words = arguments.split(separator: " ").map { Array($0.utf8) }
        return try peer.ask([Array("EVAL".utf8), Array(text.utf8)] + words)
    }

    @Test func `a lock is released by its holder only`() throws {
        _ = try peer.ask("SET lock me PX 50000")
        #expect(try evaluate(ScriptTests.release, "1 lock other") == .integer(0))
        #expect(try evaluate(ScriptTests.expire, "1 lock me 90000") == .integer(1))
        #expect(try peer.ask("PTTL lock").integerValue ?? 0 > 80_000)
        #expect(try evaluate(ScriptTests.release, "1 lock me") == .integer(1))
        #expect(try evaluate(ScriptTests.release, "1 lock me") == .integer(0))
        #expect(try peer.ask("EXISTS lock") == .integer(0))
    }

    @Test func `SCRIPT LOAD names a script, and EVALSHA carries it out`() throws {
        let name = SHA1(of: ScriptTests.release.utf8).description
        #expect(
            try peer.ask("EVALSHA \(name) 1 lock me").errorText
                == "NOSCRIPT No matching script. Please use EVAL."
        )
        let load = [Array("SCRIPT".utf8), Array("LOAD".utf8), Array(ScriptTests.release.utf8)]
        #expect(try peer.ask(load).textValue == name)
        _ = try peer.ask("SET lock me")
        #expect(try peer.ask("EVALSHA \(name.uppercased()) 1 lock me") == .integer(1))
        #expect(
            try peer.ask("SCRIPT EXISTS \(name) x").elements == [.integer(1), .integer(0)]
        )
        _ = try peer.ask("SCRIPT FLUSH")
        #expect(try peer.ask("SCRIPT EXISTS \(name)").elements == [.integer(0)])
    }

    @Test(.enabled(if: TestUser.areThere))
    func `SCRIPT FLUSH of one user leaves the scripts of others`() throws {
        let (first, second) = try (
            server.connect(as: TestUser.names[0]).peer, server.connect(as: TestUser.names[1]).peer
        )
        let name = SHA1(of: ScriptTests.release.utf8).description
        let load = [Array("SCRIPT".utf8), Array("LOAD".utf8), Array(ScriptTests.release.utf8)]
        for user in [first, second] { #expect(try user.ask(load).textValue == name) }
        #expect(try second.ask("SCRIPT FLUSH") == .simple("OK"))
        #expect(try first.ask("SCRIPT EXISTS \(name)").elements == [.integer(1)])
        #expect(try first.ask("EVALSHA \(name) 1 lock me") == .integer(0))
        // A client that gets this sends the script.
        #expect(
            try second.ask("EVALSHA \(name) 1 lock me").errorText
                == "NOSCRIPT No matching script. Please use EVAL."
        )
    }

    @Test func `another script is refused, and so are missing arguments`() throws {
        let refusal =
            "ERR scripts are not supported; use MULTI with WATCH, STATE.SET with IFREV or IFVAL, or SET with IFEQ. Known scripts of locks and rate limits are carried out: see docs/protocol.md"
        #expect(try evaluate("return 1", "0").errorText == refusal)
        #expect(try peer.ask("SCRIPT LOAD return").errorText == refusal)
        #expect(
            try evaluate(ScriptTests.release, "1 lock").errorText
                == "ERR the script needs 1 keys and 1 arguments; it got 1 and 0"
        )
        #expect(try peer.ask("EVAL x -1").errorText == "ERR Number of keys can't be negative")
        #expect(
            try peer.ask("EVAL x 2 a").errorText
                == "ERR Number of keys can't be greater than number of args"
        )
    }

    @Test func `redis-py's lock is extended, and reacquired`() throws {
        _ = try peer.ask("SET lock me PX 50000")
        let (extend, again) = (
            "a4e8783852e6b949f9ef3a97212805108459a890", "1cac51482acf5858da00f6d685d68f886cd6b6b2"
        )
        #expect(try peer.ask("EVALSHA \(extend) 1 lock me 10000 0") == .integer(1))
        #expect(try peer.ask("PTTL lock").integerValue ?? 0 > 59_000)
        #expect(try peer.ask("EVALSHA \(extend) 1 lock me 10000 1") == .integer(1))
        #expect(try peer.ask("PTTL lock").integerValue ?? 99_999 <= 10_000)
        #expect(try peer.ask("EVALSHA \(extend) 1 lock you 10000 1") == .integer(0))
        #expect(try peer.ask("EVALSHA \(again) 1 lock me 70000") == .integer(1))
        #expect(try peer.ask("PTTL lock").integerValue ?? 0 > 60_000)
        _ = try peer.ask("SET lock me")
        #expect(try peer.ask("EVALSHA \(extend) 1 lock me 10000 0") == .integer(0))
    }

    @Test func `a counter begins its time with the first count`() throws {
        let count = "628bd136a573a06b346879695681af12ccef300f"
        #expect(try peer.ask("EVALSHA \(count) 1 hits 60 2") == .integer(2))
        #expect(try peer.ask("TTL hits") == .integer(60))
        _ = try peer.ask("EXPIRE hits 30")
        #expect(try peer.ask("EVALSHA \(count) 1 hits 60 2") == .integer(4))
        #expect(try peer.ask("TTL hits") == .integer(30))
        let clear = "f2994557f1daca13bfef97c2a31ca4b174e031ca"
        _ = try peer.ask("SET other 1")
        #expect(try peer.ask("EVALSHA \(clear) 1 h*") == .integer(1))
        #expect(try peer.ask("EXISTS hits other") == .integer(1))
    }

    @Test func `times that a script could not add are refused`() throws {
        let peer = try server.connect()
        _ = try peer.ask("SET b 1 PX 9000000000")
        let (acquire, count) = (
            "e8ac2a60cb040b0dbb56815a1e9c6fd032ce62e7", "e7a0a27d4101baabb124af209bb0245197a359a1"
        )
        for number in [Int64.max, .max / 1_000, .min, .min / 1_000, 1 << 53] {
            for command in [
                "EVALSHA \(acquire) 2 a b 10 \(number) 1", "EVALSHA \(count) 2 a b \(number)",
                "EVALSHA \(acquire) 2 a b \(number) 10 \(number)",
            ] { _ = try peer.ask(command) }
        }
        #expect(try peer.ask("PING") == .simple("PONG"))
    }
}
