import StateContainers
import Testing

/// What is stored, and how a person's text is read.
@Suite struct StandardCodecTests {
    @Test func `a value that is one string, number or Boolean is stored bare`() throws {
        #expect(try stored("dark \"x\"\n") == "dark \"x\"\n")
        #expect(try stored("") == "")
        #expect(try stored(5) == "5")
        #expect(try stored(0.5) == "0.5")
        #expect(try stored(1.0) == "1")
        #expect(try stored(true) == "true")
        #expect(try stored(UInt64.max) == "18446744073709551615")
        #expect(try stored(Theme.dark) == "dark")
        #expect(try stored(Level.low) == "-1")
        #expect(try stored(Int?.some(5)) == "5")
        #expect(try stored(Theme?.some(.light)) == "light")
    }

    @Test func `everything else is JSON with sorted keys`() throws {
        #expect(try stored(["b": 1, "a": 2]) == #"{"a":2,"b":1}"#)
        #expect(try stored(["a", "b"]) == #"["a","b"]"#)
        #expect(try stored(Point()) == #"{"x":1,"y":-2}"#)
        #expect(try stored(Point?.some(Point())) == #"{"x":1,"y":-2}"#)
    }

    @Test func `bytes are stored as they are`() throws {
        let bytes: [UInt8] = [0, 255, 0x5B]
        #expect(try StateCodec<[UInt8]>.standard.encode(bytes) == bytes)
        #expect(try StateCodec<[UInt8]>.standard.decode(bytes) == bytes)
        #expect(try StateCodec<[UInt8]?>.standard.encode(bytes) == bytes)
        #expect(try StateCodec<[UInt8]?>.standard.decode(bytes) == bytes)
        #expect(try StateCodec<[UInt8]?>.standard.encode(nil) == nil)
    }

    @Test func `a nil Optional removes the entry, and an Optional in it is kept apart`() throws {
        #expect(try StateCodec<Int?>.standard.encode(nil) == nil)
        #expect(try StateCodec<Int?>.standard.decode(nil) == Int?.none)
        #expect(try StateCodec<Int??>.standard.encode(.none) == nil)
        #expect(try stored(Int??.some(nil)) == "null")
        for value: Int?? in [.none, .some(nil), 5] { try expectSame(value) }
        for value: String?? in [.none, .some(nil), "null", "\"", ""] { try expectSame(value) }
        for value: [UInt8]?? in [.none, .some(nil), [1]] { try expectSame(value) }
    }

    @Test func `inside of another value, a nil in an Optional is nil, as by Foundation`() throws {
        struct Box: Codable, Hashable, Sendable { var inner: Int?? }
        let stored = try StateCodec<Box>.standard.encode(Box(inner: .some(nil)))
        #expect(try StateCodec<Box>.standard.decode(stored) == Box(inner: .none))
        let list = try StateCodec<[Int??]>.standard.encode([.some(nil)])
        #expect(try StateCodec<[Int??]>.standard.decode(list) == [.none])
    }

    @Test func `an Optional string may be the word null`() throws {
        #expect(try stored(String?.some("null")) == "null")
        try expectSame(String?.some("null"))
    }

    @Test(arguments: [
        ("5", 5), (" 5\n", 5), ("+5", 5), ("007", 7), ("-3", -3), ("1e3", 1000), ("5.0", 5),
        ("\t12 ", 12),
    ])
    func `a whole number is read as a person types it`(text: String, number: Int) throws {
        #expect(try StateCodec<Int>.standard.decode(Array(text.utf8)) == number)
    }

    @Test(arguments: [
        ("0.5", 0.5), (".5", 0.5), ("5.", 5), ("5", 5), ("1e3", 1000), ("-0.5\n", -0.5),
    ])
    func `a number is read as a person types it`(text: String, number: Double) throws {
        #expect(try StateCodec<Double>.standard.decode(Array(text.utf8)) == number)
    }

    @Test func `a Boolean may have white space around it`() throws {
        #expect(try StateCodec<Bool>.standard.decode(Array("true\n".utf8)))
        #expect(throws: StateError.self) { try StateCodec<Bool>.standard.decode(Array("yes".utf8)) }
    }

    @Test(arguments: ["five", "", " ", "5 5", "0x5", "5.5", "1e", "--5", "9223372036854775808"])
    func `what is no whole number is an error that names it`(text: String) {
        expectUndecodable(
            Int.self,
            text,
            ["Int", "'\(text)'", "a whole number from -9223372036854775808"]
        )
    }

    @Test(arguments: ["nan", "inf", "1e999", "0.5x", "0,5", "."])
    func `what is no finite number is an error that names it`(text: String) {
        expectUndecodable(Double.self, text, ["Double", "'\(text)'", "a number"])
    }

    @Test func `an error names the place, what was expected and what was found`() {
        expectUndecodable(
            [Options].self,
            #"[{"points":[null,{"x":1,"y":"high"}]}]"#,
            ["at '0/points/1/y'", "expected a whole number from", "found the string 'high'"]
        )
        expectUndecodable(Point.self, #"{"x":1}"#, ["expected a member 'y', found none"])
        expectUndecodable(Point.self, "[1]", ["expected an object, found an array"])
        expectUndecodable(Point.self, #"{"x":1,}"#, ["expected JSON", "at byte 7"])
        expectUndecodable([String].self, "[\"\\ud800\"]", ["surrogate", "at byte 2"])
        expectUndecodable(Theme.self, "blue", ["blue", "Theme"])
        let absence = StateError(.undecodable, "no value is stored, and Int is not an Optional")
        #expect(throws: absence) {
            try StateCodec<Int>.standard.decode(nil)
        }
    }

    @Test func `bytes that are not UTF-8 are refused`() throws {
        for bytes: [UInt8] in [
            [0x22, 0xFF, 0x22], [0x22, 0xC3, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22],
        ] {
            let text = [UInt8(ascii: "[")] + bytes + [UInt8(ascii: "]")]
            #expect(throws: StateError.self) { try StateCodec<[String]>.standard.decode(text) }
            #expect(throws: StateError.self) { try StateCodec<Empty>.standard.decode(text) }
            #expect(throws: StateError.self) { try StateCodec<String>.standard.decode(bytes) }
        }
    }

    @Test func `a number that is not finite is an error that names its place`() {
        expectUnencodable(["a": [1, Double.nan]], ["at 'a/1'", "nan"])
        expectUnencodable(Double.infinity, ["inf"])
        expectUnencodable([Float.infinity], ["at '0'"])
    }

    @Test func `what is nested too deep is refused both ways`() throws {
        try expectSame(Deep(depth: 512))
        expectUnencodable(Deep(depth: 513), ["512"])
        expectUnencodable(Deep(depth: 5000), ["512"])
        let text = String(repeating: "[", count: 100_000)
        expectUndecodable(Deep.self, text, ["deeper than 512", "at byte 512"])
    }

    @Test func `numbers of 128 bits are stored whole`() throws {
        #expect(try stored(Int128.min) == "-170141183460469231731687303715884105728")
        try expectSame(UInt128.max)
        try expectSame([Int128.max])
    }

    @Test func `a value that encodes nothing is refused`() {
        expectUnencodable(Silent(), ["nothing"])
    }

    @Test func `any cut of a text is refused, never taken for a whole one`() throws {
        let text = try #require(try StateCodec<Settings>.standard.encode(Settings()))
        for end in 0..<text.count {
            #expect(throws: StateError.self) {
                try StateCodec<Settings>.standard.decode(Array(text[..<end]))
            }
        }
    }
}

/// The stored text of a value.
func stored<T: Codable & Sendable>(_ value: T) throws -> String {
    let bytes = try #require(try StateCodec<T>.standard.encode(value))
    return String(decoding: bytes, as: UTF8.self)
}

/// That a value comes back as it was.
func expectSame<T: Codable & Equatable & Sendable>(_ value: T) throws {
    let codec = StateCodec<T>.standard
    #expect(try codec.decode(codec.encode(value)) == value)
}

func expectUndecodable<T: Codable & Sendable>(_ type: T.Type, _ text: String, _ words: [String]) {
    let error = #expect(throws: StateError.self) {
        try StateCodec<T>.standard.decode(Array(text.utf8))
    }
    #expect(error?.code == .undecodable)
    for word in words {
        #expect(error?.message.contains(word) == true, "\(String(describing: error))")
    }
}

func expectUnencodable<T: Codable & Sendable>(_ value: T, _ words: [String]) {
    let error = #expect(throws: StateError.self) { try StateCodec<T>.standard.encode(value) }
    #expect(error?.code == .err)
    for word in words {
        #expect(error?.message.contains(word) == true, "\(String(describing: error))")
    }
}
