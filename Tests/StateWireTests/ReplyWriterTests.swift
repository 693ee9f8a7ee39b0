import StateEngine
import StateWire
import Testing

struct ReplyWriterTests {
    /// What `write` writes, as text.
    private func written(_ write: (inout ByteBuffer) -> Void) -> String {
        var buffer = ByteBuffer()
        write(&buffer)
        return buffer.bytes.text
    }

    @Test func `every type as it stands on the wire`() {
        #expect(written { $0.writeOK() } == "+OK\r\n")
        #expect(written { $0.writeSimple("PONG") } == "+PONG\r\n")
        #expect(written { $0.writeInteger(.min) } == ":-9223372036854775808\r\n")
        #expect(written { $0.writeBulk("a\r\nä") } == "$5\r\na\r\nä\r\n")
        #expect(written { $0.writeBulk([UInt8]()) } == "$0\r\n\r\n")
        #expect(written { $0.writeArray(2) } == "*2\r\n")
        #expect(written { $0.writePush(3) } == ">3\r\n")
    }

    @Test(arguments: [
        (ProtocolVersion.resp2, "$-1\r\n", "*-1\r\n", "*4\r\n"),
        (.resp3, "_\r\n", "_\r\n", "%2\r\n"),
    ])
    func `nulls and maps in each version`(
        version: ProtocolVersion,
        null: String,
        array: String,
        map: String
    ) {
        #expect(written { $0.writeNull(version) } == null)
        #expect(written { $0.writeNullArray(version) } == array)
        #expect(written { $0.writeMap(2, version) } == map)
    }

    @Test func `an error is one line, whatever its message has in it`() {
        let error = StateError(.conflict, "key 'a\r\n+OK' is at\nrevision 7")
        #expect(
            written { $0.writeError(error) }
                == "-CONFLICT key 'a\\x0D\\x0A+OK' is at\\x0Arevision 7\r\n"
        )
    }

    @Test func `each wire error has a sentence of its own`() {
        let errors: [WireError] = [
            .invalidArrayLength, .invalidBulkLength, .expectedBulk(7), .expectedLineEnd,
            .inlineTooLong(limit: 9), .unbalancedQuotes, .commandTooLong(limit: 9),
            .tooBig(byteCount: 10, limit: 9),
        ]
        #expect(Set(errors.map { "\($0.answer)" }).count == errors.count)
        #expect("\(WireError.expectedBulk(13).answer)".hasSuffix("expected '$', got '\\x0D'"))
    }
}
