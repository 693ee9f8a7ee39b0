import Glibc
import StateEngine
import StateSQLite
import StateServer
import StateTestSupport
import StateWire
import Testing

/// The copy of a cluster, as its link meets it: here the test is the link, and brings what no etcd
/// would on purpose.
struct MirrorTests {
    private let server: ServedKeyspace

    init() throws { server = try ServedKeyspace { MirrorTests.mirror(&$0) } }

    static func mirror(
        _ options: inout ServerOptions,
        user: UInt32 = geteuid(),
        staleMilliseconds: Int64 = 600_000,
        staleness: MirrorOptions.Staleness = .dated
    ) {
        options.mirror = MirrorOptions(
            MirroredPrefix(Array("app/".utf8)),
            user: user,
            node: "n1",
            staleMilliseconds: staleMilliseconds,
            staleness: staleness
        )
    }

    /// Makes a peer the link of a cluster that has `app/a` in version 1, at revision 10.
    private static func begin(_ link: Peer) throws {
        for step in ["BEGIN", "RESYNC h first", "ROWS app/a 1 x", "SYNCED 10 -"] {
            _ = try link.ask("STATE.MIRROR \(step)")
        }
    }

    /// A link whose cluster has `app/a` in version 1 and `app/b` in version 2, at revision 10.
    private func link() throws -> Peer {
        let link = try server.connect(3)
        try link.expect(
            """
            > STATE.MIRROR BEGIN
            {"prefix": "app/", "node": "n1", "history": "", "revision": 0, "stamp": "", "value_bytes": 8388608, "command_bytes": 134217728}
            > STATE.MIRROR RESYNC h1 first
            > STATE.MIRROR ROWS app/a 1 x app/b 2 y
            > STATE.MIRROR SYNCED 10 9:s
            +OK
            +OK
            +OK
            """
        )
        return link
    }

    @Test func `all that a cluster has becomes one commit, and each of its commits one more`()
        throws
    {
        let watcher = try server.connect(3)
        _ = try watcher.ask("STATE.WATCH app/ BY")
        #expect(try watcher.next().pushKind == "state.away")
        let link = try link()
        try link.expect(
            """
            > STATE.MIRROR COMMIT 10 12 9:s SET app/a 2 z DELETE app/b
            > STATE.MIRROR COMMIT 12 13 9:s SET app/b 1 n
            > STATE.MIRROR BEGIN
            +OK
            +OK
            {"prefix": "app/", "node": "n1", "history": "h1", "revision": 13, "stamp": "9:s", "value_bytes": 8388608, "command_bytes": 134217728}
            """
        )
        let pushes = try watcher.next(3)
        #expect(pushes.map(\.pushRevision) == [1, 2, 3])
        #expect(pushes.map { $0.elements?[3].elements?.count } == [2, 2, 1])
        #expect(pushes[0].elements?[4].textValue?.contains(":etcd") == true)
        #expect(server.durable() == ["app/a": "z", "app/b": "n"])
        #expect(try link.ask("STATE.GET app/b")["version"] == .integer(1))
    }

    @Test(arguments: [
        "COMMIT 11 12 9:s SET app/a 2 z", "COMMIT 10 10 9:s SET app/a 2 z",
        "COMMIT 9 11 9:s SET app/a 2 z", "COMMIT 10 11 9:s SET app/a 3 z",
        "COMMIT 10 11 9:s SET app/a 1 z", "COMMIT 10 11 9:s SET app/b 3 n DELETE app/c",
        "COMMIT 10 11 9:s SET other 1 z", "ROWS app/a 1 z", "SYNCED 12 9:s", "BEAT 11 0 0",
        "BEAT 9 0 0",
    ])
    func `ordered: a hole, a repetition and another order are refused, and change nothing`(
        step: String
    ) throws {
        let link = try link()
        #expect(try link.ask("STATE.MIRROR \(step)").errorText?.hasPrefix("CONFLICT") == true)
        #expect(server.durable() == ["app/a": "x", "app/b": "y"])
        let begun = try link.ask("STATE.MIRROR BEGIN")
        #expect(begun["revision"] == .integer(10))
        #expect(try link.ask("STATE.MIRROR COMMIT 10 11 9:s SET app/a 2 z") == .simple("OK"))
    }

    @Test(arguments: [
        "COMMIT 10", "COMMIT 10 11 9:s SET app/a 2", "COMMIT 10 11 9:s SET app/a 0 z",
        "COMMIT 10 11 9:s SET app/ 2 z", "COMMIT 10 11 \"a b\" SET app/a 2 z",
        "COMMIT 10 11 9:s DELETE",
        "ROWS app/a 1", "BEAT 10 x 0", "BEAT 10 9223372036854775807 0",
        "COMMIT 10 11 9:s REPLACE app/a 9223372036854775807 z", "ROWS app/a 4611686018427387905 z",
        "RESYNC", "HELLO", "COMMIT 10 -1 9:s",
    ])
    func `what is no step is refused`(step: String) throws {
        let link = try link()
        #expect(try link.ask("STATE.MIRROR \(step)").errorText?.hasPrefix("ERR") == true)
        #expect(server.durable() == ["app/a": "x", "app/b": "y"])
    }

    @Test(arguments: [
        "SET app/a 1", "DEL app/a", "DEL app/none", "MSET k 1 app/a 2", "INCR app/n",
        "RENAME app/a k",
        "RENAME k app/k", "EXPIRE app/a 10", "STATE.DELETE app/", "FLUSHALL", "STATE.SET app/c 1",
    ])
    func `nobody else changes a key of the cluster`(command: String) throws {
        _ = try link()
        let client = try server.connect(3)
        _ = try client.ask("SET k v")
        // The link has not said that it sends changes.
        let refused = try client.ask(command).errorText ?? ""
        let isRefused = refused.hasPrefix("AWAY") || refused.hasPrefix("REJECTED")
        #expect(isRefused, "\(command): \(refused)")
        #expect(server.durable() == ["app/a": "x", "app/b": "y", "k": "v"])
    }

    @Test func `a comparison makes one commit of what differs`() throws {
        let link = try link()
        let watcher = try server.connect(3)
        _ = try watcher.ask("STATE.WATCH app/")
        #expect(try watcher.next().pushKind == "state.away")
        try link.expect(
            """
            > STATE.MIRROR RESYNC h2 restored
            > STATE.MIRROR ROWS app/a 1 x
            > STATE.MIRROR ROWS app/aa 1 new app/c 4 c
            > STATE.MIRROR SYNCED 5 -
            +OK
            +OK
            +OK
            +OK
            """
        )
        let push = try watcher.next()
        #expect(push.elements?[3].elements?.count == 3)
        #expect(server.durable() == ["app/a": "x", "app/aa": "new", "app/c": "c"])
        // The position goes back with the other history.
        #expect(try link.ask("STATE.MIRROR BEGIN")["revision"] == .integer(5))
    }

    @Test(arguments: ["app/b 1 x app/a 1 x", "app/a 1 x app/a 2 y"])
    func `rows come in order`(rows: String) throws {
        let link = try link()
        _ = try link.ask("STATE.MIRROR RESYNC h1 again")
        #expect(try link.ask("STATE.MIRROR ROWS \(rows)").errorText?.hasPrefix("CONFLICT") == true)
        _ = try link.ask("STATE.MIRROR BEGIN")
        _ = try link.ask("STATE.MIRROR RESYNC h1 again")
        _ = try link.ask("STATE.MIRROR ROWS app/m 1 x")
        #expect(
            try link.ask("STATE.MIRROR ROWS app/c 1 x").errorText?.hasPrefix("CONFLICT") == true
        )
    }

    @Test func `atomic: a link that ends in a comparison has changed nothing`() throws {
        var first: Peer? = try link()
        _ = try first?.ask("STATE.MIRROR RESYNC h1 again")
        _ = try first?.ask("STATE.MIRROR ROWS app/z 1 new")
        first = nil
        try server.waitForClients(0)
        let second = try server.connect(3)
        #expect(try second.ask("STATE.MIRROR BEGIN")["revision"] == .integer(10))
        #expect(
            try second.ask("STATE.MIRROR SYNCED 12 -").errorText?.hasPrefix("CONFLICT") == true
        )
        #expect(server.durable() == ["app/a": "x", "app/b": "y"])
    }

    @Test func `a second link takes over`() throws {
        let (first, second) = (try link(), try server.connect(3))
        #expect(try second.ask("STATE.MIRROR BEGIN")["revision"] == .integer(10))
        let late = try first.ask("STATE.MIRROR COMMIT 10 11 9:s SET app/a 2 z")
        #expect(late.errorText?.hasPrefix("NOPERM another link has begun") == true)
        #expect(try second.ask("STATE.MIRROR COMMIT 10 11 9:s SET app/a 2 z") == .simple("OK"))
    }

    @Test func `only the user of the link may be it`() throws {
        let server = try ServedKeyspace { MirrorTests.mirror(&$0, user: geteuid() &+ 1) }
        let peer = try server.connect(3)
        #expect(try peer.ask("STATE.MIRROR BEGIN").errorText?.hasPrefix("NOPERM") == true)
        let none = try ServedKeyspace()
        let refused = try none.connect(3).ask("STATE.MIRROR BEGIN").errorText
        #expect(refused?.contains("backing: \"cluster\"") == true)
    }

    @Test func `keys that are not copies are not replaced`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path(of: "data")
        let before = try LocalKeyspace(backing: SQLiteBacking(directory: path))
        before.submit([.set("app/a", Array("mine".utf8))]) { _ in }
        before.close()
        let server = try ServedKeyspace(SQLiteBacking(directory: path)) { MirrorTests.mirror(&$0) }
        let link = try server.connect(3)
        _ = try link.ask("STATE.MIRROR BEGIN")
        _ = try link.ask("STATE.MIRROR RESYNC h1 first")
        let refused = try link.ask("STATE.MIRROR SYNCED 10 -").errorText
        #expect(refused?.hasPrefix("REJECTED 1 keys below 'app/'") == true, "\(refused ?? "")")
        #expect(server.durable() == ["app/a": "mine"])
    }

    @Test func `a commit of the cluster may be larger than a transaction`() throws {
        let server = try ServedKeyspace { options in
            MirrorTests.mirror(&options)
            options.limits.transactionChangeCount = 3
        }
        let link = try server.connect(3)
        let rows = (10..<30).map { "app/\($0) 1 x" }.joined(separator: " ")
        for step in ["BEGIN", "RESYNC h first", "ROWS \(rows)", "SYNCED 10 -"] {
            #expect(try link.ask("STATE.MIRROR \(step)").errorText == nil, "\(step)")
        }
        let changes = (10..<30).map { "SET app/\($0) 2 y" }.joined(separator: " ")
        #expect(try link.ask("STATE.MIRROR COMMIT 10 11 - \(changes)") == .simple("OK"))
        #expect(server.durable().values.allSatisfy { $0 == "y" })
        #expect(server.keyspace.revision == 2)
    }

    @Test func `never silent: who watches or reads is informed how current the copy is`() throws {
        let server = try ServedKeyspace { MirrorTests.mirror(&$0, staleMilliseconds: 300) }
        let (link, watcher, other) = (
            try server.connect(3), try server.connect(3), try server.connect(3)
        )
        _ = try watcher.ask("STATE.WATCH app/*/x")
        #expect(try watcher.next().pushKind == "state.away")
        _ = try other.ask("STATE.WATCH apple")
        try MirrorTests.begin(link)
        #expect(try other.ask("STATE.GET app/a")["current"] == .integer(0))
        #expect(try other.ask("STATE.GET app/a")["age"] == .integer(-1))
        _ = try link.ask("STATE.MIRROR BEAT 10 0 7")
        #expect(try watcher.next().pushKind == "state.current")
        #expect(try other.ask("STATE.STATUS")["cluster_refused"] == .integer(7))
        _ = try link.ask("STATE.MIRROR AWAY \"no leader\"")
        #expect(try watcher.next().pushKind == "state.away")
        let status = try other.ask("STATE.STATUS")["cluster"]?.textValue ?? ""
        #expect(status.hasPrefix("away since ") && status.hasSuffix(": no leader"))
        #expect(try other.ask("STATE.GET app/a")["current"] == .integer(0))
        // An old proof proves nothing.
        _ = try link.ask("STATE.MIRROR BEAT 10 5000 0")
        #expect(try other.ask("STATE.GET app/a")["current"] == .integer(0))
        #expect(try other.arrived().isEmpty)
    }

    @Test func `atomic: a commit that storage refuses is not part of the position`() throws {
        let backing = HeldBacking(isHeld: false)
        let server = try ServedKeyspace(backing) { MirrorTests.mirror(&$0) }
        let link = try server.connect(3)
        try MirrorTests.begin(link)
        backing.hold()
        try link.send(
            "STATE.MIRROR COMMIT 10 11 - SET app/a 2 y",
            "STATE.MIRROR COMMIT 11 12 - SET app/a 3 z"
        )
        try server.catchUp()
        _ = backing.held()
        backing.fail(StateError(.noSpace, "the disk is full"))
        backing.open()
        #expect(try link.next(2).allSatisfy { $0.errorText != nil })
        #expect(try link.ask("STATE.MIRROR BEGIN")["revision"] == .integer(10))
        #expect(server.durable() == ["app/a": "x"])
    }

    @Test func `a rule may refuse reads of what may be behind`() throws {
        let server = try ServedKeyspace {
            MirrorTests.mirror(&$0, staleMilliseconds: 600_000, staleness: .refuse)
        }
        let (link, client) = (try server.connect(3), try server.connect(3))
        try MirrorTests.begin(link)
        _ = try client.ask("SET k v")
        let reads = [
            "GET app/a", "MGET k app/a", "STATE.GET app/a", "STATE.LIST /", "KEYS app/*",
            "COPY app/a copied REPLACE", "DUMP app/a",
        ]
        #expect(try client.ask("GETEX app/a").errorText?.hasPrefix("STALE") == true)
        for read in reads {
            let refused = try client.ask(read).errorText
            #expect(refused?.hasPrefix("STALE app/ may be behind") == true, "\(read)")
        }
        for read in ["GET k", "STATE.LIST k", "PING", "STATE.STATUS", "STATE.GET k"] {
            #expect(try client.ask(read).errorText == nil, "\(read)")
        }
        _ = try client.ask("MULTI")
        #expect(try client.ask("GET app/a").errorText?.hasPrefix("STALE") == true)
        #expect(try client.ask("EXEC").errorText?.hasPrefix("EXECABORT") == true)
        _ = try link.ask("STATE.MIRROR BEAT 10 0 0")
        for read in reads { #expect(try client.ask(read).errorText == nil, "\(read)") }
    }

    @Test func `behind a refusal nothing counts, neither a commit nor a proof`() throws {
        let link = try link()
        try link.send(
            "STATE.MIRROR COMMIT 10 11 9:s SET app/a 9 z",
            "STATE.MIRROR COMMIT 10 12 9:s SET app/a 2 z",
            "STATE.MIRROR BEAT 10 0 0"
        )
        let replies = try link.next(3).map { $0.errorText?.prefix(6) }
        #expect(replies == ["CONFLI", "ERR ST", "ERR ST"])
        let client = try server.connect(3)
        #expect(try client.ask("STATE.GET app/a")["current"] == .integer(0))
        #expect(try link.ask("STATE.MIRROR BEGIN")["revision"] == .integer(10))
        #expect(try link.ask("STATE.MIRROR BEAT 10 0 0") == .simple("OK"))
        #expect(try client.ask("STATE.GET app/a")["current"] == .integer(1))
    }

    @Test func `durable before told: a proof counts once what it is about is stored`() throws {
        let backing = HeldBacking(isHeld: false)
        let server = try ServedKeyspace(backing) { MirrorTests.mirror(&$0) }
        let (link, client) = (try server.connect(3), try server.connect(3))
        try MirrorTests.begin(link)
        backing.hold()
        try link.send("STATE.MIRROR COMMIT 10 11 - SET app/b 1 y", "STATE.MIRROR BEAT 11 0 0")
        try server.catchUp()
        #expect(try client.ask("STATE.GET app/a")["current"] == .integer(0))
        backing.open()
        #expect(try link.next(2) == [.simple("OK"), .simple("OK")])
        #expect(try client.ask("STATE.GET app/a")["current"] == .integer(1))
    }

    @Test(arguments: ["other", "apq", "zzz"])
    func `rows of other keys are refused`(key: String) throws {
        let link = try link()
        _ = try link.ask("STATE.MIRROR RESYNC h1 again")
        let refused = try link.ask("STATE.MIRROR ROWS \(key) 1 x").errorText
        #expect(refused?.hasPrefix("CONFLICT") == true)
        #expect(server.durable() == ["app/a": "x", "app/b": "y"])
    }

    @Test func `a key that was created anew in between is a whole store, and a whole backup`()
        throws
    {
        let directory = try TemporaryDirectory()
        let path = directory.path(of: "data")
        do {
            let server = try ServedKeyspace(SQLiteBacking(directory: path)) {
                MirrorTests.mirror(&$0)
            }
            let link = try server.connect(3)
            for step in [
                "BEGIN", "RESYNC h first", "ROWS app/a 6 x", "SYNCED 10 -", "RESYNC h again",
                "ROWS app/a 3 y", "SYNCED 20 -", "COMMIT 20 21 - SET app/a 4 z",
            ] {
                #expect(try link.ask("STATE.MIRROR \(step)").errorText == nil, "\(step)")
            }
            #expect(try link.ask("STATE.GET app/a")["created"] == .integer(2))
        }
        var findings: [String] = []
        _ = try StoreCheck(store: path) { findings.append($0) }.run()
        #expect(findings.isEmpty, "\(findings)")
    }

    @Test func `a key that ends by itself is no copy`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path(of: "data")
        let before = try LocalKeyspace(backing: SQLiteBacking(directory: path))
        before.submit([.set("app/a", Array("x".utf8), expires: .after(600_000))]) { _ in }
        before.close()
        let server = try ServedKeyspace(SQLiteBacking(directory: path)) { MirrorTests.mirror(&$0) }
        let link = try server.connect(3)
        for step in ["BEGIN", "RESYNC h1 first", "ROWS app/a 1 x"] {
            _ = try link.ask("STATE.MIRROR \(step)")
        }
        #expect(try link.ask("STATE.MIRROR SYNCED 10 -").errorText?.hasPrefix("REJECTED 1") == true)
    }

    @Test func `durable before told: a proof goes with the commit that it is about`() throws {
        let backing = HeldBacking(isHeld: false)
        let server = try ServedKeyspace(backing) { MirrorTests.mirror(&$0) }
        let (link, client) = (try server.connect(3), try server.connect(3))
        try MirrorTests.begin(link)
        backing.hold()
        try link.send("STATE.MIRROR COMMIT 10 11 - SET app/b 1 y", "STATE.MIRROR BEAT 11 0 0")
        try server.catchUp()
        _ = backing.held()
        backing.fail(StateError(.noSpace, "the disk is full"))
        #expect(try link.next(2).allSatisfy { $0.errorText != nil })
        backing.open()
        // Another commit gets the number of the one that failed.
        #expect(try client.ask("SET k v") == .simple("OK"))
        #expect(try client.ask("STATE.GET app/a")["current"] == .integer(0))
        #expect(server.durable() == ["app/a": "x", "k": "v"])
    }
}
