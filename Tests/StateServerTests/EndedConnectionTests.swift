import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// What connections leave behind.
struct EndedConnectionTests {
    private func copyCount(_ peer: Peer) throws -> Int {
        let lines = try peer.ask("INFO stats").textValue?.split(separator: "\r\n") ?? []
        let line = try #require(lines.first { $0.hasPrefix("tracking_total_items:") })
        return try #require(Int(line.split(separator: ":")[1]))
    }

    @Test(arguments: ["", "CLIENT TRACKING OFF", "RESET"])
    func `bounded: others are served while the copies of a client are forgotten`(
        ending: String
    ) throws {
        let server = try ServedKeyspace()
        let (reader, other) = try (server.connect(3), server.connect())
        #expect(try reader.ask("CLIENT TRACKING ON") == .simple("OK"))
        let count = 40_000
        for start in stride(from: 0, to: count, by: 4_000) {
            _ = try reader.ask("MGET" + (start..<start + 4_000).map { " k\($0)" }.joined())
        }
        #expect(try copyCount(other) == count)
        if ending.isEmpty { reader.socket.end() } else { try reader.send(ending) }
        var seen: Set<Int> = []
        try server.waitUntil("no copies") {
            let left = try copyCount(other)
            seen.insert(left)
            return left == 0
        }
        #expect(seen.contains { 0 < $0 && $0 < count }, "\(seen)")
    }

    @Test func `a copy is invalidated once, whoever else has read the key or has left`() throws {
        var random = SplitMix(seed: 58)
        let server = try ServedKeyspace()
        let writer = try server.connect()
        var (peers, copies): ([Peer], [Set<String>]) = ([], [])
        func begin() throws {
            let peer = try server.connect(3)
            #expect(try peer.ask("CLIENT TRACKING ON") == .simple("OK"))
            peers.append(peer)
            copies.append([])
        }
        for _ in 0..<6 { try begin() }
        for step in 0..<3_000 {
            let (place, key) = (Int.random(in: 0..<6, using: &random), "k\(random.next() % 12)")
            switch random.next() % 16 {
            case 0:
                peers.remove(at: place).socket.end()
                copies.remove(at: place)
                try begin()
            case 1:
                _ = try peers[place].ask("CLIENT TRACKING OFF")
                _ = try peers[place].ask("CLIENT TRACKING ON")
                copies[place] = []
            case 2..<11:
                _ = try peers[place].ask("GET \(key)")
                copies[place].insert(key)
            default:
                _ = try writer.ask("SET \(key) \(step)")
                for (index, peer) in peers.enumerated() {
                    let isCopied = copies[index].remove(key) != nil
                    let pushes = try peer.arrived().map(\.shown)
                    try #require(
                        pushes == (isCopied ? ["push[\"invalidate\", [\"\(key)\"]]"] : []),
                        "\(step)"
                    )
                }
            }
        }
    }
}
