import StateEngine
import StateTestSupport
import StateWire
import Testing

struct ByteBufferTests {
    @Test(arguments: Seed.each(3)) func `a buffer is a queue of bytes`(seed: UInt64) {
        var random = SplitMix(seed: seed)
        var buffer = ByteBuffer()
        var model: [UInt8] = []
        for _ in 0..<5_000 {
            let count = Int.random(in: 0...(random.chance(5) ? 5_000 : 40), using: &random)
            switch Int.random(in: 0..<7, using: &random) {
            case 0, 1:
                let bytes = random.bytes(count)
                bytes.withUnsafeBytes { buffer.append($0) }
                model += bytes
            case 2:
                buffer.append(UInt8(ascii: "x"))
                buffer.append("yz")
                model += Array("xyz".utf8)
            case 3:
                let bytes = random.bytes(count)
                let room = buffer.reserve(count)
                room.copyMemory(from: bytes, byteCount: count)
                #expect(buffer.freeByteCount >= count)
                buffer.extend(by: count)
                model += bytes
            case 4, 5:
                let taken = min(count, model.count)
                buffer.removeFirst(taken)
                model.removeFirst(taken)
            default:
                let left = Int.random(in: 0...model.count, using: &random)
                if random.chance(10) {
                    buffer.truncate(to: left)
                    model.removeSubrange(left...)
                }
                buffer.shrink(to: 100)
            }
            guard buffer.count == model.count, Array(buffer.bytes) == model,
                buffer.isEmpty == model.isEmpty
            else {
                Issue.record("the buffer holds \(buffer.count) bytes, not \(model.count)")
                return
            }
        }
    }

    @Test func `an empty buffer gives large memory back`() {
        var buffer = ByteBuffer()
        _ = buffer.reserve(1 << 20)
        buffer.append("x")
        buffer.shrink(to: 64)
        #expect(buffer.capacity >= 1 << 20)
        buffer.removeFirst(1)
        buffer.shrink(to: 1 << 21)
        #expect(buffer.capacity >= 1 << 20)
        buffer.shrink(to: 64)
        #expect(buffer.capacity == 0)
        buffer.append("again")
        #expect(Array(buffer.bytes) == Array("again".utf8))
    }

    @Test(arguments: [
        0, 1, -1, 9, 10, 99, 100, 12_345, -12_345, 999_999_999, 1_000_000_000, .max, .min, .max - 1,
        1_000_000_000_000_000_000, 999_999_999_999_999_999, -1_000_000_000_000_000_000,
    ])
    func `a number is written in decimal digits`(number: Int) {
        var buffer = ByteBuffer()
        buffer.appendLine(UInt8(ascii: ":"), number)
        #expect(Array(buffer.bytes) == Array(":\(number)\r\n".utf8))
    }

    @Test(
        arguments: [
            ("0", 0), ("7", 7), ("-7", -7), ("9223372036854775807", .max),
            ("-9223372036854775808", .min), ("9223372036854775808", nil),
            ("-9223372036854775809", nil), ("00", nil), ("01", nil), ("-0", nil), ("-01", nil),
            ("", nil),
            ("-", nil), ("+1", nil), (" 1", nil), ("1 ", nil), ("1.0", nil), ("1e3", nil),
            ("0x1", nil),
            ("99999999999999999999", nil), ("100000000000000000000", nil),
        ] as [(String, Int64?)]
    )
    func `a number is read as Redis reads it`(text: String, number: Int64?) {
        #expect(Array(text.utf8).withUnsafeBytes { $0.decimal } == number)
    }
}
