import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// Law 5, bounded: how much each verb answers at most, and in how many slices.
struct ReplyBoundTests {
    /// What bounds the reply of a verb.
    private enum Bound {
        /// It says a fixed number of things, or one for each argument.
        case small
        /// What describes the daemon: as much for everybody, at any time.
        case fixed
        /// One value, and some words about it.
        case value
        /// It is written at one moment, up to a limit.
        case moment
        /// It is made in slices, up to the limit of a reply.
        case slices
    }

    private static let valueByteCount = 4 << 10
    private static let momentByteCount = 16 << 10
    private static let replyByteCount = 64 << 10

    /// The largest that a verb can be made to answer, and what bounds it.
    private static func row(of verb: Verb.Name) -> (bound: Bound, commands: [String]) {
        let keys = (0..<400).map { " k\($0)" }.joined()
        return switch verb {
        case .ping, .echo: (.value, ["PING \(text)", "ECHO \(text)"])
        case .hello, .auth, .quit, .reset, .select, .dbsize, .type, .time, .strlen, .exists:
            (.small, ["TYPE k0", "EXISTS\(keys)", "STRLEN k0"])
        case .set, .mset, .msetnx, .msetex, .setex, .psetex, .setnx, .setrange, .append, .del,
            .unlink, .delex, .touch, .incr, .incrby, .decr, .decrby, .incrbyfloat, .expire,
            .pexpire,
            .expireat, .pexpireat, .ttl, .pttl, .expiretime, .pexpiretime, .persist, .rename,
            .renamenx, .copy, .restore, .digest, .randomkey, .object, .memory:
            (.small, ["TTL k0", "DIGEST k0", "TOUCH\(keys)", "RANDOMKEY", "SETRANGE w 0 x"])
        case .flushall, .flushdb, .multi, .discard, .watch, .unwatch, .wait, .waitaof, .lastsave,
            .role, .publish, .spublish, .monitor, .script:
            (.small, ["WATCH\(keys)", "UNWATCH", "ROLE", "LASTSAVE", "PUBLISH c x"])
        case .get, .getdel, .getex, .getset, .getrange, .substr, .dump:
            (
                .value,
                [
                    "GET k0", "GETRANGE k0 0 -1", "DUMP k0", "GETEX k0", "GETSET g \(text)",
                    "GETDEL g",
                ]
            )
        case .mget: (.moment, ["MGET\(keys)", "MGET" + (0..<400).map { _ in " k0" }.joined()])
        case .exec:
            (
                .moment,
                [(["MULTI"] + (0..<400).map { "GET k\($0)" } + ["EXEC"]).joined(separator: ";")]
            )
        case .eval, .evalsha, .evalRo, .evalshaRo:
            (
                .moment,
                [
                    "EVAL \"local t = {} for i = 0, 399 do t[i + 1] = redis.call('get', 'k' .. i) end return t\" 0",
                    "EVAL \"return string.rep('x', 1000000)\" 0",
                ]
            )
        case .keys, .scan, .stateList:
            (
                .slices,
                [
                    "KEYS *", "SCAN 0 COUNT 10000", "STATE.LIST /", "STATE.LIST / KEYS",
                    "STATE.LIST / CHILDREN",
                ]
            )
        case .stateChanges: (.slices, ["STATE.CHANGES / FROM 0"])
        case .pubsub:
            (
                .slices,
                [
                    "PUBSUB CHANNELS", "PUBSUB SHARDCHANNELS", "PUBSUB NUMPAT",
                    "PUBSUB NUMSUB\(keys)",
                ]
            )
        case .client: (.slices, ["CLIENT LIST", "CLIENT INFO"])
        case .stateWatches: (.slices, ["STATE.WATCHES"])
        case .stateHandler, .stateHandlers: (.moment, ["STATE.HANDLERS"])
        case .stateTop: (.moment, ["STATE.TOP"])
        case .stateDefaults, .stateRules, .stateExplain, .stateCheck:
            (.moment, ["STATE.DEFAULTS", "STATE.RULES", "STATE.EXPLAIN k0", "STATE.CHECK"])
        case .info, .command, .config, .module, .acl, .slowlog, .latency, .stateStatus,
            .stateMetrics:
            (
                .fixed,
                [
                    "INFO", "COMMAND DOCS", "COMMAND", "CONFIG GET *", "SLOWLOG GET",
                    "STATE.STATUS", "STATE.METRICS",
                ]
            )
        case .subscribe, .psubscribe, .ssubscribe, .unsubscribe, .punsubscribe, .sunsubscribe:
            (.small, [])
        case .stateGet: (.value, ["STATE.GET k0"])
        case .stateSet, .stateApply, .stateDelete, .stateRevert, .stateCompact, .stateMoment,
            .stateSync, .stateClaim, .stateMirror, .stateReload, .stateUnwatch, .stateWatch:
            (.small, ["STATE.SET w \(text)", "STATE.SYNC"])
        case .stateHistory, .stateBackup: (.slices, [])
        }
    }

    private static let text = String(repeating: "v", count: valueByteCount - 100)

    private static func limit(_ bound: Bound) -> Int {
        switch bound {
        case .small: 64 << 10
        case .fixed: 512 << 10
        case .value: 3 * valueByteCount
        case .moment: momentByteCount + 2 * valueByteCount
        case .slices: replyByteCount + 1_024
        }
    }

    private func byteCount(_ reply: Reply) -> Int {
        switch reply {
        case .bulk(let bytes): bytes.count + 8
        case .array(let elements), .push(let elements): elements.reduce(8) { $0 + byteCount($1) }
        case .map(let pairs):
            pairs.reduce(8) { $0 + byteCount($1.key) + byteCount($1.value) }
        default: "\(reply)".utf8.count
        }
    }

    @Test func `bounded: no verb answers more at one moment than its limit`() throws {
        let server = try ServedKeyspace {
            $0.limits.valueByteCount = Self.valueByteCount
            $0.momentByteCount = Self.momentByteCount
            $0.replyByteCount = Self.replyByteCount
        }
        let peer = try server.connect(3)
        for number in 0..<400 { _ = try peer.ask("SET k\(number) \(Self.text)") }
        var others: [Peer] = []
        for number in 0..<60 {
            let other = try server.connect(3)
            try other.send(
                "SUBSCRIBE " + (0..<30).map { "channel/\(number)/\($0)" }.joined(separator: " ")
            )
            _ = try other.next(30)
            for place in 0..<10 { _ = try other.ask("STATE.WATCH k\(place)") }
            _ = try other.ask("CLIENT SETNAME \(String(repeating: "n", count: 200))")
            others.append(other)
        }
        for verb in Verb.Name.allCases {
            let (bound, commands) = Self.row(of: verb)
            for command in commands {
                let parts = command.split(separator: ";").map(String.init)
                try peer.send(parts.map(Peer.words))
                let reply = try #require(try peer.next(parts.count).last)
                if let error = reply.errorText {
                    let isKnown = ["TOOBIG", "EXECABORT", "ERR"].contains { error.hasPrefix($0) }
                    #expect(isKnown, "\(command.prefix(60)): \(error)")
                    continue
                }
                let count = byteCount(reply)
                #expect(count <= Self.limit(bound), "\(command.prefix(60)): \(count) bytes")
            }
        }
    }

    @Test(arguments: ["MGET", "EXEC"])
    func `a reply that is too large for one moment is refused, and says what to do`(
        verb: String
    ) throws {
        let server = try ServedKeyspace {
            $0.limits.valueByteCount = Self.valueByteCount
            $0.momentByteCount = Self.momentByteCount
        }
        let peer = try server.connect()
        _ = try peer.ask("SET k \(Self.text)")
        func read(_ count: Int) throws -> Reply {
            let keys = [String](repeating: "k", count: count)
            guard verb == "EXEC" else { return try peer.ask("MGET " + keys.joined(separator: " ")) }
            try peer.send((["MULTI"] + keys.map { "GET \($0)" } + ["EXEC"]).map(Peer.words))
            return try #require(try peer.next(count + 2).last)
        }
        #expect(try read(5).elements?.count == 5)
        let error = try #require(try read(6).errorText)
        #expect(error.contains("TOOBIG"), "\(error)")
        #expect(error.contains("ask for less at once"), "\(error)")
        #expect(try peer.ask("PING") == .simple("PONG"))
    }

    @Test func `a listing of channels has each that is there from its beginning to its end, once`()
        throws
    {
        let server = try ServedKeyspace { $0.subscriptionCount = 30_000 }
        let (stays, goes, asking) = try (server.connect(3), server.connect(3), server.connect(3))
        func names(_ prefix: String, _ range: Range<Int>) -> String {
            range.map { " \(prefix)\($0)" }.joined()
        }
        for start in stride(from: 0, to: 20_000, by: 1_000) {
            // In turns, so that those that go are everywhere among those that stay.
            try stays.send("SUBSCRIBE" + names("stays/", start..<start + 1_000))
            _ = try stays.next(1_000)
            try goes.send("SUBSCRIBE" + names("goes/", start..<start + 1_000))
            _ = try goes.next(1_000)
        }
        let expected = Set((0..<20_000).map { "stays/\($0)" })
        for round in 0..<10 {
            let part = round * 2_000..<round * 2_000 + 2_000
            try asking.send("PUBSUB CHANNELS")
            try goes.send("UNSUBSCRIBE" + names("goes/", part))
            try goes.send("SUBSCRIBE" + names("new/", part))
            let found = try #require(try asking.next().elements?.compactMap(\.textValue))
            #expect(Set(found).count == found.count)
            #expect(expected.isSubset(of: found))
            _ = try goes.next(4_000)
        }
    }

    @Test func `bounded: in a transaction, keys count that a listing only compares`() throws {
        let stage = try AccessStage(#"{"keys": "/", "read": ["*"], "write": ["*"]}"#) {
            $0.stepCount = 1_000
        }
        try stage.change((0..<400).map { ("some/key/\($0)", "1") })
        let peer = try stage.connect()
        func list(_ count: Int) throws -> Reply {
            let commands = (0..<count).map { _ in "KEYS *nothing*" }
            try peer.send((["MULTI"] + commands + ["EXEC"]).map(Peer.words))
            return try #require(try peer.next(count + 2).last)
        }
        #expect(try list(2).elements?.count == 2)
        #expect(try list(40).errorText?.contains("more than") == true)
    }
}
