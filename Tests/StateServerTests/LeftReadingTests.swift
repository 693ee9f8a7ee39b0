import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// What is read from the history for clients that leave meanwhile.
struct LeftReadingTests {
    private let store: GatedStore
    private let server: ServedKeyspace

    init() throws {
        store = try GatedStore()
        server = try ServedKeyspace(store)
        let peer = try server.connect()
        for number in 0..<5 { _ = try peer.ask("SET k \(number)") }
    }

    @Test(arguments: [
        "STATE.HISTORY k", "STATE.LIST / AT 2", "STATE.GET k AT 2", "STATE.CHANGES SINCE 1 /",
        "STATE.REVERT k TO 2",
    ])
    func `what is read for a client that has left is not read any further`(command: String) throws {
        let probe = try server.connect(3)
        store.holdReading()
        let peers = try (0..<20).map { _ in try server.connect(3) }
        for peer in peers { try peer.send(command) }
        #expect(store.waitForReader())
        try server.catchUp()
        for peer in peers { peer.socket.end() }
        try server.waitUntil("everybody to have left") {
            // The probe, the one that catches up, and the first of all.
            try probe.ask("STATE.STATUS")["clients"]?.integerValue ?? 0 <= 2
        }
        store.openReading()
        #expect(try probe.ask("STATE.HISTORY k").elements?.count == 5)
        // The one that was being read for, and the last one.
        #expect(store.readingCount <= 3)
        #expect(try server.connect(3).ask("STATE.STATUS")["revision"] == .integer(5))
        probe.socket.end()
        #expect(try server.faultsAfterLeaving() == [])
    }

    /// That a client has left is handled once its user has rested; what is read for it ends at once.
    @Test(.enabled(if: TestUser.areThere))
    func `a watch whose client leaves while its user rests is no failure of the history`() throws {
        let store = try GatedStore()
        let server = try ServedKeyspace(store) { $0.restMilliseconds = 10_000 }
        let other = try server.connect(3)
        let pairs = (0..<9_000).map { "m/\($0) v" }.joined(separator: " ")
        for command in ["MSET \(pairs)", "SET k 1", "SET k 2"] {
            #expect(try other.ask(command) == .simple("OK"))
        }
        store.holdReading()
        let peers = try (0..<20).map { _ in try server.connect(as: TestUser.names[0]).peer }
        for peer in peers {
            _ = try peer.ask("HELLO 3")
            #expect(try peer.ask("STATE.WATCH k FROM 1")["watch"] != nil)
        }
        #expect(store.waitForReader())
        let heavy = try server.connect(as: TestUser.names[0]).peer
        // Each EXEC looks at all keys in one moment.
        for _ in 0..<400 { try heavy.send("MULTI", "STATE.LIST *z COUNT", "EXEC") }
        func ask(_ count: Int) throws {
            for _ in 0..<count { #expect(try other.ask("PING") == .simple("PONG")) }
        }
        try ask(200)
        for peer in peers { peer.socket.end() }
        try ask(500)
        store.openReading()
        try ask(500)
        #expect(server.log.current.filter { $0.contains("cannot read the history") } == [])
    }

    @Test func `what is read counts as memory, and beyond the limit one reply is refused by name`()
        throws
    {
        let store = try GatedStore()
        let server = try ServedKeyspace(store) { $0.memoryByteCount = 16 << 20 }
        let writer = try server.connect(3)
        for _ in 0..<6 {
            let value = String(repeating: "v", count: 1 << 20)
            #expect(try writer.ask("SET big \(value)") == .simple("OK"))
        }
        store.holdReading()
        let peers = try (0..<8).map { _ in try server.connect(3) }
        for peer in peers { try peer.send("STATE.HISTORY big", "PING") }
        try server.catchUp()
        store.openReading()
        var refusedCount = 0
        for peer in peers {
            let reply = try peer.next()
            if let error = reply.errorText {
                refusedCount += 1
                #expect(
                    error.hasPrefix(
                        "LIMIT the memory of all clients is above limits.memoryBytes, 16777216 bytes"
                    )
                )
            } else {
                #expect(reply.elements?.count == 6)
            }
            #expect(try peer.next() == .simple("PONG"))
        }
        #expect(refusedCount > 0)
        #expect(
            try writer.ask("STATE.STATUS")["client_memory_refused"] == .integer(Int64(refusedCount))
        )
        #expect(try writer.ask("STATE.HISTORY big LIMIT 1").elements?.count == 1)
    }
}
