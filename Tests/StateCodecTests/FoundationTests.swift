import Foundation
import StateContainers
import Testing

/// The standard codec beside Foundation's coders.
@Suite struct FoundationTests {
    @Test(arguments: FoundationCase.values)
    func `a value is written as Foundation writes it, and each reads what the other wrote`(
        sample: FoundationCase
    ) throws {
        try sample.check()
    }

    @Test(arguments: FoundationCase.texts)
    func `a text is read as Foundation reads it, or refused as by Foundation`(
        sample: FoundationCase
    ) throws {
        try sample.check()
    }

    @Test func `the table has at least 60 cases of each kind`() {
        #expect(FoundationCase.values.count >= 60)
        #expect(FoundationCase.texts.count >= 60)
    }

    @Test func `dates and data are written as Foundation writes them by its standard forms`() throws
    {
        struct Record: Codable, Equatable {
            var date = Date(timeIntervalSinceReferenceDate: 817_631_480)
            var data = Data([0, 255])
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        let theirs = [UInt8](try encoder.encode(Record()))
        #expect(try StateCodec<Record>.standard.encode(Record()) == theirs)
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        #expect(try decoder.decode(Record.self, from: Data(theirs)) == Record())
    }

    @Test func `a comma after the last element is refused, where Foundation takes it`() throws {
        let text = Array("[1,]".utf8)
        #expect(try JSONDecoder().decode([Int].self, from: Data(text)) == [1])
        #expect(throws: StateError.self) { try StateCodec<[Int]>.standard.decode(text) }
    }
}

struct FoundationCase: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let check: @Sendable () throws -> Void

    /// In a struct, since a scalar by itself is stored bare.
    static func value<T: Codable & Equatable & Sendable>(_ value: T) -> FoundationCase {
        FoundationCase(testDescription: "\(T.self) \(String("\(value)".prefix(60)))") {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            let theirs = [UInt8](try encoder.encode(Member(value: value)))
            let ours = try #require(try StateCodec<Member<T>>.standard.encode(Member(value: value)))
            let text = String(decoding: ours, as: UTF8.self)
            #expect(text == String(decoding: theirs, as: UTF8.self))
            #expect(try StateCodec<Member<T>>.standard.decode(theirs).value == value)
            #expect(try JSONDecoder().decode(Member<T>.self, from: Data(ours)).value == value)
        }
    }

    /// Classes cannot be Sendable here; they are made where they are compared.
    static func object<T: Codable & Equatable & SendableMetatype>(
        _ make: @escaping @Sendable () -> T
    ) -> FoundationCase {
        FoundationCase(testDescription: "\(T.self)") {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            let theirs = [UInt8](try encoder.encode([make()]))
            let codec = StateCodec<[Unchecked<T>]>.standard
            let ours = try #require(try codec.encode([Unchecked(value: make())]))
            #expect(ours == theirs)
            #expect(try codec.decode(theirs).first?.value == make())
            #expect(try JSONDecoder().decode([T].self, from: Data(ours)) == [make()])
        }
    }

    /// Both read the same, or neither does.
    static func text<T: Codable & Equatable & Sendable>(
        _ type: T.Type,
        _ text: String
    ) -> FoundationCase {
        FoundationCase(testDescription: "\(T.self) \(String(text.prefix(60)))") {
            let text = "{\"value\":\(text)}"
            let theirs = try? JSONDecoder().decode(Member<T>.self, from: Data(text.utf8))
            let ours = try? StateCodec<Member<T>>.standard.decode(Array(text.utf8))
            #expect(ours?.value == theirs?.value)
        }
    }
}

/// An object around a value.
struct Member<Value: Codable & Sendable>: Codable, Sendable {
    let value: Value
}

/// A value that only one thread has.
struct Unchecked<Value: Codable>: Codable, @unchecked Sendable {
    let value: Value

    init(value: Value) { self.value = value }

    init(from decoder: any Decoder) throws {
        value = try decoder.singleValueContainer().decode(Value.self)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(value)
    }
}

extension FoundationCase {
    static let values: [FoundationCase] = scalars + aggregates

    private static let scalars: [FoundationCase] = [
        value(0), value(-1), value(Int.max), value(Int.min), value(UInt.max), value(Int8.min),
        value(Int8.max), value(UInt8.max), value(Int16.min), value(UInt16.max), value(Int32.min),
        value(UInt32.max), value(Int64.min), value(UInt64.max), value(Int128.max),
        value(Int128.min), value(UInt128.max), value(true), value(false), value(0.0), value(-0.0),
        value(1.0), value(0.1), value(-2.5), value(1e15), value(1e16), value(1e20), value(1e-5),
        value(1e-7), value(Double.leastNonzeroMagnitude), value(Double.greatestFiniteMagnitude),
        value(1.0 / 3),
        value(123_456_789_012_345_680.0), value(Double(Float(0.1))), value(Float(0.1)),
        value(Float.greatestFiniteMagnitude), value(Float.leastNonzeroMagnitude), value(""),
        value("plain"), value("\"quoted\" \\ and / slash"), value("\u{0}\u{1F}\u{7F}\u{80}"),
        value("\u{8}\u{C}\n\r\t"), value("größe"), value("日本語"), value("😀👨‍👩‍👧"),
        value("\u{2028}\u{2029}\u{FEFF}"), value("e\u{301}"), value("null"), value("5"),
        value(Theme.light), value(Level.high),
    ]

    private static let aggregates: [FoundationCase] = [
        value([Int]()), value([1, 2, 3]), value([[1], [], [2, 3]]), value([0.5, -1e300]),
        value([UInt8](0...255)), value([Int?.some(1), nil, 3]), value(["a", "b"]),
        value([String: Int]()), value(["b": 1, "B": 2, "a": 3, "_": 4, "10": 5, "9": 6]),
        value(["é": 1, "e\u{301}x": 2, "z": 3, "\u{FFFF}": 4, "😀": 5]),
        value(["a/b": ["c": [1, 2]]]), value(["\"": 1, "\n": 2]), value([1: "a", 10: "b", 9: "c"]),
        value([Theme.dark: 1, Theme.light: 2]), value([Point(): 1]),
        value(["present": Int?.some(1), "absent": nil]), value(Set([7])), value(Point()),
        value(Empty()), value(Options()),
        value(Options(name: "n", size: 1, points: [nil, Point()])), value(Settings()),
        value(Shape.circle(1.5)), value(Shape.square(side: 1, name: "s")), value(Shape.none),
        value(Shape.group([.none, .group([])])), value(Nested()), value(Silent()),
        value(Deep(depth: 1)), value(Deep(depth: 500)), value(0..<5), value(1...9),
        value(UUID()), value(Decimal(string: "12.5")), value(URL(string: "https://a.b/c?d#e")),
        value(Dictionary(uniqueKeysWithValues: (0..<100).map { ("key\($0)", $0) })),
        object { Derived(isFlat: true) }, object { Derived(isFlat: false) },
    ]

    static let texts: [FoundationCase] = numberTexts + stringTexts + aggregateTexts

    private static let numberTexts: [FoundationCase] = [
        text(Int.self, "5"), text(Int.self, "5.0"), text(Int.self, "5.5"), text(Int.self, "1e3"),
        text(Int.self, "1E+2"), text(Int.self, "100e-2"), text(Int.self, "1e-1"),
        text(Int.self, "-0"), text(Int.self, "0e5"), text(Int.self, "9007199254740993.0"),
        text(Int.self, "9223372036854775807"), text(Int.self, "9223372036854775808"),
        text(Int.self, "-9223372036854775808"), text(Int.self, "-9223372036854775809"),
        text(Int.self, "1e30"), text(Int8.self, "127"), text(Int8.self, "128"),
        text(Int8.self, "-128"), text(Int8.self, "300"), text(UInt8.self, "255"),
        text(UInt8.self, "256"), text(UInt8.self, "99"), text(Int16.self, "32768"),
        text(UInt.self, "-1"), text(UInt64.self, "18446744073709551615"),
        text(UInt64.self, "18446744073709551616"), text(Double.self, "18446744073709551615"),
        text(Double.self, "1e308"), text(Double.self, "1e309"), text(Double.self, "1e-999"),
        text(Double.self, "0e-999"), text(Double.self, "-0"), text(Double.self, "0.1"),
        text(Float.self, "0.1"), text(Float.self, "16777217"), text(Float.self, "1e39"),
        text(Double.self, ".5"), text(Double.self, "5."), text(Double.self, "+5"),
        text(Double.self, "05"), text(Double.self, "-"), text(Double.self, "1e"),
        text(Double.self, "NaN"), text(Double.self, "Infinity"), text(Double.self, "0x10"),
        text(Int.self, "true"), text(Int.self, "\"5\""), text(Int.self, "null"),
        text(Bool.self, "1"), text(Bool.self, "tru"), text(Bool.self, "true"),
    ]

    private static let stringTexts: [FoundationCase] = [
        text(String.self, #""a\u0041\/\b\f\n\r\t\"\\""#), text(String.self, #""\ud83d\ude00""#),
        text(String.self, #""\ud83d""#), text(String.self, #""\ude00""#),
        text(String.self, #""\ud83dx""#), text(String.self, #""\ud83d\u0041""#),
        text(String.self, #""\u12g4""#), text(String.self, #""\u00e9\u0000""#),
        text(String.self, #""\q""#), text(String.self, #""\"#), text(String.self, "\"a"),
        text(String.self, "\"a\nb\""), text(String.self, "\"a\u{7F}b\""), text(String.self, "5"),
        text(Theme.self, "\"dark\""), text(Theme.self, "\"blue\""), text(Level.self, "300"),
        text(Level.self, "7"),
    ]

    private static let aggregateTexts: [FoundationCase] = [
        text([Int].self, " [ 1 ,\t2\r\n] "), text([Int].self, "[1 2]"), text([Int].self, "[,]"),
        text([Int].self, "{}"), text([Int].self, "[1,null]"), text([Int?].self, "[1,null]"),
        text([Int].self, "["), text([Int].self, "[1}"), text(Point.self, #"{"x":1,"y":2}"#),
        text(Point.self, #"{ "y" : 2 , "x" : 1 , "z" : [{}] }"#), text(Point.self, #"{"x":1}"#),
        text(Point.self, #"{"x":1,"y":null}"#), text(Point.self, #"{"x":1,"x":3,"y":2}"#),
        text(Point.self, #"{"\u0078":1,"y":2}"#), text(Point.self, "[]"),
        text(Point.self, #"{"x":1,"y":2"#), text(Point.self, #"{x:1,"y":2}"#),
        text(Point.self, #"{"x" 1,"y":2}"#), text(Options.self, "{}"),
        text(Options.self, #"{"name":null,"size":null}"#), text(Options.self, #"{"size":"1"}"#),
        text([String: Int].self, #"{"a":1,"a":2}"#), text([Int: Int].self, #"{"1":1,"x":2}"#),
        text([Int: Int].self, #"{"-1":1}"#), text(Empty.self, #"{"a":1}"#),
        text(Deep.self, String(repeating: "[", count: 511) + String(repeating: "]", count: 511)),
        text(Deep.self, String(repeating: "[", count: 512) + String(repeating: "]", count: 512)),
        text([Int].self, "[1] x"), text([Int].self, "[1]//"), text([Int].self, "[\u{A0}1]"),
        text(Shape.self, #"{"circle":{"_0":2}}"#), text(Shape.self, #"{"none":{},"circle":{}}"#),
        text(Shape.self, #"{"other":{}}"#), text(Shape.self, "{}"),
    ]
}
