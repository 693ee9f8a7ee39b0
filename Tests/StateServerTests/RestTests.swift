import Glibc
import StateServer
import StateTestSupport
import Testing

/// Who keeps others waiting by commands that are one moment rests between them.
struct RestTests {
    /// As many replies come for ``pipeline``.
    private static let replyCount = 3 * 400
    /// Fits into a socket; each EXEC looks at all keys in one moment.
    private let pipeline = (0..<400).flatMap { _ in
        ["MULTI", "STATE.LIST *z COUNT", "EXEC"].map { Peer.words($0) }
    }

    private func fill(_ server: ServedKeyspace, _ keyCount: Int = 9_000) throws {
        let peer = try server.connect()
        let pairs = (0..<keyCount).map { "m/\($0) v" }.joined(separator: " ")
        #expect(try peer.ask("MSET \(pairs)").shown == "+OK")
    }

    @Test(.enabled(if: TestUser.areThere))
    func `bounded: long commands of one user wait while others are served, and not longer`() throws
    {
        let server = try ServedKeyspace { $0.restMilliseconds = 10_000 }
        try fill(server)
        let heavy = try server.connect(as: TestUser.names[0]).peer
        let other = try server.connect()
        try heavy.send(pipeline)
        for _ in 0..<4_000 { #expect(try other.ask("PING").shown == "+PONG") }
        // Were it served by turns with the other, all would be answered long ago.
        let count = try heavy.arrived().count
        #expect(count < RestTests.replyCount)
        _ = try heavy.next(RestTests.replyCount - count)
    }

    @Test(.enabled(if: TestUser.areThere))
    func `root and the daemon's own user do not rest so long`() throws {
        let server = try ServedKeyspace { $0.restMilliseconds = 10_000 }
        try fill(server, Extent.rounds(9_000))
        let heavy = try server.connect()
        let other = try server.connect(as: TestUser.names[0]).peer
        try heavy.send(pipeline)
        var count = 0
        let areAnswered = try eventually(within: .seconds(60)) {
            #expect(try other.ask("PING").shown == "+PONG")
            count += try heavy.arrived().count
            return count == RestTests.replyCount
        }
        #expect(areAnswered, "\(count) are answered")
    }

    @Test(.enabled(if: TestUser.areThere))
    func `who leaves and comes back has not rested`() throws {
        let server = try ServedKeyspace { $0.restMilliseconds = 10_000 }
        try fill(server)
        let other = try server.connect()
        for _ in 0..<20 {
            let heavy = try server.connect(as: TestUser.names[0]).peer
            try heavy.send(Array(pipeline.prefix(3)))
            heavy.socket.end()
            for _ in 0..<200 { _ = try other.ask("PING") }
        }
        let key = try server.connect(as: TestUser.names[0]).peer
        try key.send("SET last 1")
        for _ in 0..<200 { _ = try other.ask("PING") }
        #expect(try key.arrived().isEmpty)
        #expect(try key.next().shown == "+OK")
    }

    @Test(.enabled(if: TestUser.areThere))
    func `whoever comes while others come and go is accepted`() throws {
        let server = try ServedKeyspace()
        for round in 0..<200 {
            let clients = try (0..<4).map { number in
                number % 2 == 0
                    ? try server.connect() : try server.connect(as: TestUser.names[0]).peer
            }
            // In every second round all others leave while the listener rests.
            for client in clients.dropLast(round % 2) {
                #expect(try client.ask("PING").shown == "+PONG")
            }
            for client in clients { client.socket.end() }
        }
        #expect(try server.connect().ask("PING").shown == "+PONG")
    }

    @Test func `many short events in a row are worth a rest, as many now and then are not`() {
        var rest = Rest()
        for number in 0..<12 as Range<Int64> {
            rest.note(10_000, at: 10_000 * number, longest: 150_000_000)
            #expect(rest.debtEnd == 0, "event \(number)")
        }
        for number in 12..<20 as Range<Int64> {
            rest.note(10_000, at: 10_000 * number, longest: 150_000_000)
        }
        #expect(rest.debtEnd == 220_000 && rest.end == 0)
        // A fifth of the time.
        var calm = Rest()
        for number in 0..<1_000 as Range<Int64> {
            calm.note(20_000, at: 100_000 * number, longest: 150_000_000)
        }
        #expect(calm.debtEnd == 0)
    }

    @Test func `a rest grows with what was longer than a slice, up to its limit`() {
        var rest = Rest()
        rest.note(10_000, at: 0, longest: 150_000_000)
        #expect(rest.end == 0, "a few commands are worth none")
        rest.note(80_000, at: 1_000, longest: 150_000_000)
        #expect(rest.end == 241_000)
        // One large command now and then is free.
        rest.note(900_000, at: 10_000_000, longest: 150_000_000)
        #expect(rest.end == 12_700_000)
        rest.note(250_000, at: 20_000_000, longest: 150_000_000)
        #expect(rest.end == 110_750_000)
        rest.note(5_000_000, at: 100_000_000, longest: 150_000_000)
        #expect(rest.end == 250_000_000)
        rest.note(5_000_000, at: 300_000_000, longest: 0)
        #expect(rest.end == 315_000_000, "of administrators, and if there is no limit")
        for _ in 0..<20 { rest.age() }
        rest.note(900_000, at: 400_000_000, longest: 150_000_000)
        #expect(rest.end == 402_700_000)
    }
}
