import Glibc
import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

struct WatchTests {
    private let server: ServedKeyspace
    private let peer: Peer
    private let writer: Peer

    init() throws {
        server = try ServedKeyspace(HeldBacking(isHeld: false))
        peer = try server.connect(3)
        writer = try server.connect()
    }

    /// Carries out commands, one after the other.
    private func write(_ commands: String...) throws {
        for command in commands { try #require(try writer.ask(command).errorText == nil) }
    }

    @Test func `a watch tells each commit that touches its patterns, once`() throws {
        try peer.expect(
            """
            > STATE.WATCH a/ k *x* a/b
            {"watch": 1, "revision": 0, "epoch": …}
            """
        )
        try write(
            "SET a/b 1",
            "SET a 1",
            "SET k 1",
            "DEL k",
            "MSET a/x 1 b 1 y 1 box 1",
            "SET kk 1"
        )
        try write("STATE.DELETE a/", "MSET k 2")
        #expect(
            try peer.next(6).map(\.shown) == [
                #"push["state.change", 1, 1, [["a/b", "1"]]]"#,
                #"push["state.change", 1, 3, [["k", "1"]]]"#,
                #"push["state.change", 1, 4, [["k", (nil)]]]"#,
                #"push["state.change", 1, 5, [["a/x", "1"], ["box", "1"]]]"#,
                #"push["state.change", 1, 7, [["a/b", (nil)], ["a/x", (nil)]]]"#,
                #"push["state.change", 1, 8, [["k", "2"]]]"#,
            ]
        )
        #expect(try peer.arrived() == [])
    }

    @Test func `BY tells who made each commit, and who wrote each piece of the state`() throws {
        _ = try writer.ask("CLIENT SETNAME mixer")
        try write("SET old 1")
        _ = try peer.ask("STATE.WATCH / BY snapshot PREVIOUS")
        let piece = try peer.next()
        #expect(try peer.next().shown == #"push["state.synced", 1, 1]"#)
        try write("MSET a 1 b 1", "DEL old")
        let commits = try peer.next(2)
        let cause = try #require(commits[0].elements?[4].textValue.flatMap { Cause($0) })
        #expect(cause.pid == getpid() && cause.uid == geteuid() && cause.client == "mixer")
        #expect(
            commits.map(\.shown) == [
                """
                push["state.change", 1, 2, [["a", "1", (nil)], ["b", "1", (nil)]], "\(cause)"]
                """,
                #"push["state.change", 1, 3, [["old", (nil), "1"]], "\#(cause)"]"#,
            ]
        )
        #expect(piece.shown == #"push["state.change", 1, 0, [["old", "1", 1, "\#(cause)"]]]"#)
    }

    @Test func `PREVIOUS tells what a change replaced`() throws {
        try write("SET old 1")
        _ = try peer.ask("STATE.WATCH / PREVIOUS")
        try write("SET old 2", "SET new 1", "APPEND new !", "DEL old", "SET old 3")
        try write("MSET new a new b", "GETDEL new")
        #expect(
            try peer.next(7).map(\.shown) == [
                #"push["state.change", 1, 2, [["old", "2", "1"]]]"#,
                #"push["state.change", 1, 3, [["new", "1", (nil)]]]"#,
                #"push["state.change", 1, 4, [["new", "1!", "1"]]]"#,
                #"push["state.change", 1, 5, [["old", (nil), "2"]]]"#,
                #"push["state.change", 1, 6, [["old", "3", (nil)]]]"#,
                #"push["state.change", 1, 7, [["new", "b", "1!"]]]"#,
                #"push["state.change", 1, 8, [["new", (nil), "b"]]]"#,
            ]
        )
    }

    @Test func `SNAPSHOT tells the state, then the commits`() throws {
        try write("MSET a/1 x a/2 y b z", "SET a/1 w", "DEL a/2")
        try peer.expect(
            """
            > STATE.WATCH a/ b SNAPSHOT
            {"watch": 1, "revision": 3, "epoch": …}
            push["state.change", 1, 0, [["a/1", "w", 2], ["b", "z", 1]]]
            push["state.synced", 1, 3]
            > STATE.WATCH nothing/ PREVIOUS SNAPSHOT
            {"watch": 2, "revision": 3, "epoch": …}
            push["state.synced", 2, 3]
            """
        )
        try write("SET b 2")
        #expect(try peer.next().shown == #"push["state.change", 1, 4, [["b", "2"]]]"#)
    }

    @Test func `several watches of a connection are told apart, and end one by one`() throws {
        try peer.expect(
            """
            > STATE.WATCH a
            > STATE.WATCH /
            > STATE.WATCH b
            {"watch": 1, "revision": 0, "epoch": …}
            {"watch": 2, "revision": 0, "epoch": …}
            {"watch": 3, "revision": 0, "epoch": …}
            """
        )
        try write("SET a 1")
        #expect(
            try peer.next(2).map(\.shown).sorted() == [
                #"push["state.change", 1, 1, [["a", "1"]]]"#,
                #"push["state.change", 2, 1, [["a", "1"]]]"#,
            ]
        )
        try peer.expect(
            """
            > STATE.UNWATCH 2
            > STATE.UNWATCH 2
            > STATE.UNWATCH 4
            +OK
            -ERR this connection has no watch 2
            -ERR this connection has no watch 4
            """
        )
        try write("MSET a 2 b 2")
        #expect(
            try peer.next(2).map(\.shown).sorted() == [
                #"push["state.change", 1, 2, [["a", "2"]]]"#,
                #"push["state.change", 3, 2, [["b", "2"]]]"#,
            ]
        )
        #expect(try peer.ask("STATE.STATUS")["watches"] == .integer(2))
        peer.socket.end()
        try server.waitUntil("no watches") { server.keyspace.withCore { $0.hub.count } == 0 }
    }

    @Test(arguments: ["RESET", "HELLO 2"])
    func `a connection that goes back to RESP2 has no watches`(command: String) throws {
        _ = try peer.ask("STATE.WATCH /")
        _ = try peer.ask(command)
        try write("SET a 1")
        #expect(try peer.ask("PING") == .simple("PONG"))
        #expect(server.keyspace.withCore { $0.hub.count } == 0)
    }

    @Test func `RESP2 has no pushes: STATE.WATCH is refused`() throws {
        try writer.expect(
            """
            > STATE.WATCH /
            -ERR STATE.WATCH needs HELLO 3; use STATE.CHANGES
            """
        )
    }

    @Test(arguments: [
        ("FROM 1 SNAPSHOT", "STATE.WATCH takes only one of SNAPSHOT and FROM"),
        ("snapshot BY from 1 EPOCH 0", "STATE.WATCH takes only one of SNAPSHOT and FROM"),
        ("EPOCH 1", "'EPOCH'"), ("EPOCH 1 FROM 1", "'EPOCH'"), ("FROM 1 k", "'FROM'"),
        ("FROM", "'FROM'"), ("from SNAPSHOT", "'from'"), ("FROM 1 FROM 2", "'FROM'"),
    ])
    func `an option that is not understood is refused and not taken for keys`(
        option: String,
        words: String
    ) throws {
        let error = try #require(try peer.ask("STATE.WATCH / \(option)").errorText)
        #expect(error.hasPrefix("ERR syntax error: \(words)"), "\(error)")
        #expect(server.keyspace.withCore { $0.hub.count } == 0)
    }

    @Test(arguments: ["FROM", "EPOCH", "LATEST", "SNAPSHOT"])
    func `a key that reads as an option is written with a backslash`(key: String) throws {
        _ = try peer.ask("STATE.WATCH \\\(key) BY")
        try write("SET \(key) 1")
        #expect(try peer.next().elements?[3].shown == #"[["\#(key)", "1"]]"#)
    }

    @Test(arguments: ["-1", "x", "9223372036854775808"])
    func `FROM takes a revision`(revision: String) throws {
        #expect(
            try peer.ask("STATE.WATCH / FROM \(revision)").errorText
                == "ERR revision '\(revision)' is not a whole number of at least 0"
        )
    }

    @Test func `watches and patterns of a client are bounded`() throws {
        let server = try ServedKeyspace { $0.watchCount = 2 }
        let peer = try server.connect(3)
        try peer.expect(
            """
            > STATE.WATCH a b
            > STATE.WATCH a b c
            > STATE.WATCH /
            > STATE.WATCH k
            > STATE.UNWATCH 1
            > STATE.WATCH k
            > WATCH a b
            > WATCH c
            {"watch": 1, "revision": 0, "epoch": …}
            -LIMIT more than 2 patterns, the limit (limits.watches)
            {"watch": 2, "revision": 0, "epoch": …}
            -LIMIT more than 2 watches of one client (limits.watches)
            +OK
            {"watch": 3, "revision": 0, "epoch": …}
            +OK
            -LIMIT WATCH of more than 2 keys, the limit (limits.watches)
            """
        )
    }
}
