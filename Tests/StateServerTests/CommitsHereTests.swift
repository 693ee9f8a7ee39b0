import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// Commits of a single client, on the loop's own thread.
struct CommitsHereTests {
    private let store: GatedStore
    private let server: ServedKeyspace
    private let writer: Peer

    init() throws {
        store = try GatedStore()
        server = try ServedKeyspace(store)
        writer = try server.connect()
        #expect(try writer.ask("SET old 1") == .simple("OK"))
        #expect(store.committer == "commit")
    }

    /// Writes until the loop commits itself.
    private func writeAlone() throws {
        let deadline = ContinuousClock.now + .seconds(120)
        repeat {
            #expect(try writer.ask("SET key last") == .simple("OK"))
            try #require(ContinuousClock.now < deadline)
        } while store.committer != "served"
    }

    /// Sends a command whose commit on the loop's thread waits.
    ///
    /// A slow disk begins the count anew.
    private func hold(_ command: String) throws {
        while true {
            try writeAlone()
            store.holdCommits()
            try writer.send(command)
            try #require(store.waitForCommit())
            if store.committer == "served" { return }
            store.openCommits()
            #expect(try writer.next() == .simple("OK"))
        }
    }

    @Test func `the commit thread has them again as soon as another client sends something`() throws
    {
        try writeAlone()
        let other = try server.connect()
        #expect(try other.ask("GET key") == .bulk(Array("last".utf8)))
        #expect(try writer.ask("SET key x") == .simple("OK"))
        #expect(store.committer == "commit")
    }

    @Test func `several commands at once do not wait for each other`() throws {
        try hold("SET a 1")
        try writer.send("SET b 2", "SET c 3")
        store.openCommits()
        for _ in 0..<3 { #expect(try writer.next() == .simple("OK")) }
        // Two commands of one event.
        #expect(store.committer == "commit")
    }

    @Test func `durable before told, and others are served while the disk stands still`() throws {
        let (reader, second) = try (server.connect(), server.connect())
        let watcher = try server.connect(3)
        _ = try watcher.ask("STATE.WATCH key")
        for round in 0..<3 {
            try hold("SET key new\(round)")
            // The substitute runs the loop: what is stored is read, what is not waits.
            #expect(try reader.ask("GET old") == .bulk(Array("1".utf8)))
            try reader.send("GET key")
            try second.send("SET other \(round)", "GET old")
            try server.catchUp()
            _ = try watcher.arrived()
            #expect(try writer.arrived() == [])
            #expect(try reader.arrived() == [])
            #expect(try second.arrived() == [])
            store.openCommits()
            #expect(try writer.next() == .simple("OK"))
            #expect(try reader.next() == .bulk(Array("new\(round)".utf8)))
            #expect(try second.next(2) == [.simple("OK"), .bulk(Array("1".utf8))])
        }
        #expect(try reader.ask("GET other") == .bulk(Array("2".utf8)))
    }

    @Test func `a stop while the disk stands still keeps what was taken`() throws {
        try hold("SET key last")
        let other = try server.connect()
        #expect(try other.ask("GET old") == .bulk(Array("1".utf8)))
        server.requestStop()
        store.openCommits()
        #expect(try writer.next() == .simple("OK"))
        server.stop()
    }

    @Test func `a commit that fails is undone`() throws {
        try hold("SET other 1")
        store.failCommit(StateError(.noSpace, "the disk is full"))
        store.openCommits()
        #expect(try writer.next().shown == "-NOSPACE the disk is full")
        #expect(try writer.ask("EXISTS other") == .integer(0))
        #expect(try writer.ask("GET key") == .bulk(Array("last".utf8)))
        #expect(try writer.ask("SET other 2") == .simple("OK"))
        #expect(try writer.ask("GET other") == .bulk(Array("2".utf8)))
    }

    // MARK: When

    /// So many turns, each with so many events of different clients.
    private func here(turns: Int, events: Int) -> CommitsHere {
        var here = CommitsHere()
        for _ in 0..<turns { here.turn(events: events) }
        return here
    }

    @Test func `one turn with others, or with more to do, begins the count anew`() {
        #expect(here(turns: 33, events: 1).isEstablished)
        #expect(!here(turns: 32, events: 1).isEstablished)
        #expect(!here(turns: 99, events: 2).isEstablished)
        var alone = here(turns: 99, events: 1)
        alone.turn(events: 0)
        #expect(alone.isEstablished)
        alone.turn(events: 1, isBusy: true)
        #expect(!alone.isEstablished)
        alone = here(turns: 99, events: 1)
        alone.note(eventCount: 1, first: 12, isBusy: false)
        #expect(!alone.isEstablished)
    }

    @Test func `after each slow commit it takes twice as many turns, for 1,024 commits`() {
        var here = here(turns: 99, events: 1)
        func turns() -> Int {
            here.turn(events: 1, isBusy: true)
            var count = 0
            repeat {
                here.turn(events: 1)
                count += 1
            } while !here.isEstablished
            return count
        }
        let normal = turns()
        here.noteCommit(nanoseconds: 6_000_000)
        #expect(turns() == 2 * normal)
        here.noteCommit(nanoseconds: 6_000_000)
        #expect(turns() == 4 * normal)
        for _ in 0..<1_024 { here.noteCommit(nanoseconds: 200_000) }
        #expect(turns() == 2 * normal)
        for _ in 0..<4_096 { here.noteCommit(nanoseconds: 200_000) }
        #expect(turns() == normal)
        // One that is long does not matter, many do.
        here.noteCommit(nanoseconds: 3_000_000)
        #expect(turns() == normal)
        for _ in 0..<30 { here.noteCommit(nanoseconds: 3_000_000) }
        #expect(turns() > normal)
    }
}

extension CommitsHere {
    fileprivate mutating func turn(events: Int, isBusy: Bool = false) {
        note(eventCount: events, first: events > 0 ? 8 : nil, isBusy: isBusy)
    }
}
