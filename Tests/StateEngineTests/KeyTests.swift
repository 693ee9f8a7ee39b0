import StateEngine
import Testing

@Suite struct KeyTests {
    @Test(arguments: ["a", "a/b", "/a", "a//b", "größe", "日本/語", "a b", "\\FROM", "~", "*"])
    func `text of 1 to 1,024 bytes without control characters is a key`(text: String) throws {
        #expect(try Key(text).description == text)
    }

    @Test func `1,024 bytes are a key and 1,025 are not`() throws {
        let longest = String(repeating: "k", count: 1_024)
        #expect(try Key(longest).bytes.count == 1_024)
        #expect(
            message(Array((longest + "k").utf8))?.contains("1025 bytes; the limit is 1024") == true
        )
    }

    @Test(
        arguments: [
            ([], "a key has at least 1 byte"),
            (Array("a/".utf8), "ends in '/'"),
            (Array("/".utf8), "ends in '/'"),
            ([0x61, 0xFF], "is not UTF-8"),
            ([0xC3], "is not UTF-8"),
            ([0xED, 0xA0, 0x80], "is not UTF-8"),
            (Array("größ".utf8) + [0xC3, 0x2F], "is not UTF-8"),
        ] as [([UInt8], String)]
    )
    func `bytes that are no key are refused with the rule they break`(bytes: [UInt8], rule: String)
    {
        let message = message(bytes)
        #expect(message?.contains(rule) == true, "\(message ?? "accepted")")
    }

    @Test(arguments: Array(0...0x1F) + Array(0x7F...0x9F) as [UInt32], 0...17)
    func `a control character anywhere in a key is refused`(scalar: UInt32, place: Int) throws {
        let control = try #require(Unicode.Scalar(scalar))
        var scalars = String(repeating: "k", count: 17).unicodeScalars
        scalars.insert(control, at: scalars.index(scalars.startIndex, offsetBy: place))
        #expect(message(Array(String(scalars).utf8))?.contains("control character") == true)
    }

    @Test(arguments: 0x20...0x7E as ClosedRange<UInt8>)
    func `every printable byte may stand at every place`(byte: UInt8) {
        for place in 0..<17 {
            var bytes = Array(repeating: UInt8(ascii: "k"), count: 18)
            bytes[place] = byte
            #expect(message(bytes) == nil)
        }
    }

    @Test func `keys are in byte order, a key before those it begins`() throws {
        let sorted: [Key] = ["a", "a/b", "a0", "ab", "b", "ä", "日"]
        #expect(sorted.shuffled().sorted() == sorted)
    }

    private func message(_ bytes: [UInt8]) -> String? {
        do {
            _ = try Key(bytes: bytes)
            return nil
        } catch {
            #expect(error.code == .err)
            return error.message
        }
    }
}
