import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// What work costs the daemon, and that the tool that measures it does the work it names.
struct LoadTests {
    private let daemon: Daemon

    init() throws { daemon = try Daemon() }

    @Test func `what fill wrote, mixed reads, and all of it is there`() throws {
        let socket = daemon.socketPath
        let filled = try statebench("fill", "--socket", socket, "--keys", "2000")
        #expect(filled["requests"] == 2_000)
        let client = try daemon.connect()
        #expect(try client.count(of: .everything) == 2_000)
        #expect(try client.value(for: "key:000000001999")?.count == 64)
        let mixed = try statebench(
            "mixed",
            "--socket",
            socket,
            "--keys",
            "2000",
            "--requests",
            "5000",
            "--clients",
            "10"
        )
        #expect(mixed["misses"] == 0)
        #expect(try client.count(of: .everything) == 2_000)
        let (median, most) = try (#require(mixed["read_p50_us"]), #require(mixed["read_max_us"]))
        #expect(median > 0 && median <= most)
        let missing = try statebench(
            "load",
            "--socket",
            socket,
            "--op",
            "get",
            "--keys",
            "100000",
            "--requests",
            "4000"
        )
        #expect(try #require(missing["misses"]) > 3_000)
    }

    @Test func `listing 100 keys costs the same among 1,000 keys and among 1,000,000`() throws {
        let client = try daemon.connect(timeout: .seconds(60))
        _ = try client.set((0..<100).map { (key: try Key("list/\($0)"), value: [7]) })
        try fill(keyCount: 900)
        let few = try listingTicks(client)
        try fill(keyCount: 999_900)
        #expect(try client.count(of: .everything) == 1_000_000)
        let many = try listingTicks(client)
        // A tick more or less is how exact the counter is.
        #expect(many <= max(few, 2) * 10, "\(many) ticks instead of \(few)")
    }

    private func fill(keyCount: Int) throws {
        _ = try statebench(
            "fill",
            "--socket",
            daemon.socketPath,
            "--keys",
            "\(keyCount)",
            "--value-bytes",
            "8"
        )
    }

    /// Processor time of the daemon for 5,000 listings.
    private func listingTicks(_ client: Client) throws -> Double {
        let before = try daemon.processorTicks()
        for _ in 0..<100 {
            let replies = try client.pipeline(count: 50) { request in
                for _ in 0..<50 { request.append(words: "STATE.LIST", "list/") }
            }
            for reply in replies { #expect(reply.elements?.count == 100) }
        }
        return try daemon.processorTicks() - before
    }
}
