import StateEngine
import Testing

/// Numbers, bytes and times as people write them.
struct QuantityTests {
    @Test(arguments: [
        ("0", 0), ("512", 512), ("512B", 512), ("64KiB", 65_536), ("8MiB", 8 << 20),
        ("1GiB", 1 << 30), ("2TiB", 2 << 40), ("9223372036854775807", Int64.max),
    ])
    func `bytes have a unit or none`(text: String, byteCount: Int64) throws {
        #expect(try Quantity.byteCount(text) == byteCount)
    }

    @Test(arguments: [
        "", "GiB", "1GB", "1 GiB", "1gib", "-1", "+1", "1.5GiB", "1GiB2", "٣",
        "9223372036854775808",
        "8388608TiB",
    ])
    func `what is no number of bytes is named`(text: String) {
        let error = #expect(throws: StateError.self) { try Quantity.byteCount(text) }
        #expect(error?.code == .err)
        #expect(error?.message.hasSuffix("not '\(text)'") == true)
    }

    @Test(
        arguments: [
            ("0", .zero), ("500ms", .milliseconds(500)), ("30s", .seconds(30)),
            ("5m", .seconds(300)),
            ("12h", .seconds(43_200)), ("7d", .seconds(604_800)), ("2w", .seconds(1_209_600)),
            ("1h30m", .seconds(5_400)), ("1d12h", .seconds(129_600)),
            ("36500d", .seconds(3_153_600_000)),
        ] as [(String, Duration)]
    )
    func `a time has units`(text: String, duration: Duration) throws {
        #expect(try Quantity.duration(text) == duration)
    }

    @Test(arguments: [
        "", "7", "1h30", "7y", "d", "-1d", "1.5h", "1 d", "99999999999999999w",
        "9223372036854775807ms1ms", "9223372036854775807ms", "106751991167d", "36500d1ms", "5215w",
    ])
    func `what is no time is named`(text: String) {
        let error = #expect(throws: StateError.self) { try Quantity.duration(text) }
        #expect(error?.code == .err)
        #expect(error?.message.hasSuffix("not '\(text)'") == true)
    }

    @Test(arguments: ["0", "1", "1023", "1KiB", "1025", "8MiB", "1GiB", "3TiB", "1536KiB"])
    func `bytes are written as people write them`(text: String) throws {
        let count = try Quantity.byteCount(text)
        #expect(Quantity.text(byteCount: count) == text)
    }

    @Test(arguments: [
        ("0", "0"), ("500ms", "500ms"), ("30s", "30s"), ("90s", "90s"), ("1h30m", "90m"),
        ("2w", "14d"), ("1d1ms", "86400001ms"),
    ])
    func `a time is written in the largest unit that is exact`(text: String, written: String) throws
    {
        #expect(Quantity.text(try Quantity.duration(text)) == written)
        #expect(try Quantity.duration(written) == Quantity.duration(text))
    }

    @Test func `a count outside of its range is told the bound`() {
        #expect(throws: StateError(.err, "at most 10, not '11'")) {
            try Quantity.count("11", in: 1...10)
        }
        #expect(throws: StateError(.err, "at least 1, not '0'")) {
            try Quantity.count("0", in: 1...10)
        }
    }
}
