import StateEngine
import StateTestSupport
import StateWire
import Testing

/// What clients see of a commit that fails: its error, once, and nothing else.
struct FailedCommitReplyTests {
    private static let full = StateError(.noSpace, "the disk is full")
    private let backing = HeldBacking()
    private let server: ServedKeyspace

    init() throws { server = try ServedKeyspace(backing) }

    @Test func `a failed commit and what was computed on it are undone`() throws {
        let (first, second) = try (server.connect(), server.connect())
        let watcher = try server.connect(3)
        backing.release()
        #expect(try first.ask("SET k old") == .simple("OK"))
        _ = try watcher.ask("STATE.WATCH /")
        try first.send("SET k new", "PING")
        #expect(backing.held() != nil)
        try second.send("APPEND k er", "GET k", "GET other", "SET k x NX", "MSET k 1 l 2")
        try server.catchUp()
        backing.fail(Self.full)

        let error = "-NOSPACE the disk is full"
        #expect(try first.next(2).map(\.shown) == [error, "+PONG"])
        #expect(try second.next(5).map(\.shown) == [error, error, "(nil)", error, error])
        #expect(try second.ask("GET k") == .bulk(Array("old".utf8)))
        #expect(try second.ask("EXISTS l") == .integer(0))
        #expect(try watcher.arrived() == [])
        #expect(server.log.current.contains { $0.hasPrefix("<3> ") && $0.contains("NOSPACE") })

        // The next commit succeeds, and takes no revision that the failed ones had.
        backing.open()
        _ = try second.ask("SET k again")
        #expect(
            try watcher.next().shown == #"push["state.change", 1, 5, [["k", "again"]]]"#
        )
    }

    @Test func `a commit that storage has after all is told to watchers, not to its writer`() throws
    {
        let unknown = StateError(.readOnly, "outcome unknown: the sync failed")
        let (writer, reader) = try (server.connect(), server.connect(3))
        backing.release()
        #expect(try writer.ask("SET k old") == .simple("OK"))
        _ = try reader.ask("STATE.WATCH /")
        backing.holdReopening()
        try writer.send("SET k new", "GET k")
        #expect(backing.held() != nil)
        backing.fail(unknown, isKept: true)
        let error = "-READONLY outcome unknown: the sync failed"
        #expect(try writer.next(2).map(\.shown) == [error, error])

        // Until the store is open again, reads are answered and writes are not taken.
        #expect(try reader.ask("GET k") == .bulk(Array("old".utf8)))
        #expect(try writer.ask("SET k x").shown.hasPrefix("-READONLY writes are refused until"))
        #expect(try writer.ask("DEL k").shown.hasPrefix("-READONLY writes are refused until"))
        #expect(try writer.ask("SET k x NX") == .null)
        let state = try reader.ask("STATE.STATUS")["storage"]
        #expect(state?.shown.contains("the sync failed") == true)

        backing.openAgain()
        #expect(try reader.next().shown == #"push["state.change", 1, 2, [["k", "new"]]]"#)
        #expect(try reader.ask("GET k") == .bulk(Array("new".utf8)))
        backing.open()
        #expect(try writer.ask("SET k again") == .simple("OK"))
        #expect(try reader.next().shown == #"push["state.change", 1, 3, [["k", "again"]]]"#)
        #expect(try reader.ask("STATE.STATUS")["storage"] == .bulk(Array("ok".utf8)))
        #expect(server.log.current.contains { $0.hasPrefix("<5> ") && $0.contains("1 commit") })
    }

    @Test(arguments: Seed.each(4))
    func `each of many pipelined commands has exactly one reply, in order`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let peers = try (0..<8).map { _ in try server.connect(3) }
        let scripts = (0..<8).map { Script(connection: $0, random: &random) }
        for chunk in 0..<4 {
            for (peer, script) in zip(peers, scripts) {
                try peer.send(script.commands[chunk * 25..<(chunk + 1) * 25].map(Peer.words))
            }
            try server.catchUp()
            try #require(backing.held() != nil)
            let fails = chunk == 3 ? random.chance(50) : chunk == 1
            guard fails else {
                backing.release()
                continue
            }
            let count = server.log.current.count
            backing.fail(Self.full)
            // What is sent before the failure is known would be undone with it, and then nothing would wait.
            try server.waitUntil("the failure") { server.log.current.count > count }
        }
        backing.open()
        var counts: [Int64] = []
        for (peer, script) in zip(peers, scripts) {
            let replies = try peer.next(100)
            for (index, reply) in replies.enumerated() {
                let expectation = script.expectations[index]
                #expect(
                    expectation.allows(reply, or: Self.full),
                    "\(script.commands[index]) was answered with \(reply.shown)"
                )
                if let count = expectation.count(in: reply) { counts.append(count) }
            }
            #expect(try peer.ask("PING end") == .bulk(Array("end".utf8)))
        }
        #expect(Set(counts).count == counts.count, "a count was told twice")
        let last = try peers[0].ask("GET counter").textValue
        #expect(last == String(counts.max() ?? 0))
        #expect(counts.count == counts.max().map(Int.init))
        var kept: [String: String] = [:]
        for change in backing.kept {
            kept[String(decoding: change.key, as: UTF8.self)] = change.value.map {
                String(decoding: $0, as: UTF8.self)
            }
        }
        #expect(server.durable() == kept)
        for peer in peers { peer.socket.end() }
        #expect(try server.faultsAfterLeaving() == [])
    }
}

/// 100 commands of one connection, and what each may be answered with.
private struct Script {
    var commands: [String] = []
    var expectations: [Expectation] = []

    enum Expectation {
        /// Only this, whatever became of commits.
        case exactly(Reply)
        /// This, or the commit's error.
        case reply(Reply)
        case count
        case valueOrNull
        case map
        case array
        /// EXEC of a SET and an INCR.
        case pair

        func allows(_ reply: Reply, or error: StateError) -> Bool {
            if case .exactly(let only) = self { return reply == only }
            if case .error(let found) = reply { return found == error }
            switch self {
            case .exactly: return false
            case .reply(let expected): return reply == expected
            case .count: return reply.integerValue != nil
            case .valueOrNull: return reply == .null || reply.byteValue != nil
            case .map: return reply["durability"]?.textValue == "synced"
            case .array: return reply.elements != nil
            case .pair: return reply.elements?.count == 2 && reply.elements?[0] == .simple("OK")
            }
        }

        /// What INCR counted to, where the command was one and succeeded.
        func count(in reply: Reply) -> Int64? {
            switch self {
            case .count: reply.integerValue
            case .pair: reply.elements?[1].integerValue
            default: nil
            }
        }
    }

    init(connection: Int, random: inout SplitMix) {
        while commands.count < 96 {
            let key = "k\(Int.random(in: 0..<4, using: &random))"
            let token = "\(connection).\(commands.count)"
            switch Int.random(in: 0..<7, using: &random) {
            case 0: add("SET \(key) \(token)", .reply(.simple("OK")))
            case 1: add("GET \(key)", .valueOrNull)
            case 2: add("INCR counter", .count)
            case 3: add("PING \(token)", .exactly(.bulk(Array(token.utf8))))
            case 4: add("STATE.SET \(key) \(token)", .map)
            case 5: add("STATE.LIST /", .array)
            default:
                add("MULTI", .exactly(.simple("OK")))
                add("SET \(key) \(token)", .exactly(.simple("QUEUED")))
                add("INCR counter", .exactly(.simple("QUEUED")))
                add("EXEC", .pair)
            }
        }
        while commands.count < 100 { add("PING", .exactly(.simple("PONG"))) }
    }

    private mutating func add(_ command: String, _ expectation: Expectation) {
        commands.append(command)
        expectations.append(expectation)
    }
}
