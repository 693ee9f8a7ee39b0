import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

struct ScanTests {
    private let server: ServedKeyspace

    init() throws { server = try ServedKeyspace() }

    /// One step of a scan: the next cursor and the keys.
    private func step(
        _ peer: Peer,
        _ cursor: String,
        _ options: String
    ) throws -> (cursor: String, keys: [String]) {
        let reply = try #require(try peer.ask("SCAN \(cursor) \(options)").elements)
        let keys = try #require(reply[1].elements)
        return (try #require(reply[0].textValue), keys.compactMap(\.textValue))
    }

    @Test(arguments: Seed.each(3))
    func `every key that stays is told exactly once while others come and go`(
        seed: UInt64
    ) throws {
        var random = SplitMix(seed: seed)
        let (peer, other) = try (server.connect(), server.connect())
        let staying = (0..<300).map { "stay/\(Int.random(in: 0..<1 << 40, using: &random)).\($0)" }
        for key in staying { _ = try peer.ask("SET \(key) 1") }
        var told: [String: Int] = [:]
        var cursor = "0"
        repeat {
            let count = Int.random(in: 1...30, using: &random)
            let found: [String]
            // Any connection may go on.
            (cursor, found) = try step(random.chance(50) ? peer : other, cursor, "COUNT \(count)")
            #expect(found.count <= count)
            for key in found { told[key, default: 0] += 1 }
            for _ in 0..<3 {
                let key = "stay/\(Int.random(in: 0..<1 << 40, using: &random)).x"
                _ = try other.ask("SET \(key) 1")
                if random.chance(60) { _ = try other.ask("DEL \(key)") }
            }
        } while cursor != "0"
        for key in staying { #expect(told[key] == 1, "\(key)") }
    }

    @Test func `MATCH looks only below its literal part, and COUNT counts what is looked at`()
        throws
    {
        let peer = try server.connect()
        for number in 0..<100 { _ = try peer.ask("MSET a/\(number) 1 b/\(number) 1") }
        var (cursor, keys) = try step(peer, "0", "MATCH a/*5 COUNT 1000")
        #expect(cursor == "0")
        #expect(keys.sorted() == (0..<10).map { $0 == 0 ? "a/5" : "a/\($0)5" }.sorted())
        var steps = 0
        var found: [String] = []
        repeat {
            (cursor, keys) = try step(peer, cursor, "MATCH b/?5")
            found += keys
            steps += 1
        } while cursor != "0"
        #expect(found.count == 9)
        #expect(steps == 10)
        (cursor, keys) = try step(peer, "0", "MATCH a/77")
        #expect(keys == ["a/77"])
        #expect(cursor == "0")
        (cursor, keys) = try step(peer, "0", "COUNT 200")
        #expect(cursor == "0")
        #expect(keys.count == 200)
    }

    @Test func `a scan of nothing ends at once`() throws {
        try server.connect().expect("> SCAN 0\n[\"0\", []]")
    }

    @Test func `a cursor that is too old is refused, not begun again`() throws {
        let server = try ServedKeyspace { $0.scanCount = 2 }
        let peer = try server.connect()
        _ = try peer.ask("MSET a 1 b 1 c 1")
        let cursors = try (0..<3).map { _ in try step(peer, "0", "COUNT 1").cursor }
        #expect(
            try peer.ask("SCAN \(cursors[0])").errorText
                == "ERR cursor \(cursors[0]) is no longer valid; begin again with 0"
        )
        #expect(try step(peer, cursors[2], "").keys == ["b", "c"])
        #expect(try step(peer, cursors[1], "").keys == ["b", "c"])
    }

    @Test func `a scan goes on however much other clients of the same user scan`() throws {
        let server = try ServedKeyspace { $0.scanCount = 4 }
        let (peer, other) = try (server.connect(), server.connect())
        _ = try peer.ask("MSET " + (0..<30).map { "k\(100 + $0) 1" }.joined(separator: " "))
        var found: [String] = []
        var cursor = "0"
        repeat {
            let page = try step(peer, cursor, "COUNT 1")
            found += page.keys
            // Whole scans, and some that are never ended.
            var others = "0"
            repeat { others = try step(other, others, "COUNT 7").cursor } while others != "0"
            for _ in 0..<3 { _ = try step(other, "0", "COUNT 1") }
            // A reply that was lost may be asked for again.
            if page.cursor != "0", found.count % 5 == 0 {
                #expect(try step(peer, page.cursor, "COUNT 1").keys.count == 1)
            }
            cursor = page.cursor
        } while cursor != "0"
        #expect(found == (0..<30).map { "k\(100 + $0)" })
    }

    @Test func `TYPE lists strings, and nothing of other types`() throws {
        let peer = try server.connect()
        _ = try peer.ask("MSET a 1 b 1")
        #expect(try step(peer, "0", "TYPE string MATCH a*").keys == ["a"])
        #expect(try step(peer, "0", "TYPE STRING").keys == ["a", "b"])
        try peer.expect("> SCAN 0 TYPE hash\n> SCAN 0 TYPE\n[\"0\", []]\n-ERR syntax error")
    }

    @Test func `a cursor of an earlier process is refused`() throws {
        let first = try server.connect()
        _ = try first.ask("MSET a 1 b 1 c 1")
        let cursor = try step(first, "0", "COUNT 1").cursor
        let later = try ServedKeyspace()
        let other = try later.connect()
        _ = try other.ask("MSET a 1 b 1 c 1")
        _ = try step(other, "0", "COUNT 1")
        #expect(try other.ask("SCAN \(cursor)").errorText?.hasPrefix("ERR cursor") == true)
    }

    @Test func `a page ends where a reply may not be longer, whatever COUNT says`() throws {
        let server = try ServedKeyspace { $0.replyByteCount = 1_000 }
        let peer = try server.connect()
        let keys = (0..<100).map { "key/with/a/name/of/some/length/\(100 + $0)" }
        for key in keys { _ = try peer.ask("SET \(key) 1") }
        var found: [String] = []
        var cursor = "0"
        repeat {
            let page = try step(peer, cursor, "COUNT 1000000")
            #expect((1...30).contains(page.keys.count))
            found += page.keys
            cursor = page.cursor
        } while cursor != "0"
        #expect(found == keys)
    }
}
