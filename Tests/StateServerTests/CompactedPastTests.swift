import StateEngine
import StateTestSupport
import StateWire
import Testing

/// Looking back and going back over a history that is compacted meanwhile.
struct CompactedPastTests {
    private let stored: StoredServer
    private let peer: Peer

    init() throws {
        stored = try StoredServer()
        peer = try stored.connect()
    }

    @Test(arguments: Seed.each(2))
    func `from the compacted revision on AT and REVERT are right, below it they are COMPACTED`(
        seed: UInt64
    ) throws {
        var random = SplitMix(seed: seed)
        var model = PastModel()
        var compacted: Int64 = 0
        for _ in 0..<Extent.rounds(6) {
            for _ in 0..<25 { try model.step(peer, &random) }
            compacted = Int64.random(in: compacted...model.revision, using: &random)
            let reply = try peer.ask("STATE.COMPACT TO \(compacted)")
            try #require(reply["compacted"] == .integer(compacted))
            for revision in 0..<compacted { try expectCompacted(revision) }
            for revision in compacted...model.revision {
                let pattern = PastModel.patterns.randomElement(using: &random) ?? "/"
                let list = "STATE.LIST \(pattern) AT \(revision)"
                let expected = model.state(pattern, at: revision).listing
                try #require(try peer.ask(list).listing == expected, "\(list), seed \(seed)")
                let key = PastModel.keys.randomElement(using: &random) ?? "a"
                let entry = try peer.ask("STATE.GET \(key) AT \(revision)")
                #expect(entry["value"]?.textValue == model.states[Int(revision)][key])
            }
            let target = Int64.random(in: compacted...model.revision, using: &random)
            let state = model.state("/", at: target)
            try model.take(try peer.ask("STATE.REVERT / TO \(target)"), state)
            #expect(try peer.ask("STATE.LIST /").listing == state.listing)
        }
    }

    private func expectCompacted(_ revision: Int64) throws {
        for command in ["LIST / AT", "GET a AT", "REVERT / TO"] {
            let answer = try peer.ask("STATE.\(command) \(revision)").errorText
            #expect(answer?.hasPrefix("COMPACTED revision \(revision) is compacted") == true)
        }
    }

    @Test func `pages of what was go on up to the compacted revision, and end beyond it`() throws {
        for value in 1...3 {
            for key in ["a", "b", "c", "d", "e"] { _ = try peer.ask("SET \(key) \(value)") }
        }
        _ = try peer.ask("DEL b d")
        let page = "LIMIT 2 AT 10"
        #expect(try peer.ask("STATE.LIST / \(page)").listing == [["a", "2"], ["b", "2"]])
        #expect(try peer.ask("STATE.COMPACT TO 10")["compacted"] == .integer(10))
        #expect(try peer.ask("STATE.LIST / AFTER b \(page)").listing == [["c", "2"], ["d", "2"]])
        #expect(try peer.ask("STATE.COMPACT TO 11")["compacted"] == .integer(11))
        let answer = try peer.ask("STATE.LIST / AFTER d \(page)").errorText
        #expect(answer?.hasSuffix("the oldest available is 11") == true)
        #expect(try peer.ask("STATE.LIST / AT 11 KEYS").listing.count == 5)
    }

    @Test func `a deleted key that was compacted is brought back, and away, as any other`() throws {
        for command in ["SET k 1", "DEL k", "SET o 1", "SET k 2", "SET o 2", "DEL k"] {
            _ = try peer.ask(command)
        }
        #expect(try peer.ask("STATE.COMPACT TO 3")["compacted"] == .integer(3))
        #expect(try peer.ask("STATE.HISTORY k").elements?.count == 2)
        #expect(try peer.ask("STATE.REVERT k TO 4")["count"] == .integer(1))
        #expect(try peer.ask("GET k").textValue == "2")
        #expect(try peer.ask("STATE.REVERT / TO 3")["count"] == .integer(2))
        #expect(try peer.ask("STATE.LIST /").listing == [["o", "1"]])
        #expect(try peer.ask("STATE.COMPACT")["compacted"] == .integer(3))
        #expect(try peer.ask("STATE.COMPACT TO 8")["compacted"] == .integer(8))
        #expect(try peer.ask("STATE.HISTORY k").elements == [])
        #expect(try peer.ask("STATE.GET k AT 8") == .null)
    }

    /// The history is read in pieces: what changes between two of them is known from what memory superseded first.
    @Test
    func `what changes between two looks at the history is what it was before the first of them`()
        throws
    {
        let keyspace = stored.server.keyspace
        for command in ["MSET a 1 b 1 c 1", "SET a 2"] { _ = try peer.ask(command) }
        let request = PastState.Request(
            PatternSet([.everything]),
            at: 1,
            byteLimit: 1 << 20,
            advice: ""
        )
        let past = keyspace.withCore { PastState(request, in: $0) }
        let history = try #require(try keyspace.history?.openHistory())
        #expect(try !past.readSlice(of: history))
        for command in ["SET c 4", "DEL b", "SET c 5", "SET b 6", "SET d 7", "DEL d"] {
            _ = try peer.ask(command)
        }
        #expect(try past.readSlice(of: history))
        var found: [String: String] = [:]
        try keyspace.withCore { (core) throws(StateError) in
            _ = try past.forEach(in: core, after: nil, comparing: .max) { key, version in
                switch version {
                case .present(let record): found[key.text] = record.value?.text
                case .past(let version):
                    found[key.text] = String(decoding: version.value, as: UTF8.self)
                }
                return true
            }
            past.endTracking(in: core)
        }
        #expect(found == ["a": "1", "b": "1", "c": "1"])
    }
}
