import Glibc
import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// What depends on keys that somebody may not read, beside the replies: bookmarks, pieces, limits and messages.
struct HiddenKeyTests {
    private let me = geteuid()

    /// Keys that only another may read, and bookmarks that never are due.
    private func stage(_ rules: String) throws -> AccessStage {
        try AccessStage(rules) { $0.progressMilliseconds = .max / 2 }
    }

    @Test(arguments: ["", " LATEST"])
    func `a change that somebody may not see hastens none of his bookmarks`(mode: String) throws {
        let stage = try stage(#"{"keys": "own/", "read": ["owner"]}"#)
        let peer = try stage.connect()
        _ = try peer.ask("STATE.WATCH own/\(mode)")
        for number in 0..<3 {
            try stage.set("own/k", "\(number)")
            #expect(try peer.ask("SET free \(number)").shown == "+OK")
        }
        try stage.server.catchUp()
        #expect(try peer.arrived() == [])
    }

    // MARK: Snapshots

    /// 200 KiB more than two pieces that may be seen, and beside each value keys that may not.
    private func pieces(hiddenCount: Int, _ mode: String) throws -> [String] {
        let stage = try stage(#"{"keys": "v/*h", "read": ["other"]}"#)
        let value = String(repeating: "v", count: 7_000)
        try stage.change(
            (100..<200).flatMap { number in
                [("v/\(number)", value)] + (0..<hiddenCount).map { ("v/\(number)/\($0)h", "h") }
            }
        )
        let peer = try stage.connect()
        _ = try peer.ask("STATE.WATCH v/*\(mode)")
        var pushes: [String] = []
        repeat {
            pushes.append(try peer.next().shown)
        } while !pushes[pushes.count - 1].contains("synced")
        return pushes
    }

    @Test(arguments: [" SNAPSHOT", " SNAPSHOT LATEST"])
    func `the pieces of a snapshot do not depend on what is hidden between them`(
        mode: String
    ) throws {
        let pushes = try pieces(hiddenCount: 0, mode)
        #expect(pushes.count > 3)
        #expect(try pieces(hiddenCount: 200, mode) == pushes)
    }

    /// Takes pieces and commits as a client does.
    private final class Client: WatchReceiver {
        var state: [String: String] = [:]
        var isSynced = false
        var hasRoom: Bool { true }

        func receive(_ notice: Watcher.Notice, in core: KeyspaceCore) {
            switch notice {
            case .piece(let records), .commit(_, let records):
                for record in records {
                    let key = String(decoding: record.key, as: UTF8.self)
                    state[key] = record.value.map { String(decoding: $0, as: UTF8.self) }
                }
            case .synced: isSynced = true
            case .gap, .latest: Issue.record("the snapshot begins anew")
            }
        }

        func keep(revision: Int64, changes: [Record], in core: KeyspaceCore) -> Bool { true }
    }

    @Test(arguments: Seed.each(20))
    func `a snapshot of what may be seen is whole, whatever changes while it is looked for`(
        seed: UInt64
    ) throws {
        var random = SplitMix(seed: seed)
        let stage = try stage(#"{"keys": "v/", "read": ["owner"]}"#)
        func change() throws {
            let owner = Bool.random(using: &random) ? me : AccessStage.other
            let key = "v/\(Int.random(in: 0..<60, using: &random))"
            let isSet = Int.random(in: 0..<3, using: &random) > 0
            try stage.change(
                [(key, isSet ? "\(Int.random(in: 0..<99, using: &random))" : nil)],
                by: owner
            )
        }
        for _ in 0..<120 { try change() }
        let subject = Subject(uid: me, groups: [], isPrivileged: false)
        let client = Client()
        let watcher = stage.server.keyspace.withCore { core in
            let watcher = Watcher(PatternSet(["v/*"]), .snapshot, for: subject, in: core)
            watcher.receiver = client
            core.hub.add(watcher)
            return watcher
        }
        while !client.isSynced {
            stage.server.keyspace.withCore { watcher.advance(in: $0, byteLimit: 300) }
            try change()
        }
        for _ in 0..<20 { try change() }
        let expected = stage.server.keyspace.withCore { core in
            var expected: [String: String] = [:]
            core.forEachDurable(PatternSet([.everything]), after: nil) { record in
                guard core.visibility(of: subject).mayReveal(.read, about: record) else {
                    return true
                }
                let key = String(decoding: record.key, as: UTF8.self)
                expected[key] = record.value.map { String(decoding: $0, as: UTF8.self) }
                return true
            }
            core.hub.remove(watcher)
            return expected
        }
        #expect(client.state == expected)
    }

    // MARK: Limits

    @Test func `a limit does not tell how much is hidden`() throws {
        let stage = try stage(
            #"{"keys": "few/", "read": ["owner"], "limits": {"keys": 2, "bytes": 100}}"#
        )
        try stage.change([("few/a", "1"), ("few/b", "1")])
        let peer = try stage.connect()
        #expect(
            try peer.ask("SET few/new 1").errorText
                == "LIMIT key 'few/new': the rule would exceed its 2 keys "
                + "(rule 1, limits.keys)"
        )
        // Over a hidden key what an absent one is answered.
        #expect(try peer.ask("SET few/a 1").errorText?.contains("exceed its 2 keys") == true)
    }

    @Test func `sums are for those who may read all keys`() throws {
        let stage = try stage(#"{"keys": "own/", "read": ["owner"]}"#)
        let peer = try stage.connect()
        #expect(
            try peer.ask("DBSIZE").errorText
                == "NOPERM DBSIZE would count keys that uid \(me) may not read; use STATE.LIST / COUNT to count the others"
        )
        #expect(try peer.ask("STATE.STATUS")["keys"] == nil)
        #expect(try peer.ask("INFO").shown.contains("used_memory") == false)
        try stage.exchange(#"{"keys": "own/", "write": ["owner"]}"#)
        #expect(try peer.ask("DBSIZE").shown == "0")
        #expect(try peer.ask("STATE.STATUS")["keys"]?.integerValue == 0)
        #expect(try peer.ask("INFO").shown.contains("used_memory"))
    }

    // MARK: Messages

    /// Escape, its C1 form, what turns the direction of writing, a line end, and no UTF-8.
    private static let hostile =
        Array("\u{1B}[31m\u{9B}1m\u{202E}\u{2067}\u{200F}\r\n".utf8) + [0xFF, 0x9B]

    /// Sends a command; what an error has on the wire, as it came, without its line end; nil for another reply.
    private func error(_ command: [[UInt8]], _ peer: Peer) throws -> [UInt8]? {
        var received: [UInt8] = []
        peer.socket.onArrival = { received += $0 }
        defer { peer.socket.onArrival = { _ in } }
        let reply = try peer.ask(command)
        return reply.errorText == nil ? nil : Array(received.dropLast(2))
    }

    /// Whether bytes are text that changes nothing of what is shown around it.
    private func isHarmless(_ bytes: [UInt8]) -> Bool {
        String(validating: bytes, as: UTF8.self)?.unicodeScalars.contains(where: \.misleads)
            == false
    }

    @Test(arguments: Verb.Name.allCases.filter { $0 != .quit })
    func `no error commands the terminal that it is shown on`(verb: Verb.Name) throws {
        let stage = try stage(#"{"keys": "free", "schema": {"type": "integer"}}"#)
        let peer = try stage.connect()
        let hostile = HiddenKeyTests.hostile
        for count in 0...4 {
            for last in [[], [hostile], [Array("\u{1B}".utf8)]] {
                let arguments = Array(repeating: hostile, count: count) + last
                let text = try error([Array(verb.rawValue.utf8)] + arguments, peer)
                #expect(text.map(isHarmless) ?? true, "\(arguments.count): \(text ?? [])")
                if text == nil, verb == .multi { _ = try peer.ask("DISCARD") }
            }
        }
    }

    @Test func `names in a value that is refused are escaped`() throws {
        let schema =
            #"{"type": "object", "properties": {"a": {"type": "object", "required": ["x"]}}, "additionalProperties": false}"#
        let stage = try stage(#"{"keys": "typed/", "schema": \#(schema)}"#)
        let peer = try stage.connect()
        let name = "\u{1B}]0;title\u{07}\u{9B}31m\u{202E}"
        let value = Array("{\"\(name)\": 1}".utf8)
        let text = try #require(
            try error([Array("SET".utf8), Array("typed/k".utf8), value], peer)
        )
        #expect(text.starts(with: "-REJECTED key 'typed/k': ".utf8))
        #expect(isHarmless(text), "\(text)")
    }
}
