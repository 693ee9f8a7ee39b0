import StateClient
import StateEngine
import StateJSON
import StateTestSupport
import Testing

struct EscapedTextTests {
    private func escaped(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        bytes.withUnsafeBytes { EscapedText.append($0, to: &text) }
        return text
    }

    @Test(arguments: [
        ("plain é 🎚", "plain é 🎚"),
        ("a\nb\tc\\d", #"a\nb\tc\\d"#),
        ("\u{1B}[31m", #"\x1B[31m"#),
        ("\u{7F}\r\0", #"\x7F\x0D\x00"#),
        ("\u{9B}2J", #"\xC2\x9B2J"#),
    ])
    func `control characters do not reach a terminal`(value: String, text: String) {
        #expect(escaped(Array(value.utf8)) == Array(text.utf8))
    }

    /// Spaces of no width, joiners, marks of direction, a variation selector, a byte order mark, tags, fillers.
    @Test(arguments: [
        "\u{200B}", "\u{200C}", "\u{200D}", "\u{202E}", "\u{2066}", "\u{FEFF}", "\u{FE0F}",
        "\u{2060}",
        "\u{AD}", "\u{34F}", "\u{3164}", "\u{180E}", "\u{E0001}", "\u{E0041}", "\u{E01EF}",
    ])
    func `what is not seen is escaped, so that names that differ look different`(invisible: String)
    {
        let value = "ad\(invisible)min"
        let shown = invisible.utf8.map { "\\x" + String($0, radix: 16, uppercase: true) }.joined()
        #expect(String(decoding: escaped(Array(value.utf8)), as: UTF8.self) == "ad\(shown)min")
        #expect(
            escaped(Array(value.utf8)).withUnsafeBytes { EscapedText.decoded($0) }
                == Array(value.utf8)
        )
        #expect(StateError.printable(value) == "ad\(shown)min")
        let line: JSONLine = ["key": .text(value)]
        let units = value.utf16.dropFirst(2).dropLast(3)
            .map {
                "\\u" + String(repeating: "0", count: 4 - String($0, radix: 16).count)
                    + String($0, radix: 16)
            }
        #expect(
            String(decoding: line.line, as: UTF8.self) == "{\"key\":\"ad\(units.joined())min\"}\n"
        )
    }

    @Test func `bytes that are not UTF-8 are escaped one by one`() {
        // A lone C1 byte, an overlong slash, a surrogate, a cut sequence.
        let bytes: [UInt8] = [0x9B, 0xC0, 0xAF, 0xED, 0xA0, 0x80, 0xE2, 0x82]
        let text = #"\x9B\xC0\xAF\xED\xA0\x80\xE2\x82"#
        #expect(escaped(bytes) == Array(text.utf8))
    }

    @Test(arguments: 0..<200)
    func `any bytes come back from their escaped form`(seed: UInt64) {
        var random = SplitMix(seed: seed)
        let bytes = random.bytes(Int(seed))
        let text = escaped(bytes)
        #expect(text.withUnsafeBytes { EscapedText.decoded($0) } == bytes)
        #expect(!text.contains { $0 < 0x20 || $0 == 0x7F })
        #expect(String(validating: text, as: UTF8.self) != nil)
    }

    @Test(arguments: [#"C:\dir"#, #"\"#, #"\x1"#, #"\xZZ"#, #"\q"#])
    func `a backslash that begins no escape stands for itself`(text: String) {
        let bytes = Array(text.utf8)
        #expect(bytes.withUnsafeBytes { EscapedText.decoded($0) } == bytes)
    }
}

struct Base64Tests {
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
    ])
    func `the vectors of RFC 4648 hold`(plain: String, encoded: String) {
        var text: [UInt8] = []
        Array(plain.utf8).withUnsafeBytes { Base64.append($0, to: &text) }
        #expect(text == Array(encoded.utf8))
        #expect(Base64.decoded(text) == Array(plain.utf8))
    }

    @Test(arguments: 0..<100)
    func `any bytes come back`(seed: UInt64) {
        var random = SplitMix(seed: seed)
        let bytes = random.bytes(Int(seed))
        var text: [UInt8] = []
        bytes.withUnsafeBytes { Base64.append($0, to: &text) }
        #expect(Base64.decoded(text) == bytes)
    }

    @Test(arguments: ["A", "AB", "ABC", "AB=C", "====", "A===", "AB==AB==", "AB=", "A-==", "AB=="])
    func `what is no base 64 is refused`(text: String) {
        #expect(Base64.decoded(Array(text.utf8)) == nil)
    }
}

struct JSONTests {
    @Test func `a line is an object with plain strings`() {
        let line: JSONLine = [
            "revision": .number(12), "op": .text("set"), "key": .text("audio/volume"),
            "value": .value(Array("0.7".utf8)), "previous": nil, "expires": .number(nil),
            "tags": .texts(["a", "b"]), "none": .text(nil), "options": .json(Array("{}".utf8)),
            "old": .value([0xFF]),
        ]
        let expected =
            #"{"revision":12,"op":"set","key":"audio/volume","value":"0.7","expires":null,"#
            + #""tags":["a","b"],"none":null,"options":{},"oldBase64":"/w=="}"#
        #expect(line.line == Array((expected + "\n").utf8))
    }

    @Test func `what JSON must escape is escaped, and C1 too`() {
        let line: JSONLine = ["v": .text("\"\\/\n\t\r\u{1}\u{7F}\u{9B}é")]
        let expected = #"{"v":"\"\\/\n\t\r\u0001\u007f\u009bé"}"#
        #expect(line.object == Array(expected.utf8))
    }

    @Test(arguments: 0..<200)
    func `a value of any bytes comes back`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        // Half of them are text, so that both forms are met.
        let value =
            seed.isMultiple(of: 2)
            ? random.bytes(Int(seed))
            : Array(random.bytes(Int(seed)).map { Character(Unicode.Scalar($0)) }.flatMap(\.utf8))
        let line: JSONLine = ["value": .value(value)]
        #expect(!line.object.contains { $0 < 0x20 || $0 == 0x7F })
        let members = try JSONValue(parsing: line.line).members
        switch (members["value"], members["base64"]) {
        case (.string(let text), nil): #expect(Array(text.utf8) == value)
        case (nil, .string(let text)): #expect(Base64.decoded(Array(text.utf8)) == value)
        default: Issue.record("\(members)")
        }
    }
}

struct ImportLineTests {
    @Test func `escapes, pairs of surrogates and other fields are read`() throws {
        let text =
            #"{ "key" : "\u00e9\ud83c\udf9a\/" , "n":[1,{"x":null}], "t":true, "e":-1.5e3, "value":"\b\f" } "#
        let line = try parsed(text)
        #expect(line?.key == Array("é🎚/".utf8))
        #expect(line?.value == [0x08, 0x0C])
    }

    @Test(arguments: [
        "{", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, #"{,}"#, #"{"a":1} x"#, #"{"a":"\q"}"#,
        #"{"a":"\ud800"}"#, #"{"a":"\ud800A"}"#, #"{"a":"\udc00"}"#, #"{"a":"x"#, #"{"a":tru}"#,
        #"{"a":01x}"#, "{\"a\":\"\n\"}", #"{'a':1}"#, #"{"a":1 "b":2}"#,
        #"{"a":"# + String(repeating: "[", count: 100_000),
    ])
    func `what is not JSON is refused with its place`(text: String) {
        let fault = #expect(throws: StateError.self) { try parsed(text) }
        #expect(fault?.message.contains(", at byte ") == true, "\(fault?.message ?? "")")
    }

    private func parsed(_ line: String) throws -> ImportLine? {
        try Array(line.utf8).withUnsafeBufferPointer { (bytes) throws(StateError) in
            try ImportLine(Bytes(bytes))
        }
    }

    @Test(arguments: [
        ("kernel.hostname = box", "kernel.hostname", "box"),
        ("kernel.domainname = ", "kernel.domainname", ""),
        ("kernel.domainname =", "kernel.domainname", ""),
        ("net.ports = 1\t2", "net.ports", "1\t2"),
        ("a = b = c", "a", "b = c"),
        ("a=b", "a", "b"),
        ("a b = c", "a b", "c"),
        ("url = http://[::1]:80/?a=b#c", "url", "http://[::1]:80/?a=b#c"),
        ("color = #fff", "color", "#fff"),
        ("export = it's", "export", "it's"),
        ("user:1=x", "user:1", "x"),
        (#"a\x3Db = x\ny\\"#, "a=b", "x\ny\\"),
        (#"{"key":"k","value":"v","revision":3}"#, "k", "v"),
        (#"{"key":"k","base64":"AGE="}"#, "k", "\0a"),
    ])
    func `a line means a key and a value`(line: String, key: String, value: String) throws {
        let parsed = try #require(try parsed(line))
        #expect(parsed.key == Array(key.utf8))
        #expect(parsed.value == Array(value.utf8))
    }

    @Test(arguments: ["", "   ", "\t", "# a = b", "#", "\t# a = b"])
    func `a line without content means nothing`(line: String) throws {
        #expect(try parsed(line) == nil)
    }

    @Test(arguments: [
        "no divider", #"{"key":"k"}"#, #"{"value":"v"}"#, #"{"key":1,"value":"v"}"#,
        #"{"key":"k","value":1}"#, #"{"key":"k","base64":"!"}"#, "{k = v",
    ])
    func `any other line is refused`(line: String) {
        #expect(throws: StateError.self) { try parsed(line) }
    }

    @Test(arguments: [
        (#"a = "b""#, "write \\x22"), ("A='b'", "write \\x27"), ("export A=b", "--format env"),
        ("a = b # c", "write \\x23"), ("a = b\t# c", "write \\x23"), ("a = b\\", "backslash"),
        ("[a]", "--format ini"), ("[a \"b=c\"]", "--format ini"), (";a = b", "--format ini"),
        ("!a = b", "--format properties"), ("a: b=c", "--format properties"),
        ("a  = b", "the key begins or ends"), (" a = b", "the key begins or ends"),
        ("a\t= b", "the key begins or ends"), ("a =  b", "the value begins or ends"),
        ("a = b ", "the value begins or ends"), ("a = \tb", "the value begins or ends"),
        ("a += b", "'+='"), ("a==1.0", "'=='"), ("a => b", "'=>'"), ("a>=1", "'>='"),
        ("a = b\rc = d", "carriage return"), ("# a\rc = d", "carriage return"),
        ("\u{FEFF}a = b", "a BOM"),
    ])
    func `what another program reads otherwise is refused with a way out`(
        line: String,
        part: String
    ) {
        let fault = #expect(throws: StateError.self) { try parsed(line) }
        #expect(fault?.message.contains(part) == true, "\(fault?.message ?? "")")
    }

    @Test(arguments: [
        (#"{"key":"k1","key":"k2","value":"v"}"#, "'key' appears twice"),
        (#"{"key":"k","value":"a","value":"b"}"#, "'value' appears twice"),
        (#"{"key":"k","value":"v","x":1,"x":2}"#, "'x' appears twice"),
        (#"{"key":"k","value":"v","base64":"AGE="}"#, "give one of them"),
        ("{", "statectl apply"), (#"{"a":{"b":1}}"#, "statectl apply"),
    ])
    func `an object that says two things, or is a document, is refused`(
        line: String,
        part: String
    ) {
        let fault = #expect(throws: StateError.self) { try parsed(line) }
        #expect(fault?.message.contains(part) == true, "\(fault?.message ?? "")")
    }

    @Test(arguments: 0..<500)
    func `a key and a value of signs that mean something read back from list`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let signs = [
            "=", " ", "\"", "'", "#", "\\", ":", "[", "]", "{", ";", "!", "+", "export", "a",
        ]
        func text(_ more: [String]) -> [UInt8] {
            (0..<Int.random(in: 1...8, using: &random))
                .flatMap { _ in Array(((signs + more).randomElement(using: &random) ?? "").utf8) }
        }
        let key = text(["\u{FEFF}", "é"])
        let value = text(["\r", "\n", "\t", "\u{FEFF}", "\0"])
        var line: [UInt8] = []
        key.withUnsafeBytes { EscapedText.append(key: $0, to: &line) }
        line += Array(" = ".utf8)
        value.withUnsafeBytes { EscapedText.append(value: $0, to: &line) }
        let parsed = try #require(try parsed(String(decoding: line, as: UTF8.self)))
        #expect(parsed.key == key)
        #expect(parsed.value == value)
    }

    @Test(arguments: ["a=b", "{k}", "#k", " k", "k ", "=", #"a\n=b"#, "a = b"])
    func `a key as list prints it reads back`(key: String) throws {
        var line: [UInt8] = []
        Array(key.utf8).withUnsafeBytes { EscapedText.append(key: $0, to: &line) }
        line += Array(" = v".utf8)
        let parsed = try #require(try parsed(String(decoding: line, as: UTF8.self)))
        #expect(parsed.key == Array(key.utf8))
        #expect(parsed.value == Array("v".utf8))
    }
}
