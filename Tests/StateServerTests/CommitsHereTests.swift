import CLinux
import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// Commits on the loop's own thread: of a single client, and of several that all wait for them.
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
    /// A slow disk begins the count anew: the commit thread has it then, and it is sent again.
    ///
    /// - Returns: How often it was made before.
    @discardableResult
    private func hold(_ command: String) throws -> Int {
        for count in 0... {
            try writeAlone()
            store.holdCommits()
            try writer.send(command)
            try #require(store.waitForCommit())
            if store.committer == "served" { return count }
            store.openCommits()
            #expect(try !writer.next().shown.hasPrefix("-"))
        }
        return 0
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
        let count = try hold("INCR count")
        store.failCommit(StateError(.noSpace, "the disk is full"))
        store.openCommits()
        #expect(try writer.next().shown == "-NOSPACE the disk is full")
        let old = count == 0 ? Reply.null : .bulk(Array(String(count).utf8))
        #expect(try writer.ask("GET count") == old)
        #expect(try writer.ask("GET key") == .bulk(Array("last".utf8)))
        #expect(try writer.ask("INCR count") == .integer(Int64(count) + 1))
    }

    @Test func `the loop commits for a group, until one of them reads`() throws {
        let others = try (0..<3).map { _ in try server.connect() }
        // With more, the commit thread has groups.
        let takesGroups = clinux_processor_count() <= 2
        let deadline = ContinuousClock.now + .seconds(120)
        var rounds = 0
        repeat {
            for (number, peer) in others.enumerated() { try peer.send("SET key\(number) old") }
            for peer in others { #expect(try peer.next() == .simple("OK")) }
            try #require(ContinuousClock.now < deadline)
            rounds += 1
        } while store.committer != "served" && (takesGroups || rounds < 99)
        #expect((store.committer == "served") == takesGroups)
        // One alone is not kept waiting for the others.
        #expect(try others[0].ask("SET key0 old") == .simple("OK"))
        try others[0].send("SET key0 new")
        try others[1].send("GET key1")
        try others[2].send("SET key2 new")
        #expect(try others[1].next() == .bulk(Array("old".utf8)))
        for peer in [others[0], others[2]] { #expect(try peer.next() == .simple("OK")) }
        #expect(try others[1].ask("SET key1 new") == .simple("OK"))
        #expect(store.committer == "commit")
        for number in 0..<3 {
            #expect(try writer.ask("GET key\(number)") == .bulk(Array("new".utf8)))
        }
    }

    // MARK: When

    /// So many turns, each with so many events of different clients.
    private func here(
        turns: Int,
        events: Int,
        waiting: Int = 1,
        processors: Int32 = 2
    ) -> CommitsHere {
        var here = CommitsHere(processorCount: processors)
        for _ in 0..<turns { here.turn(events: events, waiting: waiting) }
        return here
    }

    @Test func `all that the loop serves must wait for their commits`() {
        for processors in [1, 2, 4] as [Int32] {
            #expect(here(turns: 33, events: 1, processors: processors).isEstablished)
            #expect(!here(turns: 31, events: 1, processors: processors).isEstablished)
            #expect(
                here(turns: 33, events: 24, waiting: 24, processors: processors).isEstablished
                    == (processors <= 2)
            )
        }
        // One of them reads.
        #expect(!here(turns: 99, events: 24, waiting: 23).isEstablished)
        #expect(!here(turns: 99, events: 2, waiting: 1).isEstablished)
        #expect(!here(turns: 99, events: 200, waiting: 200).isEstablished)
    }

    @Test func `one turn with others, or with more to do, begins the count anew`() {
        func begins(_ change: (inout CommitsHere) -> Void) -> Bool {
            var here = here(turns: 99, events: 1)
            change(&here)
            return !here.isEstablished
        }
        #expect(!begins { $0.turn(events: 0, waiting: 0) })
        #expect(begins { $0.turn(events: 1, waiting: 1, isBusy: true) })
        #expect(begins { $0.turn(events: 2, waiting: 1) })
        #expect(begins { $0.beginAnew() })
        // Another client that reads.
        #expect(
            begins {
                $0.note(eventCount: 1, first: 12, isBusy: false)
                $0.note(waitingCount: 0, before: 0)
            }
        )
    }

    @Test func `a commit waits for those that the last one was for, half as long as commits take`()
    {
        var here = here(turns: 99, events: 8, waiting: 8)
        for _ in 0..<200 { here.noteCommit(nanoseconds: 100_000) }
        func waits(_ count: Int, at now: Int64) -> Bool { here.waitsForGroup(count, at: now) }
        #expect(!waits(1, at: 0))
        here.endWait(count: 8)
        #expect(here.nanosecondsToGroup(at: 0) == -1)
        #expect(waits(1, at: 1_000))
        let wait = here.nanosecondsToGroup(at: 1_000)
        #expect(wait > 40_000 && wait <= 50_000)
        // Another one does not begin it anew.
        #expect(waits(7, at: wait))
        #expect(here.nanosecondsToGroup(at: wait) == 1_000)
        #expect(!waits(7, at: 1_000 + wait))
        #expect(here.nanosecondsToGroup(at: 2_000 + wait) == 0)
        #expect(!waits(8, at: wait))
        here.endWait(count: 7)
        #expect(here.nanosecondsToGroup(at: 0) == -1)
        #expect(waits(6, at: 0) && !waits(7, at: 0))
        // As long as it is not made here, it is for as many.
        here.endWait()
        #expect(waits(6, at: 0))
        here.endWait(count: 7)
        for _ in 0..<200 { here.noteCommit(nanoseconds: 1_900_000) }
        #expect(waits(6, at: 0) && here.nanosecondsToGroup(at: 0) == 500_000)
    }

    @Test func `after two slow commits of 256 it takes twice as many turns, for 256 commits`() {
        var here = here(turns: 99, events: 1)
        func turns() -> Int {
            // The first of them.
            here.turn(events: 1, waiting: 0, isBusy: true)
            var count = 1
            repeat {
                here.turn(events: 1, waiting: 1)
                count += 1
            } while !here.isEstablished
            return count
        }
        func commit(_ count: Int, nanoseconds: Int64 = 200_000) {
            for _ in 0..<count { here.noteCommit(nanoseconds: nanoseconds) }
        }
        let normal = turns()
        // The first counts as if another had come before.
        commit(1, nanoseconds: 6_000_000)
        #expect(turns() == 2 * normal)
        commit(255)
        commit(1, nanoseconds: 6_000_000)
        #expect(turns() == 4 * normal)
        commit(256)
        #expect(turns() == 2 * normal)
        commit(256)
        #expect(turns() == normal)
        // The substitute has served the others; one in many begins the count anew, and no more.
        commit(1, nanoseconds: 600_000_000)
        #expect(!here.isEstablished)
        #expect(turns() == normal)
        commit(256)
        // One that is long does not matter, many do.
        commit(1, nanoseconds: 3_000_000)
        #expect(here.isEstablished && turns() == normal)
        commit(30, nanoseconds: 3_000_000)
        #expect(turns() > normal)
    }
}

extension CommitsHere {
    fileprivate mutating func turn(events: Int, waiting: Int, isBusy: Bool = false) {
        note(eventCount: events, first: events > 0 ? 8 : nil, isBusy: isBusy)
        note(waitingCount: waiting, before: 0)
    }
}
