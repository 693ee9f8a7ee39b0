import StateEngine
import StateTestSupport
import StateWire
import Testing

/// Limits of watches that rules say, counted as watches come and go.
@Suite(.timeLimit(.minutes(1)))
struct WatchQuotaTests {
    private static let refusal =
        "watch for the rule, the limit is 1 (rule 1, limits.watches)"

    private func begins(_ peer: Peer, _ patterns: String) throws -> Bool {
        let reply = try peer.ask("STATE.WATCH \(patterns)")
        if let error = reply.errorText {
            #expect(error.hasSuffix(Self.refusal), "\(error)")
            return false
        }
        return reply["watch"] != nil
    }

    @Test func `a limit of watches follows each that comes and goes, and new rules`() throws {
        let rules = #"{"keys": "seen/", "limits": {"watches": 1}}"#
        let stage = try AccessStage(rules)
        let (first, second) = (try stage.connect(), try stage.connect())
        // However many patterns of a rule a watch has, it counts once, and others not at all.
        #expect(try begins(first, "seen/a seen/b* seen/ free/a"))
        #expect(try begins(first, "free/b"))
        #expect(!(try begins(first, "seen/c")))
        #expect(!(try begins(second, "seen/c")))
        #expect(try first.ask("STATE.UNWATCH 1").shown == "+OK")
        #expect(try begins(second, "seen/c"))
        #expect(!(try begins(first, "seen/a")))
        second.socket.end()
        try stage.server.waitUntil("the end of its watch") { try begins(first, "seen/a") }
        // Another rule counts what is watched already.
        try stage.exchange(#"{"keys": "free/", "limits": {"watches": 1}}"#)
        let third = try stage.connect()
        #expect(!(try begins(third, "free/z")))
        #expect(try begins(third, "seen/z"))
        #expect(try first.ask("STATE.UNWATCH 2").shown == "+OK")
        #expect(try begins(third, "free/z"))
    }

    @Test(arguments: ["/", "*", "s*", "se*n/*", "seen/", "seen/a*", "free/ seen/", "*x"])
    func `a wider pattern counts for the rule of the keys that it shows`(pattern: String) throws {
        let stage = try AccessStage(
            #"{"keys": "seen/", "limits": {"watches": 1}}, {"keys": "free/", "limits": {"watches": 9}}"#
        )
        let peer = try stage.connect()
        #expect(try begins(peer, pattern))
        #expect(!(try begins(peer, "seen/b")))
        #expect(!(try begins(peer, pattern)))
        #expect(try begins(peer, "free/b"))
        #expect(try peer.ask("STATE.UNWATCH 1").shown == "+OK")
        #expect(try begins(peer, "seen/b"))
        #expect(!(try begins(peer, pattern)))
    }

    @Test func `a watch of many prefixes costs as much beside many rules as beside few`() throws {
        let rules = (0..<5_000).map { #"{"keys": "s/\#($0)/x", "limits": {"watches": 1000}}"# }
        let stage = try AccessStage(rules.joined(separator: ", "))
        let patterns =
            (0..<100).map { "s/\($0)/" }
            + (1..<890).map { String(repeating: "s", count: $0) + "/" }
        let reply = try stage.connect().ask("STATE.WATCH " + patterns.joined(separator: " "))
        #expect(reply["watch"] != nil, "\(reply.shown.prefix(200))")
    }

    @Test func `a watch of many patterns costs as much beside many others as alone`() throws {
        let stage = try AccessStage(#"{"keys": "seen/", "softLimits": {"watches": 1000000}}"#)
        for client in 0..<5 {
            let peer = try stage.connect()
            for watch in 0..<10 {
                let patterns = (0..<1_000).map { "seen/\(client)/\(watch)/\($0)" }
                let reply = try peer.ask("STATE.WATCH " + patterns.joined(separator: " "))
                try #require(reply["watch"] != nil, "\(reply.shown)")
            }
        }
    }
}
