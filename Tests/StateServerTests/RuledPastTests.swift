import StateEngine
import StateTestSupport
import StateWire
import Testing

/// Looking back, and resuming watches, where rules keep less history than the daemon.
struct RuledPastTests {
    private let stage: AccessStage
    private let peer: Peer

    init() throws {
        stage = try AccessStage(
            #"{"keys": "m/", "history": 0}, {"keys": "t/", "history": {"changes": 2}}, "#
                + #"{"keys": "/", "admin": ["*"]}"#
        )
        peer = try stage.connect()
    }

    /// Sets `m/a`, `t/a` and `o` five times: the last are revisions 14, 15 and 16, the rules are 1.
    private func fill() throws {
        for value in 1...5 {
            for key in ["m/a", "t/a", "o"] { _ = try peer.ask("SET \(key) \(value)") }
        }
        #expect(try peer.ask("STATE.COMPACT")["compacted"] == .integer(0))
    }

    @Test func `a version that a rule did not keep is COMPACTED, never absent`() throws {
        try fill()
        let refused = "COMPACTED revision 4 is compacted; the oldest available is "
        #expect(try peer.ask("STATE.GET m/a AT 4").errorText == refused + "14")
        #expect(try peer.ask("STATE.LIST m/ AT 4").errorText == refused + "14")
        #expect(try peer.ask("STATE.LIST / AT 4").errorText?.hasPrefix(refused) == true)
        #expect(try peer.ask("STATE.REVERT / TO 4").errorText?.hasPrefix(refused) == true)
        #expect(try peer.ask("GET o").textValue == "5")
        #expect(try peer.ask("STATE.GET t/a AT 4").errorText == refused + "9")
        #expect(try peer.ask("STATE.GET t/a AT 9")["value"]?.textValue == "3")
        #expect(try peer.ask("STATE.GET m/a AT 14")["value"]?.textValue == "5")
        #expect(try peer.ask("STATE.LIST o AT 4").listing == [["o", "1"]])
        #expect(
            try peer.ask("STATE.LIST / AT 14").listing == [
                ["m/a", "5"], ["o", "4"], ["t/a", "4"],
            ]
        )
    }

    @Test func `the history of a key has what the rule keeps, and goes back to it`() throws {
        try fill()
        let values = { (key: String) in
            try peer.ask("STATE.HISTORY \(key)").elements?.compactMap { $0["value"]?.textValue }
        }
        #expect(try values("m/a") == ["5"])
        #expect(try values("t/a") == ["5", "4", "3"])
        #expect(try values("o") == ["5", "4", "3", "2", "1"])
        #expect(try peer.ask("STATE.REVERT t/a TO 9")["count"] == .integer(1))
        #expect(try peer.ask("GET t/a").textValue == "3")
        #expect(try peer.ask("STATE.REVERT o TO 4")["count"] == .integer(1))
    }

    @Test(arguments: ["m/", "/", "m/a o", "*"])
    func `a watch that resumes below what a rule removed gets a gap`(patterns: String) throws {
        try fill()
        let watcher = try stage.connect()
        _ = try watcher.ask("STATE.WATCH \(patterns) FROM 4")
        #expect(try watcher.next().pushKind == "state.gap")
        let reply = try peer.ask("STATE.CHANGES SINCE 4 \(patterns)")
        #expect(reply.elements?.first?.textValue == "gap")
    }

    @Test func `a watch of other keys, and one from above it, gets each commit`() throws {
        try fill()
        let watcher = try stage.connect()
        _ = try watcher.ask("STATE.WATCH o FROM 4")
        #expect(try watcher.next(4).map(\.pushRevision) == [7, 10, 13, 16])
        let other = try stage.connect()
        _ = try other.ask("STATE.WATCH t/ FROM 9")
        #expect(try other.next(2).map(\.pushRevision) == [12, 15])
        let late = try stage.connect()
        _ = try late.ask("STATE.WATCH / FROM 15")
        #expect(try late.next().pushRevision == 16)
    }

    @Test func `a watch of latest values needs no gap: the newest change of each key is there`()
        throws
    {
        try fill()
        _ = try peer.ask("DEL m/a")
        #expect(try peer.ask("STATE.COMPACT")["compacted"] == .integer(0))
        let watcher = try stage.connect()
        _ = try watcher.ask("STATE.WATCH m/ FROM 4 LATEST")
        let pushes = try watcher.next(2)
        #expect(pushes.map(\.pushKind) == ["state.change", "state.synced"])
    }

    @Test func `a key that was deleted is absent since, and COMPACTED before`() throws {
        for command in ["SET m/a 1", "SET m/a 2", "DEL m/a", "SET o 1", "SET m/a 3", "SET o 2"] {
            _ = try peer.ask(command)
        }
        _ = try peer.ask("STATE.COMPACT")
        #expect(try peer.ask("STATE.GET m/a AT 6")["value"]?.textValue == "3")
        for revision in 2...5 {
            let answer = try peer.ask("STATE.GET m/a AT \(revision)").errorText
            #expect(answer?.hasPrefix("COMPACTED") == true)
        }
        _ = try peer.ask("DEL m/a")
        _ = try peer.ask("STATE.COMPACT")
        #expect(try peer.ask("STATE.GET m/a AT 8") == .null)
    }

    @Test func `what hides a key hides that its past is gone`() throws {
        let stage = try AccessStage(
            #"{"keys": "m/", "history": 0, "read": ["other"]}, {"keys": "/", "admin": ["*"]}"#
        )
        for value in 1...3 {
            try stage.set("m/a", "\(value)")
            try stage.set("o", "\(value)")
        }
        let peer = try stage.connect()
        #expect(try peer.ask("STATE.COMPACT")["compacted"] == .integer(0))
        #expect(try peer.ask("STATE.LIST / AT 3").listing == [["o", "1"]])
    }

    @Test func `explain and rules show it`() throws {
        let explained = try peer.ask("STATE.EXPLAIN t/a").elements ?? []
        let option = explained.first { $0.elements?[0].textValue == "history" }
        #expect(option?.elements?[1].textValue == #"{"changes":2}"#)
        #expect(option?.elements?[2] == .integer(2))
        let rules = try peer.ask("STATE.RULES").elements ?? []
        #expect(rules.first?.elements?[2].textValue == #"{"history":0}"#)
        let other = try peer.ask("STATE.EXPLAIN o").elements ?? []
        #expect(!other.contains { $0.elements?[0].textValue == "history" })
    }

    @Test
    func `a reload holds for the history that is there, and one that allows more restores none`()
        throws
    {
        try fill()
        try stage.exchange(#"{"keys": "/", "admin": ["*"], "history": {"changes": 1}}"#)
        _ = try peer.ask("STATE.COMPACT")
        #expect(try peer.ask("STATE.HISTORY o").elements?.count == 2)
        try stage.exchange(#"{"keys": "/", "admin": ["*"]}"#)
        for value in 6...8 { _ = try peer.ask("SET o \(value)") }
        _ = try peer.ask("STATE.COMPACT")
        #expect(try peer.ask("STATE.HISTORY o").elements?.count == 5)
        let watcher = try stage.connect()
        _ = try watcher.ask("STATE.WATCH o FROM 4")
        #expect(try watcher.next().pushKind == "state.gap")
    }
}
