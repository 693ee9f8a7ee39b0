import StateTestSupport
import Testing

struct ByteSocketTests {
    @Test(.timeLimit(.minutes(1)))
    func `what arrives while there is no room to send is kept, however often something does`()
        throws
    {
        let byteCount = 4 << 20
        // It reads only once everything that it has sent in two parts was taken.
        let server = try TranscriptServer(
            .send("x"),
            .send(String(repeating: "y", count: byteCount)),
            .receive(byteCount)
        )
        let socket = try ByteSocket(path: server.path)
        _ = socket.isReadable(within: 20_000)
        try socket.send([UInt8](repeating: 0x7A, count: byteCount))
        #expect(server.finish().utf8.count == byteCount)
        let arrived = try socket.receiveAll()
        #expect(arrived.count == byteCount + 1)
        #expect(arrived.first == UInt8(ascii: "x") && arrived.last == UInt8(ascii: "y"))
    }
}
