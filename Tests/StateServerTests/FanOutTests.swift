import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// Many watches of the same commits: what is told to one must not be told to another of other patterns or options.
struct FanOutTests {
    private let server: ServedKeyspace
    private let writer: Peer

    init() throws {
        server = try ServedKeyspace(HeldBacking(isHeld: false))
        writer = try server.connect()
    }

    @Test func `each of many watches is told its own part of a commit, in its own form`() throws {
        let forms: [(watch: String, commits: [String])] = [
            ("a/", [#"["a/x", "2"]"#, #"["a/x", (nil)]"#]),
            ("b/", [#"["b/y", "2"]"#]),
            ("/", [#"["a/x", "2"], ["b/y", "2"]"#, #"["a/x", (nil)]"#]),
            ("a/ PREVIOUS", [#"["a/x", "2", "1"]"#, #"["a/x", (nil), "2"]"#]),
            ("*/x b/y", [#"["a/x", "2"], ["b/y", "2"]"#, #"["a/x", (nil)]"#]),
        ]
        try #require(try writer.ask("MSET a/x 1 b/y 1").errorText == nil)
        let peers = try (0..<12).map { _ in try server.connect(3) }
        for peer in peers {
            for form in forms { _ = try peer.ask("STATE.WATCH \(form.watch)") }
        }
        try #require(try writer.ask("MSET a/x 2 b/y 2").errorText == nil)
        try #require(try writer.ask("DEL a/x").errorText == nil)
        for peer in peers {
            var told: [Int64: [String]] = [:]
            for _ in 0..<forms.reduce(0, { $0 + $1.commits.count }) {
                let push = try peer.next()
                let number = try #require(push.elements?[1].integerValue)
                told[number, default: []].append(push.shown)
            }
            for (index, form) in forms.enumerated() {
                let shown = zip([2, 3], form.commits).map { revision, changes in
                    #"push["state.change", \#(index + 1), \#(revision), [\#(changes)]]"#
                }
                #expect(told[Int64(index + 1)] == shown, "\(form.watch)")
            }
            #expect(try peer.arrived() == [])
        }
    }

    @Test func `commits settled at once are each told whole to every watch`() throws {
        let backing = HeldBacking()
        let server = try ServedKeyspace(backing)
        defer { backing.open() }
        let peers = try (0..<5).map { _ in try server.connect(3) }
        for peer in peers { _ = try peer.ask("STATE.WATCH k") }
        let writer = try server.connect()
        // The first waits in storage; the other two become one batch behind it.
        try writer.send("SET k 1")
        try server.waitUntil("a commit that waits") { backing.held() != nil }
        try writer.send("SET k 2", "SET k 3")
        try server.catchUp()
        backing.open()
        for peer in peers {
            #expect(
                try peer.next(3).map(\.shown)
                    == (1...3).map { #"push["state.change", 1, \#($0), [["k", "\#($0)"]]]"# }
            )
        }
    }
}
