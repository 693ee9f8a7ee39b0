import Glibc
import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// What clients take together, and who pays where it is too much.
struct ClientMemoryTests {
    private func value(_ byteCount: Int) -> String { String(repeating: "v", count: byteCount) }

    /// So many values of a megabyte below `big/`.
    private func fill(_ peer: Peer, _ count: Int) throws {
        for number in 0..<count {
            #expect(try peer.ask("SET big/\(number) \(value(1 << 20))") == .simple("OK"))
        }
    }

    private func status(_ peer: Peer, _ field: String) throws -> Int64 {
        try #require(try peer.ask("STATE.STATUS")[field]?.integerValue, "\(field) is missing")
    }

    @Test(.enabled(if: TestUser.areThere))
    func `who asks for much and does not read pays, and nobody else`() throws {
        let limit: Int64 = 32 << 20
        let server = try ServedKeyspace { $0.memoryByteCount = Int(limit) }
        let victim = try server.connect(3)
        try fill(victim, 6)
        let abusers = try (0..<24).map { _ in try server.connect(as: TestUser.names[0]) }
        for abuser in abusers { try? abuser.peer.send("MGET big/0 big/1 big/2 big/3 big/4 big/5") }
        // Who sends much rests between.
        #expect(try eventually { try status(victim, "client_memory") > limit / 4 })
        #expect(try status(victim, "client_memory") <= limit)
        #expect(try status(victim, "client_memory_limit") == limit)
        // What others have does not keep the victim from anything.
        #expect(try victim.ask("PING") == .simple("PONG"))
        #expect(try victim.ask("SET large \(value(4 << 20))") == .simple("OK"))
        #expect(try victim.ask("GET large").textValue?.utf8.count == 4 << 20)
        #expect(try victim.ask("STATE.LIST big/").elements?.count == 6)
        // Half-sent input takes what is left, and beyond it goes.
        let head = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$6000000\r\n"
        let halves = try (0..<8).map { _ in try server.connect(as: TestUser.names[0]) }
        for peer in halves {
            try? peer.peer.socket.send(head + value(5_000_000))
            try server.catchUp()
            #expect(try status(victim, "client_memory") <= limit)
        }
        #expect(try status(victim, "client_memory_refused") > 0)
        let lines = server.log.current.filter {
            $0.contains("limits.memoryBytes") || $0.contains("unfinished")
        }
        #expect(!lines.isEmpty && lines.allSatisfy { $0.contains("uid \(abusers[0].uid)") })
        #expect(try victim.ask("SET large \(value(4 << 20))") == .simple("OK"))
        for client in abusers + halves { client.peer.socket.end() }
    }

    @Test func `where memory is short, large replies wait for those before them to be read`() throws
    {
        let server = try ServedKeyspace { $0.memoryByteCount = 16 << 20 }
        let (first, second, third) = try (server.connect(), server.connect(), server.connect())
        try fill(first, 7)
        for peer in [first, second] { try peer.send("STATE.LIST big/") }
        try server.catchUp()
        try third.send("PING", "STATE.LIST big/", "PING")
        try server.catchUp()
        #expect(try third.arrived() == [.simple("PONG")])
        for peer in [first, second] { #expect(try peer.next().elements?.count == 7) }
        #expect(try third.next().elements?.count == 7)
        #expect(try third.next() == .simple("PONG"))
        #expect(try status(server.connect(3), "client_memory_refused") == 0)
    }

    @Test func `while others wait for memory, who holds it and does not read is let go`() throws {
        let server = try ServedKeyspace { $0.memoryByteCount = 16 << 20 }
        let (first, second, third) = try (server.connect(), server.connect(), server.connect())
        try fill(first, 7)
        for peer in [first, second] { try peer.send("STATE.LIST big/") }
        try server.catchUp()
        // Nobody reads, and nothing else happens.
        #expect(try third.ask("STATE.LIST big/").elements?.count == 7)
        #expect(server.log.current.contains { $0.contains("does not read") })
    }

    @Test func `a reply has room twice in the memory of all`() throws {
        let server = try ServedKeyspace { $0.memoryByteCount = 4 << 20 }
        let peer = try server.connect()
        try fill(peer, 3)
        #expect(
            try peer.ask("STATE.LIST big/").errorText?.hasPrefix(
                "TOOBIG the reply would have more than 2097152 bytes"
            )
                == true
        )
        #expect(try peer.ask("PING") == .simple("PONG"))
    }

    @Test func `all watches with LATEST of a client owe it no more than one may`() throws {
        let limit = 1 << 20
        let server = try ServedKeyspace { $0.outputByteCount = limit }
        let (silent, writer) = try (server.connect(3), server.connect(3))
        for _ in 0..<10 { _ = try silent.ask("STATE.WATCH / LATEST") }
        for round in 0..<20 {
            try writer.send((0..<2_000).map { Peer.words("SET \(round)/\($0) v") })
            _ = try writer.next(2_000)
        }
        let watches = try #require(try writer.ask("STATE.WATCHES").elements)
        #expect(watches.count == 10)
        let pending = watches.compactMap { $0["pending"]?.integerValue }.reduce(0, +)
        #expect(pending * 96 <= limit, "\(pending) pending")
        #expect(try status(writer, "client_memory") < 4 << 20)
        // Watches that end owe nothing.
        silent.socket.end()
        try server.catchUp()
        try server.waitForClients(1)
        #expect(try status(writer, "client_memory") < 1 << 20)
    }

    @Test func `a refused transaction keeps nothing of what comes after it`() throws {
        let server = try ServedKeyspace { $0.memoryByteCount = 16 << 20 }
        let (sender, other) = try (server.connect(), server.connect(3))
        try sender.send("MULTI", "SET k \(value(1 << 20))", "NOVERB")
        for _ in 0..<64 { try sender.send("SET k \(value(1 << 20))") }
        try sender.send("GET", "EXEC")
        let replies = try sender.next(69)
        #expect(replies[2].errorText != nil)
        #expect(replies[3..<67].allSatisfy { $0 == .simple("QUEUED") })
        #expect(replies[67].errorText != nil)
        #expect(replies[68].errorText?.hasPrefix("EXECABORT") == true)
        #expect(try status(other, "client_memory_refused") == 0)
        // While it is open: what it holds is not more than what a client has at rest.
        try sender.send("MULTI", "NOVERB")
        for _ in 0..<8 { try sender.send("SET k \(value(1 << 20))") }
        _ = try sender.next(10)
        #expect(try status(other, "client_memory") < 1 << 20)
    }

    @Test func `what is counted is nothing once everything is read`() throws {
        let server = try ServedKeyspace()
        let peer = try server.connect(3)
        try fill(peer, 3)
        #expect(try peer.ask("STATE.LIST big/").elements?.count == 3)
        for command in [
            "WATCH a b c", "MULTI", "SET a \(value(100_000))", "DISCARD", "STATE.WATCH /",
            "SUBSCRIBE a",
        ] {
            _ = try peer.ask(command)
        }
        _ = try peer.ask("RESET")
        let other = try server.connect(3)
        try server.waitUntil("little memory") { try status(other, "client_memory") < 256 << 10 }
    }

    @Test(.enabled(if: TestUser.areThere))
    func `a message to many costs who subscribes often, and reaches all others`() throws {
        let limit: Int64 = 32 << 20
        let server = try ServedKeyspace { $0.memoryByteCount = Int(limit) }
        let (victim, sender) = try (server.connect(), server.connect(3))
        _ = try victim.ask("SUBSCRIBE c")
        let greedy = try (0..<40).map { _ in try server.connect(as: TestUser.names[0]) }
        for client in greedy { _ = try client.peer.ask("SUBSCRIBE c") }
        let message = value(2 << 20)
        for _ in 0..<3 {
            #expect(try sender.ask("PUBLISH c \(message)").integerValue ?? 0 >= 1)
            #expect(try victim.next().elements?[2].textValue?.utf8.count == 2 << 20)
            #expect(try status(sender, "client_memory") <= limit)
        }
    }

    @Test(.enabled(if: TestUser.areThere))
    func `a commit that many watch costs who watches often, and reaches all others`() throws {
        let limit: Int64 = 32 << 20
        let server = try StoredServer { $0.memoryByteCount = Int(limit) }
        let (victim, writer) = try (server.connect(), server.connect())
        _ = try victim.ask("STATE.WATCH big/")
        let greedy = try (0..<40).map { _ in try server.server.connect(as: TestUser.names[0]) }
        for client in greedy {
            _ = try client.peer.ask("HELLO 3")
            _ = try client.peer.ask("STATE.WATCH big/")
        }
        for number in 0..<3 {
            #expect(try writer.ask("SET big/\(number) \(value(2 << 20))") == .simple("OK"))
            #expect(try victim.next().pushKind == "state.change")
            #expect(try status(writer, "client_memory") <= limit)
        }
        for client in greedy { client.peer.socket.end() }
    }

    // MARK: Places

    @Test(.enabled(if: TestUser.areThere))
    func `one user takes no more than three quarters of the places, and root always gets in`()
        throws
    {
        let server = try ServedKeyspace { $0.clientCount = 8 }
        let greedy = try (0..<6).map { _ in try server.connect(as: TestUser.names[0]) }
        for peer in greedy { #expect(try peer.peer.ask("PING") == .simple("PONG")) }
        let refused = try server.connect(as: TestUser.names[0])
        #expect(
            try refused.peer.rest().map(\.shown) == [
                "-LIMIT uid \(refused.uid) has 6 clients, the limit of one user: three quarters of limits.clients, 8"
            ]
        )
        let others = try (0..<2).map { _ in try server.connect(as: TestUser.names[1]) }
        for peer in others { #expect(try peer.peer.ask("PING") == .simple("PONG")) }
        let late = try server.connect(as: TestUser.names[1])
        #expect(try late.peer.rest().map(\.shown) == ["-ERR max number of clients reached"])
        #expect(try server.connect().ask("PING") == .simple("PONG"))
        withExtendedLifetime((greedy, others)) {}
    }
}

struct UnfinishedInputTests {
    private func value(_ byteCount: Int) -> String { String(repeating: "v", count: byteCount) }

    private let head = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$600000\r\n"

    @Test(.enabled(if: TestUser.areThere))
    func `half-sent input costs the user who has most of it, not the connection`() throws {
        let server = try ServedKeyspace { $0.inputByteCount = 1 << 20 }
        let greedy = try (0..<40).map { _ in try server.connect(as: TestUser.names[0]) }
        for peer in greedy {
            try? peer.peer.socket.send(head + value(40_000))
            try server.catchUp()
        }
        let victim = try server.connect()
        // More than any of them has.
        try victim.socket.send(head + value(500_000))
        try server.catchUp()
        try victim.socket.send(value(100_000) + "\r\n")
        #expect(try victim.next() == .simple("OK"))
        let lines = server.log.current.filter { $0.contains("unfinished input") }
        #expect(lines.count == 1 && lines[0].contains("uid \(greedy[0].uid)"))
    }

    @Test(arguments: ["*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$600\r\nv", "*", "SET k", "PING\r\n*1\r\n"])
    func `a command that is begun and not ended in time ends its connection`(begun: String) throws {
        let server = try ServedKeyspace { $0.frameMilliseconds = 20 }
        let (idle, waiting) = try (server.connect(), server.connect())
        try waiting.send("MULTI", "SET k v")
        #expect(try waiting.next(2).map(\.shown) == ["+OK", "+QUEUED"])
        #expect(try idle.ask("PING") == .simple("PONG"))
        let peer = try server.connect()
        try peer.socket.send(begun)
        #expect(
            try peer.rest().map(\.shown).last
                == "-LIMIT a command was not complete within limits.frameTimeout, 20 ms"
        )
        // Who says nothing at all, or has a transaction open, is left alone.
        #expect(try idle.ask("PING") == .simple("PONG"))
        #expect(try waiting.ask("EXEC") == .array([.simple("OK")]))
    }

    @Test func `who waits for others is not timed`() throws {
        let backing = HeldBacking()
        let server = try ServedKeyspace(backing) {
            $0.frameMilliseconds = 20
            $0.limits.queueByteCount = 10
        }
        let (writer, other) = try (server.connect(), server.connect())
        try writer.send("SET a \(value(20))")
        #expect(backing.held() != nil)
        // A whole command that waits for storage, and half of one behind it.
        try other.socket.send("SET b 1\r\nSET c")
        try server.catchUp()
        // The time of one that came later is over.
        let late = try server.connect()
        try late.socket.send("PIN")
        _ = try late.rest()
        backing.open()
        #expect(try other.next() == .simple("OK"))
        #expect(try writer.next() == .simple("OK"))
        #expect(
            try other.rest().map(\.shown).last?.hasPrefix("-LIMIT a command was not") == true
        )
    }

    @Test func `without a limit a command may take for ever`() throws {
        let server = try ServedKeyspace { $0.frameMilliseconds = 0 }
        let peer = try server.connect()
        try peer.socket.send("PI")
        try server.catchUp()
        try peer.socket.send("NG\r\n")
        #expect(try peer.next() == .simple("PONG"))
    }
}
