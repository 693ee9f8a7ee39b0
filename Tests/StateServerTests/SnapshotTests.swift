import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// Watches beside writers, audited against what was committed.
struct SnapshotTests {
    private let backing = HeldBacking(isHeld: false)

    private func fill(_ peer: Peer, keys: Int, byteCount: Int) throws {
        let value = String(repeating: "v", count: byteCount)
        for first in stride(from: 0, to: keys, by: 100) {
            try peer.send((first..<first + 100).map { Peer.words("SET \(key($0)) \(value)") })
            _ = try peer.next(100)
        }
    }

    private func key(_ number: Int) -> String {
        "\(number.isMultiple(of: 3) ? "a" : "b")/\(number)"
    }

    /// One to three changes of keys all over the keyspace, as one command.
    private func transaction(_ random: inout SplitMix) -> [[UInt8]] {
        let keys = (0..<Int.random(in: 1...3, using: &random)).map { _ in
            key(Int.random(in: 0..<1_200, using: &random))
        }
        if random.chance(25) { return Peer.words("DEL " + keys.joined(separator: " ")) }
        let value = String(random.next(), radix: 36)
        let size = random.chance(20) ? 2_000 : 1
        return Peer.words(
            "MSET "
                + keys.map { "\($0) \(String(repeating: value, count: size / 10 + 1))" }
                .joined(separator: " ")
        )
    }

    private func pushes(_ replies: [Reply], of watch: Int64) -> [Reply] {
        replies.filter { $0.elements?[1] == .integer(watch) }
    }

    @Test(arguments: Seed.each(3))
    func `ordered, unique, reliable, atomic: a snapshot beside writers, and the commits after it`(
        seed: UInt64
    ) throws {
        var random = SplitMix(seed: seed)
        let server = try ServedKeyspace(backing)
        let writers = try (0..<4).map { _ in try server.connect() }
        try fill(writers[0], keys: 1_000, byteCount: 2_000)
        let peer = try server.connect(3)
        var replies: [Reply] = []
        try peer.send("STATE.WATCH / SNAPSHOT", "STATE.WATCH a/ SNAPSHOT")
        var expected = 0
        for step in 0..<600 {
            let count = Int.random(in: 1...5, using: &random)
            try writers[step % 4].send((0..<count).map { _ in transaction(&random) })
            expected += count
            if random.chance(30) { replies += try peer.arrived() }
            if step == 300 { try peer.send("STATE.WATCH b/1*") }
        }
        for writer in writers { try writer.send("SET end/\(expected) 1") }
        try server.waitUntil("the last commit") {
            for writer in writers { _ = try writer.arrived() }
            replies += try peer.arrived()
            return try server.connect().ask("EXISTS end/\(expected)") == .integer(1)
        }
        // What comes after the reply to this one was not due before.
        try peer.send("PING end")
        while replies.last != .bulk(Array("end".utf8)) { replies.append(try peer.next()) }
        try waitForSync(peer, &replies, watches: [1, 2])
        let kept = backing.kept
        let reply = replies.first { $0["watch"] == .integer(3) }
        let live = try #require(reply?["revision"]?.integerValue)
        let all = try WatchAudit(kept, "/")
        #expect(all.fault(in: pushes(replies, of: 1), liveFrom: nil) == nil)
        let prefix = try WatchAudit(kept, "a/")
        #expect(prefix.fault(in: pushes(replies, of: 2), liveFrom: nil) == nil)
        let glob = try WatchAudit(kept, "b/1*")
        #expect(glob.fault(in: pushes(replies, of: 3), liveFrom: live) == nil)
    }

    /// A snapshot that the client was too slow for ends when it has read on.
    private func waitForSync(_ peer: Peer, _ replies: inout [Reply], watches: [Int64]) throws {
        func isLive(_ watch: Int64) -> Bool {
            let kinds = pushes(replies, of: watch).compactMap { $0.elements?[0].textValue }
            return kinds.lastIndex(of: "state.synced") ?? -1 > kinds.lastIndex(of: "state.gap")
                ?? -1
        }
        while !watches.allSatisfy(isLive) { replies.append(try peer.next()) }
    }

    @Test func `a gap is never silent: a watch that has fallen behind is told of it when it ends`()
        throws
    {
        let server = try ServedKeyspace(backing) { $0.outputByteCount = 1 << 20 }
        let (writer, peer) = try (server.connect(), server.connect(3))
        _ = try peer.ask("STATE.WATCH /")
        let value = String(repeating: "x", count: 100_000)
        for _ in 0..<30 { _ = try writer.ask("SET k \(value)") }
        // The second is read once there is some room, before there is enough for a piece.
        try peer.send("STATE.WATCH l", "STATE.UNWATCH 1")
        var kinds: [String] = []
        while kinds.last != "+OK" {
            let reply = try peer.next()
            kinds.append(reply.elements?[0].textValue ?? reply.shown)
        }
        #expect(kinds.count { $0 == "state.change" } < 30)
        // A piece of the state may have followed, but not the end of it.
        let gap = try #require(kinds.lastIndex(of: "state.gap"))
        #expect(kinds[gap...].dropFirst().dropLast().allSatisfy { $0 == "state.change" })
    }

    @Test(arguments: Seed.each(2))
    func `a gap is never silent: a watcher that stops reading gets one, a snapshot, and is live`(
        seed: UInt64
    ) throws {
        var random = SplitMix(seed: seed)
        let limit = 512 << 10
        let server = try ServedKeyspace(backing) { $0.outputByteCount = limit }
        let writer = try server.connect()
        let peer = try server.connect(3)
        let other = try server.connect(3)
        _ = try peer.ask("STATE.WATCH /")
        _ = try other.ask("STATE.WATCH a/1")
        var told: [Reply] = []
        for _ in 0..<400 {
            try writer.send((0..<20).map { _ in transaction(&random) })
            _ = try writer.next(20)
            told += try other.arrived()
        }
        // What waits for the one that does not read is bounded; the others are up to date.
        let list = try #require(try writer.ask("CLIENT LIST").textValue)
        let waiting = list.split(separator: " ").compactMap { field in
            field.hasPrefix("omem=") ? Int(field.dropFirst(5)) : nil
        }
        #expect(waiting.max() ?? 0 > 0)
        #expect(waiting.max() ?? 0 < limit + 64 << 10)
        #expect(try writer.ask("SET a/1 last") == .simple("OK"))
        while told.last?.elements?[3].shown != #"[["a/1", "last"]]"# {
            told.append(try other.next())
        }
        let audit = try WatchAudit(backing.kept, "a/1")
        #expect(audit.fault(in: told, liveFrom: 0) == nil)

        var replies: [Reply] = []
        while replies.last?.elements?[0].textValue != "state.gap" {
            replies.append(try peer.next())
        }
        try waitForSync(peer, &replies, watches: [1])
        _ = try writer.ask("SET end 1")
        while replies.last?.elements?[3...].first?.shown != #"[["end", "1"]]"# {
            replies.append(try peer.next())
        }
        let whole = try WatchAudit(backing.kept, "/")
        #expect(whole.fault(in: replies, liveFrom: 0) == nil)
    }
}
