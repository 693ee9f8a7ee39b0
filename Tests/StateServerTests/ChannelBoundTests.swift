import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// Law 5, bounded, of channels.
struct ChannelBoundTests {
    private func value(_ byteCount: Int) -> String { String(repeating: "v", count: byteCount) }

    @Test
    func `subscriptions and the names of channels are bounded, and a refusal changes nothing`()
        throws
    {
        let server = try ServedKeyspace {
            $0.subscriptionCount = 3
            $0.channelNameByteCount = 4
            $0.replyByteCount = 1_000
        }
        let limit =
            "-LIMIT more than 3 channels and patterns, the limit of a client; unsubscribe from some, "
            + "or use another connection"
        try server.connect(3).expect(
            """
            > SUBSCRIBE a b
            push["subscribe", "a", 1]
            push["subscribe", "b", 2]
            > PSUBSCRIBE c* d*
            > PSUBSCRIBE c* c*
            \(limit)
            push["psubscribe", "c*", 3]
            push["psubscribe", "c*", 3]
            > SUBSCRIBE a c
            > SUBSCRIBE a b a
            \(limit)
            push["subscribe", "a", 3]
            push["subscribe", "b", 3]
            push["subscribe", "a", 3]
            > UNSUBSCRIBE b
            push["unsubscribe", "b", 2]
            > SUBSCRIBE long abcde
            -TOOBIG channel 'abcde' has 5 bytes; the limit is 4
            > PUBLISH abcde 1
            -TOOBIG channel 'abcde' has 5 bytes; the limit is 4
            > UNSUBSCRIBE a a a a a a a a a a a a a a a a
            -TOOBIG the reply would have more than 1000 bytes, the limit; name fewer channels at once
            > PUBSUB NUMSUB a b long
            > PUBSUB NUMPAT
            ["a", 1, "b", 0, "long", 0]
            1
            """
        )
    }

    @Test func `a message is as large as a value may be`() throws {
        let server = try ServedKeyspace {
            $0.limits.valueByteCount = 2_000
            $0.outputByteCount = 100
        }
        let (subscriber, publisher) = try (server.connect(), server.connect())
        _ = try subscriber.ask("SUBSCRIBE c")
        #expect(try publisher.ask("PUBLISH c \(value(2_000))") == .integer(1))
        #expect(try subscriber.next().elements?[2].textValue == value(2_000))
        #expect(
            try publisher.ask("PUBLISH c \(value(2_001))").errorText
                == "TOOBIG an argument has 2001 bytes; the limit is 2000"
        )
    }

    @Test(arguments: [2, 3])
    func `who does not read its messages is let go, and nobody else notices`(version: Int) throws {
        let server = try ServedKeyspace { $0.outputByteCount = 1 << 20 }
        let (stalled, reader, publisher) = try (
            server.connect(version), server.connect(version), server.connect()
        )
        _ = try stalled.ask("SUBSCRIBE c")
        _ = try reader.ask("PSUBSCRIBE c*")
        let payload = value(10_000)
        var sent = 0
        try server.waitUntil("the end of the stalled client") {
            let count = try publisher.ask("PUBLISH c \(payload)").integerValue ?? 0
            sent += 1
            try #require(try reader.next().elements?[3].textValue == payload)
            return count == 1
        }
        // What the sockets take, and the limit, one message more at most.
        #expect((100...400).contains(sent))
        let line = try #require(server.log.current.first { $0.contains("was disconnected") })
        #expect(line.hasPrefix("<4> client 1 (uid "))
        #expect(
            line.contains("does not read its messages") && line.hasSuffix("the limit is 1048576")
        )
        let information = try #require(try publisher.ask("INFO stats").textValue)
        #expect(information.contains("\r\nclient_output_buffer_limit_disconnections:1\r\n"))
        try publisher.expect("> PUBSUB CHANNELS\n> PUBSUB NUMPAT\n[]\n1")
        // What left before it ends with the stream, in the middle of a message.
        let received = try stalled.socket.receiveAll()
        #expect(received.count < sent * 10_000)
    }

    @Test func `one commit of more notices than the limit lets go who does not read them`() throws {
        let server = try ServedKeyspace(HeldBacking(isHeld: false)) { $0.outputByteCount = 10_000 }
        let (stalled, other, writer) = try (server.connect(), server.connect(), server.connect())
        _ = try stalled.ask("PSUBSCRIBE __keyspace@0__:*")
        _ = try other.ask("SUBSCRIBE __keyspace@0__:key5")
        let pairs = (0..<20_000).map { "key\($0) 1" }.joined(separator: " ")
        #expect(try writer.ask("MSET \(pairs)") == .simple("OK"))
        #expect(try other.next().elements?[1].textValue == "__keyspace@0__:key5")
        try server.waitUntil("the end of the stalled client") {
            server.log.current.contains {
                $0.contains("client 1 ") && $0.contains("was disconnected")
            }
        }
        #expect(try writer.ask("PUBSUB NUMPAT") == .integer(0))
    }

    @Test func `large replies do not cost a reader its subscriptions`() throws {
        let server = try ServedKeyspace { $0.outputByteCount = 10_000 }
        let (peer, other) = try (server.connect(3), server.connect())
        _ = try peer.ask("SUBSCRIBE c")
        _ = try other.ask("SET k \(value(4 << 20))")
        try peer.send("GET k")
        try server.catchUp()
        for number in 0..<100 {
            #expect(try other.ask("PUBLISH c \(number)") == .integer(1))
        }
        #expect(try peer.next().textValue?.utf8.count == 4 << 20)
        for number in 0..<100 {
            #expect(try peer.next().shown == #"push["message", "c", "\#(number)"]"#)
        }
        #expect(try peer.ask("PING") == .simple("PONG"))
    }

    @Test
    func `a client that sends to itself and does not read is made to wait, and loses nothing`()
        throws
    {
        let server = try ServedKeyspace { $0.outputByteCount = 100_000 }
        let peer = try server.connect(3)
        _ = try peer.ask("SUBSCRIBE c")
        var requests = RequestWriter()
        for _ in 0..<200 { requests.append(words: "PUBLISH", "c", value(20_000)) }
        var sent = 0
        try server.waitUntil("a pause") {
            let count = try peer.socket.sendAtOnce(requests.bytes[sent...])
            sent += count
            return count == 0
        }
        for _ in 0..<200 {
            sent += try peer.socket.sendAtOnce(requests.bytes[sent...])
            try #require(try peer.next() == .integer(1))
            try #require(try peer.next().elements?[2].textValue?.utf8.count == 20_000)
        }
        #expect(try peer.ask("PING") == .simple("PONG"))
    }
}
