import CLinux
import Glibc
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// A daemon that is restarted by its service manager goes on with the connections of its last process.
struct HandoverTests {
    let manager: HandoverManager

    init() throws { manager = try HandoverManager() }

    /// A client with RESP3.
    private func modern() throws -> Peer {
        let peer = try manager.connect()
        _ = try peer.ask("HELLO 3")
        return peer
    }

    // MARK: Commands

    @Test func `clients that send commands during restarts see no error and no end`() throws {
        let manager = manager
        let failures = StateLock([String]())
        let isOver = StateLock(false)
        @Sendable func load(_ number: Int) throws {
            let peer = try manager.connect()
            var count: Int64 = 0
            while !isOver.withLock({ $0 }) || count < 10 {
                try peer.send("INCR load/\(number)", "SET k/\(number) v", "GET k/\(number)")
                count += 1
                let replies = try peer.next(3)
                let expected: [Reply] = [.integer(count), .simple("OK"), .bulk(Array("v".utf8))]
                guard replies == expected else { throw SystemFailure("\(replies)") }
            }
        }
        onThreads(9) { number in
            do {
                if number > 0 { return try load(number) }
                defer { isOver.withLock { $0 = true } }
                for _ in 0..<3 {
                    poll(nil, 0, 50)
                    try manager.restart()
                }
            } catch {
                failures.withLock { $0.append("\(number): \(error)") }
            }
        }
        #expect(failures.withLock { $0 } == [])
        #expect(manager.log.contains("connections of the last process that go on: 8"))
        #expect(manager.kept.isEmpty)
    }

    @Test func `what a client has set for its connection stays`() throws {
        let peer = try modern()
        _ = try peer.ask("CLIENT SETNAME camera")
        _ = try peer.ask("CLIENT SETINFO LIB-NAME lib")
        let number = try peer.ask("CLIENT ID")
        try manager.restart()
        #expect(try peer.ask("CLIENT ID") == number)
        #expect(try peer.ask("CLIENT GETNAME") == .bulk(Array("camera".utf8)))
        let info = try peer.ask("CLIENT INFO").textValue ?? ""
        #expect(info.contains("lib-name=lib") && info.contains("resp=3"), "\(info)")
        #expect(try manager.connect().ask("CLIENT ID") != number)
        try peer.send("CLIENT REPLY OFF")
        _ = try manager.connect().ask("PING")
        try manager.restart()
        try peer.send("SET quiet 1", "CLIENT REPLY ON")
        #expect(try peer.next() == .simple("OK"))
        #expect(try peer.ask("GET quiet") == .bulk([0x31]))
    }

    @Test func `a command that has arrived in part is completed after the restart`() throws {
        let peer = try manager.connect()
        try peer.socket.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$10\r\nhello")
        try manager.restart()
        try peer.socket.send("world\r\n")
        #expect(try peer.next() == .simple("OK"))
        #expect(try peer.ask("GET k") == .bulk(Array("helloworld".utf8)))
    }

    @Test func `output that the client has not read comes after the restart`() throws {
        let peer = try manager.connect()
        let value = [UInt8](repeating: UInt8(ascii: "v"), count: 1 << 20)
        #expect(try peer.ask(["SET", "big"].map { Array($0.utf8) } + [value]) == .simple("OK"))
        for _ in 0..<20 { try peer.socket.send("GET big\r\n") }
        _ = try manager.connect().ask("PING")
        try manager.restart()
        for _ in 0..<20 { #expect(try peer.next() == .bulk(value)) }
        #expect(try peer.ask("PING") == .simple("PONG"))
    }

    @Test func `a transaction goes on where it was, with the keys that it watches`() throws {
        let peers = try (0..<4).map { _ in try manager.connect() }
        let other = try manager.connect()
        _ = try other.ask("SET a 1")
        for (peer, key) in zip(peers, ["a", "b", "absent", "set"]) {
            #expect(try peer.ask("WATCH \(key)") == .simple("OK"))
            #expect(try peer.ask("MULTI") == .simple("OK"))
            #expect(try peer.ask("SET of/\(key) 1") == .simple("QUEUED"))
        }
        _ = try other.ask("SET set 1")
        _ = try other.ask("DEL set")
        try manager.restart()
        _ = try other.ask("SET a 2")
        for peer in peers { #expect(try peer.ask("GET a") == .simple("QUEUED")) }
        #expect(try peers[0].ask("EXEC") == .null)
        #expect(try peers[1].ask("EXEC").shown == #"[+OK, "2"]"#)
        _ = try other.ask("SET absent 1")
        #expect(try peers[2].ask("EXEC") == .null)
        #expect(try peers[3].ask("EXEC") == .null)
        #expect(try other.ask("EXISTS of/a of/b of/absent of/set") == .integer(1))
    }

    // MARK: Watches

    @Test(arguments: ["", " PREVIOUS BY"]) func `a watch gets each commit once`(
        options: String
    ) throws {
        let watcher = try modern()
        _ = try watcher.ask("STATE.WATCH w/\(options)")
        let writer = try manager.connect()
        for round in 0..<4 {
            for number in 0..<50 { _ = try writer.ask("SET w/\(number) \(round)") }
            try manager.restart()
        }
        var found: [String] = []
        while found.count < 200 {
            guard case .push(let push) = try watcher.next() else {
                Issue.record("no push")
                return
            }
            guard push[0].textValue == "state.change" else {
                #expect(push[0].textValue == "state.progress")
                continue
            }
            found.append(push[3].shown.replacing(", (nil)", with: ""))
        }
        #expect(Set(found).count == (options.isEmpty ? 200 : found.count))
        for round in 0..<4 {
            let part = found[(50 * round)..<(50 * round + 50)].enumerated()
            #expect(part.allSatisfy { $1.hasPrefix("[[\"w/\($0)\", \"\(round)\"") })
        }
        #expect(try watcher.ask("STATE.UNWATCH 1") == .simple("OK"))
    }

    @Test func `a watch of keys in memory gets a gap after the restart, and no revision twice`()
        throws
    {
        let place = try TemporaryDirectory()
        let rules = "{ rules: [{ keys: 'mem/', backing: 'memory' }] }"
        let manager = try HandoverManager(["--config", place.write(rules, to: "c.json5")])
        let (watcher, writer) = (try manager.connect(), try manager.connect())
        _ = try watcher.ask("HELLO 3")
        _ = try watcher.ask("STATE.WATCH mem/")
        var last: Int64 = 0
        for _ in 0..<3 {
            let commit = try writer.ask("STATE.SET mem/k 1")
            let revision = try #require(commit["revision"]?.integerValue)
            #expect(revision > last && revision <= last + 2)
            last = revision
            try manager.restart()
            var isGap = false
            while !isGap {
                guard case .push(let push) = try watcher.next() else { continue }
                isGap = push[0].textValue == "state.gap"
            }
        }
    }

    @Test func `a watch of latest values has the newest ones after the restart`() throws {
        let watcher = try modern()
        _ = try watcher.ask("STATE.WATCH w/ LATEST")
        let writer = try manager.connect()
        for number in 0..<100 { _ = try writer.ask("SET w/\(number % 3) \(number)") }
        try manager.restart()
        for number in 100..<200 { _ = try writer.ask("SET w/\(number % 3) \(number)") }
        var last: [String: String] = [:]
        while last != ["w/0": "198", "w/1": "199", "w/2": "197"] {
            guard case .push(let push) = try watcher.next() else { return }
            #expect(push[0].textValue != "state.gap")
            guard push[0].textValue == "state.change" else { continue }
            for row in push[3].elements ?? [] {
                let fields = row.elements ?? []
                last[fields[0].textValue ?? ""] = fields[1].textValue
            }
        }
    }

    @Test func `a snapshot goes on in its midst`() throws {
        let writer = try manager.connect()
        let value = String(repeating: "v", count: 1_000)
        let count = 20_000
        for start in stride(from: 0, to: count, by: 1_000) {
            try writer.send((start..<start + 1_000).map { Peer.words("SET s/\($0) \(value)") })
            _ = try writer.next(1_000)
        }
        let watcher = try modern()
        try watcher.send("STATE.WATCH s/ SNAPSHOT")
        _ = try writer.ask("PING")
        try manager.restart()
        try manager.restart()
        var keys: [String] = []
        while true {
            let reply = try watcher.next()
            guard case .push(let push) = reply else { continue }
            if push[0].textValue == "state.synced" { break }
            try #require(push[0].textValue == "state.change", "\(push[0].shown)")
            keys += (push[3].elements ?? []).compactMap { $0.elements?.first?.textValue }
        }
        #expect(keys.count == count && Set(keys).count == count)
        _ = try writer.ask("SET s/new 1")
        #expect(try watcher.next().shown.contains("s/new"))
    }

    @Test func `a named handler stays attached`() throws {
        let peer = try manager.connect()
        _ = try peer.ask("STATE.HANDLER ATTACH h w/")
        _ = try peer.ask("SET w/1 1")
        try manager.restart()
        let other = try manager.connect()
        #expect(try other.ask("STATE.HANDLER ATTACH h w/").errorText?.contains("CONFLICT") == true)
        #expect(try peer.ask("STATE.HANDLER DONE h 1") == .simple("OK"))
    }

    @Test func `a named handler stays with who has taken it over from a process that has ended`()
        throws
    {
        let ended = try Peer(ByteSocket.ofEndedProcess(connectedTo: manager.socketPath))
        let peer = try manager.connect()
        for peer in [ended, peer] {
            #expect(try peer.ask("STATE.HANDLER ATTACH h w/").errorText == nil)
        }
        _ = try peer.ask("SET w/1 1")
        try manager.restart()
        #expect(try peer.ask("STATE.HANDLER DONE h 1") == .simple("OK"))
        #expect(try ended.ask("STATE.HANDLER DONE h 1").errorText?.hasPrefix("CONFLICT") == true)
    }

    @Test func `what a handler has done of another store is no position in this one`() throws {
        let peer = try manager.connect()
        for number in 1...3 { _ = try peer.ask("SET w/\(number) 1") }
        _ = try peer.ask("STATE.HANDLER ATTACH h FROM 0 w/")
        #expect(try peer.ask("STATE.HANDLER DONE h 1") == .simple("OK"))
        try manager.stop()
        let data = manager.directory.path(of: "data")
        let script = #"cp -a "$0" "$0.copy" && rm -r "$0" && mv "$0.copy" "$0""#
        #expect(try runCommand("/bin/sh", ["-c", script, data]).exitCode == 0)
        try manager.start()
        // It has to attach again, and learns then which store the position is of.
        #expect(try peer.rest() == [])
        let attached = try manager.connect().ask("STATE.HANDLER ATTACH h w/")
        #expect(attached["position"] == .integer(1))
        #expect(attached["epoch"] != attached["current_epoch"])
    }

    // MARK: Messages and copies

    @Test func `subscriptions stay`() throws {
        let old = try manager.connect()
        let new = try modern()
        for peer in [old, new] {
            for verb in ["SUBSCRIBE news", "PSUBSCRIBE n*", "SSUBSCRIBE shard"] {
                _ = try peer.ask(verb)
            }
        }
        try manager.restart()
        let publisher = try manager.connect()
        #expect(try publisher.ask("PUBLISH news 1") == .integer(4))
        #expect(try publisher.ask("SPUBLISH shard 2") == .integer(2))
        let rows = [
            #"["message", "news", "1"]"#, #"["pmessage", "n*", "news", "1"]"#,
            #"["smessage", "shard", "2"]"#,
        ]
        #expect(try old.next(3).map(\.shown) == rows)
        #expect(try new.next(3).map(\.shown) == rows.map { "push\($0)" })
        #expect(try new.ask("UNSUBSCRIBE").shown == #"push["unsubscribe", "news", 1]"#)
    }

    @Test func `a subscriber for whom messages wait too long is disconnected, not left with a gap`()
        throws
    {
        let (reader, writer) = try (modern(), manager.connect())
        // Comparing one notice with them takes milliseconds.
        let classes = String(repeating: "[^]", count: 200)
        let globs = (0..<200).map { "__keyspace@0__:*\(classes)b\($0)" }.joined(separator: " ")
        try reader.send("PSUBSCRIBE __keyspace@0__:* \(globs)")
        _ = try reader.next(201)
        let keys = (0..<2_000).map { "k\($0)" + String(repeating: "a", count: 600) }
        let pairs = keys.map { "\($0) 1" }.joined(separator: " ")
        #expect(try writer.ask("MSET \(pairs)") == .simple("OK"))
        try manager.restart()
        let told = try reader.rest().map { $0.elements?[2].textValue }
        #expect(told.count < keys.count)
        #expect(told == keys.prefix(told.count).map { "__keyspace@0__:\($0)" })
        #expect(try writer.ask("PING") == .simple("PONG"))
    }

    @Test func `copies that clients keep are declared void after the restart`() throws {
        let writer = try manager.connect()
        _ = try writer.ask("MSET a 1 b 1 c 1")
        let (own, broadcast, target) = (try modern(), try modern(), try manager.connect())
        let reader = try manager.connect()
        _ = try own.ask("CLIENT TRACKING ON")
        _ = try own.ask("GET a")
        _ = try broadcast.ask("CLIENT TRACKING ON BCAST PREFIX b")
        let number = try target.ask("CLIENT ID").shown
        _ = try target.ask("SUBSCRIBE __redis__:invalidate")
        #expect(try reader.ask("CLIENT TRACKING ON REDIRECT \(number)") == .simple("OK"))
        _ = try reader.ask("GET c")
        try manager.restart()
        for peer in [own, broadcast, target] { #expect(try peer.arrived() == []) }
        _ = try writer.ask("MSET a 2 b 2 c 2")
        #expect(try own.next().shown == #"push["invalidate", ["a"]]"#)
        #expect(try broadcast.next().shown == #"push["invalidate", ["b"]]"#)
        #expect(try target.next().shown == #"["message", "__redis__:invalidate", ["c"]]"#)
    }

    /// A manager whose daemon has room for so many copies.
    private func manager(copies count: Int, _ place: TemporaryDirectory) throws -> HandoverManager {
        try limit(copies: count, place)
        return try HandoverManager(["--config", place.path(of: "c.json5")])
    }

    private func limit(copies count: Int, _ place: TemporaryDirectory) throws {
        try place.write("{ limits: { trackedKeys: \(count) } }", to: "c.json5")
    }

    /// What comes before the reply to a PING.
    private func arrivedBeforePong(_ peer: Peer) throws -> [Reply] {
        try peer.send("PING")
        var replies: [Reply] = []
        while true {
            let reply = try peer.next()
            if reply == .simple("PONG") || reply.shown == #"["pong", ""]"# { return replies }
            replies.append(reply)
        }
    }

    @Test func `copies for which there is no room any more are void, between whole replies`()
        throws
    {
        let place = try TemporaryDirectory()
        let manager = try manager(copies: 100, place)
        let peer = try manager.connect()
        let value = [UInt8](repeating: UInt8(ascii: "v"), count: 1 << 20)
        #expect(try peer.ask(["SET", "big"].map { Array($0.utf8) } + [value]) == .simple("OK"))
        _ = try peer.ask("HELLO 3")
        _ = try peer.ask("CLIENT TRACKING ON")
        for number in 0..<20 { _ = try peer.ask("GET k/\(number)") }
        // The last process sends a part of one of these values.
        for _ in 0..<20 { try peer.socket.send("GET big\r\n") }
        _ = try manager.connect().ask("PING")
        try limit(copies: 1, place)
        try manager.restart()
        let replies = try arrivedBeforePong(peer)
        #expect(replies.count { $0 == .bulk(value) } == 20)
        let others = replies.filter { $0 != .bulk(value) }
        #expect(others.allSatisfy { $0.shown.hasPrefix(#"push["invalidate""#) })
        #expect(others.count >= 20)
    }

    @Test func `who keeps no copies for lack of room is told by the connection that it has named`()
        throws
    {
        let place = try TemporaryDirectory()
        let manager = try manager(copies: 100, place)
        // Connections go on in the order of their numbers.
        let (reader, target) = (try manager.connect(), try manager.connect())
        let number = try target.ask("CLIENT ID").shown
        _ = try target.ask("SUBSCRIBE __redis__:invalidate")
        _ = try reader.ask("HELLO 3")
        #expect(try reader.ask("CLIENT TRACKING ON REDIRECT \(number)") == .simple("OK"))
        for number in 0..<20 { _ = try reader.ask("GET k/\(number)") }
        try limit(copies: 1, place)
        try manager.restart()
        #expect(try arrivedBeforePong(reader) == [])
        #expect(try arrivedBeforePong(target).count == 19)
        _ = try reader.ask("GET new")
        #expect(try arrivedBeforePong(target).count == 1)
    }

    // MARK: Lifetimes

    @Test func `keys of a connection stay, and end with it`() throws {
        let holder = try manager.connect()
        #expect(try holder.ask("STATE.SET lock 1 LIFETIME connection").errorText == nil)
        #expect(try holder.ask("STATE.SET process 1 LIFETIME process").errorText == nil)
        let waiting = try modern()
        _ = try waiting.ask("STATE.WATCH lock")
        try manager.restart()
        #expect(try waiting.ask("GET lock") == .bulk([0x31]))
        #expect(try holder.ask("STATE.CLAIM").elements?[3] == .integer(1))
        #expect(try waiting.arrived() == [])
        holder.socket.end()
        #expect(try waiting.next().shown.contains(#"[["lock", (nil)]]"#))
        #expect(try waiting.ask("EXISTS process") == .integer(1))
    }

    // MARK: Bounds

    @Test func `more clients than fit into a message go on`() throws {
        ByteSocket.allow(4_096)
        let peers = try (0..<600).map { _ in try manager.connect() }
        for (number, peer) in peers.enumerated() {
            #expect(try peer.ask("SET many/\(number) 1") == .simple("OK"))
        }
        try manager.restart()
        #expect(eventually { manager.log.contains("go on: 600") }, "\(manager.log)")
        for (number, peer) in peers.enumerated() {
            #expect(try peer.ask("GETDEL many/\(number)") == .bulk([0x31]))
        }
    }

    @Test func `the places are those of the new configuration`() throws {
        let place = try TemporaryDirectory()
        let path = try place.write(Array("{ limits: { clients: 50 } }".utf8), to: "c.json5")
        let manager = try HandoverManager(["--config", path])
        let peers = try (0..<40).map { _ in try manager.connect() }
        for peer in peers { #expect(try peer.ask("PING") == .simple("PONG")) }
        try place.write(Array("{ limits: { clients: 10 } }".utf8), to: "c.json5")
        try manager.restart()
        // 8 more for the daemon's own user.
        #expect(eventually { manager.log.contains("go on: 18") }, "\(manager.log)")
        #expect(eventually { manager.log.contains("because max number of clients reached") })
        for peer in peers[..<18] { #expect(try peer.ask("PING") == .simple("PONG")) }
        for peer in peers[18...] { #expect(try peer.rest() == []) }
    }

    /// Before Linux 6.10 the kernel does not pass on the socket of such a client.
    @Test func `a client that passes sockets in sockets costs only its own connection`() throws {
        let peers = try (0..<20).map { _ in try manager.connect() }
        let client = try RawSocket.connected(to: manager.socketPath)
        var inner = client.descriptor
        var opened: [Int32] = []
        for _ in 0..<4 {
            var ends: [Int32] = [-1, -1]
            try #require(
                socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0, &ends) == 0
            )
            if !opened.isEmpty {
                #expect(clinux_send_descriptors(ends[0], nil, 0, "x", 1, [inner], 1) == 1)
            }
            opened += ends
            inner = ends[1]
        }
        #expect(clinux_send_descriptors(client.descriptor, nil, 0, "\r\n", 2, [inner], 1) == 2)
        for peer in peers { #expect(try peer.ask("PING") == .simple("PONG")) }
        try manager.restart()
        for peer in peers { #expect(try peer.ask("PING") == .simple("PONG")) }
        for descriptor in opened { close(descriptor) }
    }

    // MARK: What does not go on

    @Test func `a monitor ends, as do those of a manager that keeps no descriptors`() throws {
        let monitor = try manager.connect()
        _ = try monitor.ask("MONITOR")
        try manager.restart()
        _ = try monitor.rest()
        let other = try HandoverManager(environment: [:])
        let peer = try other.connect()
        _ = try peer.ask("PING")
        try other.stop()
        #expect(other.kept.isEmpty)
        _ = try peer.rest()
    }
}
