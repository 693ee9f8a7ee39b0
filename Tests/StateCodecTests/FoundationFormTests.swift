import Foundation
import StateContainers
import Testing

/// Foundation's types, as a person types them.
struct FoundationFormTests {
    private static let moment = Date(timeIntervalSinceReferenceDate: 817_631_480)

    private static func url(_ text: String) -> URL {
        guard let url = URL(string: text) else { preconditionFailure("\(text) is no URL") }
        return url
    }

    struct Record: Codable, Hashable, Sendable {
        var date = moment
        var data = Data([0, 255])
        var price = Decimal(12.5)
        var site = url("https://example.com/a?b#c")
        var dates = [moment]
        var blobs = ["a": Data([1])]
        var sites: Set<URL> = [url("x")]
        var prices = [Decimal(1), nil]
        var later: Date?
        var id = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1))
    }

    enum Event: Codable, Hashable, Sendable {
        case at(Date)
        case sent(data: Data, to: URL, for: Decimal?)
    }

    /// Encodes its raw value by a single-value container.
    struct Deadline: RawRepresentable, Codable, Hashable, Sendable {
        var rawValue: Date

        init(rawValue: Date) { self.rawValue = rawValue }

        init(from decoder: any Decoder) throws {
            rawValue = try decoder.singleValueContainer().decode(Date.self)
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(rawValue)
        }
    }

    struct Booking: Validatable, Codable, Hashable, Sendable {
        @Required var note: String? = "n"
        @Matches("^.*$") var text: String? = nil
        @Present var date: Date = moment
    }

    /// A validated wrapper of a type of the library's user.
    @propertyWrapper struct Present: ValidatedWrapper, Codable, Hashable, Sendable {
        var wrappedValue: Date

        init(wrappedValue: Date) { self.wrappedValue = wrappedValue }
        init(unruled value: Date) { wrappedValue = value }
        func issue(model: Present) -> ValidationIssue? { nil }
    }

    // MARK: What is stored

    @Test func `a date, data, a decimal number and a URL are stored bare as a person types them`()
        throws
    {
        #expect(try stored(Self.moment) == "2026-11-29T07:51:20Z")
        #expect(try stored(Date?.some(Self.moment)) == "2026-11-29T07:51:20Z")
        #expect(try stored(Deadline(rawValue: Self.moment)) == "2026-11-29T07:51:20Z")
        #expect(try stored(Data([0, 255])) == "AP8=")
        #expect(try stored(Data()) == "")
        #expect(try stored(Decimal(string: "12.50")!) == "12.5")
        #expect(try stored(URL(string: "https://example.com/a b")!) == "https://example.com/a%20b")
        #expect(try stored(UUID(uuidString: "00000000-0000-0000-0000-000000000001")!).count == 36)
        #expect(try StateCodec<Date?>.standard.encode(nil) == nil)
        #expect(try stored(Date??.some(Self.moment)) == "\"2026-11-29T07:51:20Z\"")
    }

    @Test func `inside of other values they are JSON strings, and a decimal is a number`() throws {
        #expect(
            try stored(Record()) == #"""
                {"blobs":{"a":"AQ=="},"data":"AP8=","date":"2026-11-29T07:51:20Z",\#
                "dates":["2026-11-29T07:51:20Z"],"id":"00000000-0000-0000-0000-000000000001",\#
                "price":12.5,"prices":[1,null],"site":"https://example.com/a?b#c","sites":["x"]}
                """#
        )
        try expectSame(Record())
        #expect(try stored(Event.at(Self.moment)) == #"{"at":{"_0":"2026-11-29T07:51:20Z"}}"#)
        let sent = Event.sent(data: Data([1]), to: URL(string: "x")!, for: 3)
        #expect(try stored(sent) == #"{"sent":{"data":"AQ==","for":3,"to":"x"}}"#)
        #expect(
            try stored(Booking()) == #"{"date":"2026-11-29T07:51:20Z","note":"n"}"#
        )
        for event in [Event.at(Self.moment), sent] { try expectSame(event) }
        try expectSame(Booking())
        try expectSame(Self.moment...Self.moment)
        try expectSame([Data(), Data([1])])
        try expectSame([Date?.none, Self.moment])
        for value: Data? in [nil, Data(), Data([0x9E, 0xE9, 0x65])] { try expectSame(value) }
    }

    @Test func `dates and URLs as keys are stored as elements of an array, as by Foundation`()
        throws
    {
        #expect(try stored([Self.moment: 1]) == #"["2026-11-29T07:51:20Z",1]"#)
        #expect(try stored([URL(string: "x")!: 1]) == #"["x",1]"#)
        try expectSame([Self.moment: 1])
        try expectSame([URL(string: "x")!: 1])
    }

    @Test func `a codec with a version wraps them, and reads what was bare before`() throws {
        func check<T: Codable & Equatable & Sendable>(_ value: T, _ text: String) throws {
            let codec = StateCodec<T>.versioned(2, migrations: [StateMigration(from: 1) { _ in }])
            let bytes = try #require(try codec.encode(value))
            #expect(String(decoding: bytes, as: UTF8.self) == text)
            #expect(try codec.decode(bytes) == value)
            let bare = try StateCodec<T>.standard.encode(value)
            #expect(try codec.decodeStored(bare) == (value, 1))
        }
        try check(Self.moment, #"{"$value":"2026-11-29T07:51:20Z","$version":2}"#)
        try check(Decimal(5), #"{"$value":5,"$version":2}"#)
        try check(URL(string: "true")!, #"{"$value":"true","$version":2}"#)
        // Each also looks like another kind of value.
        for digits in ["1234", "true", "null"] {
            try check(
                try #require(Data(base64Encoded: digits)),
                #"{"$value":"\#(digits)","$version":2}"#
            )
            try check(digits, #"{"$value":"\#(digits)","$version":2}"#)
        }
        try check(["a": Data([1])], #"{"$version":2,"a":"AQ=="}"#)
    }

    // MARK: What is read

    @Test(arguments: [
        "2026-11-29T07:51:20Z", "2026-11-29t07:51:20z", "2026-11-29 07:51:20Z",
        "2026-11-29T07:51:20.000Z", "2026-11-29T09:51:20+02:00", "2026-11-28T23:51:20-0800",
        "2026-11-29 07:51:20 +0000", " 2026-11-29T07:51:20,0Z\n",
    ])
    func `a date is read as people and programs write it`(text: String) throws {
        #expect(try StateCodec<Date>.standard.decode(Array(text.utf8)) == Self.moment)
        if text.first != " " {
            let member = Array("[\"\(text)\"]".utf8)
            #expect(try StateCodec<[Date]>.standard.decode(member) == [Self.moment])
        }
    }

    @Test(arguments: [
        "", "tomorrow", "817631480", "2026-11-29", "2026-11-29T07:51Z", "2026-11-29T07:51:20",
        "2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z", "2026-11-31T00:00:00Z",
        "2026-11-00T00:00:00Z", "2026-11-29T24:00:00Z", "2026-11-29T07:60:00Z",
        "2026-11-29T07:51:60Z", "2026-11-29T07:51:20.Z", "2026-11-29T07:51:20Zx",
        "2026-11-29T07:51:20+24:00", "2026-11-29T07:51:20+2", "26-11-29T07:51:20Z",
        "9999-12-31T23:59:59-01:00", "\"2026-11-29T07:51:20Z\"",
    ])
    func `what is no date is an error that names it`(text: String) {
        expectUndecodable(Date.self, text, ["Date", "expected a date such as", "'\(text)'"])
    }

    @Test(arguments: ["AP8B/w==", "AP8B/w", "AP8B\r\n/w==\n", " AP8B /w"])
    func `base64 is read with or without padding and line breaks`(text: String) throws {
        #expect(try StateCodec<Data>.standard.decode(Array(text.utf8)) == Data([0, 255, 1, 255]))
        let escaped = text.replacing("\r\n", with: #"\r\n"#).replacing("\n", with: #"\n"#)
            .replacing("/", with: #"\/"#)
        let member = Array("[\"\(escaped)\"]".utf8)
        #expect(try StateCodec<[Data]>.standard.decode(member) == [Data([0, 255, 1, 255])])
    }

    @Test(arguments: ["A", "AP8-", "AP8B/w=", "AP8B/x", "[0,255]", "AP8=="])
    func `what is no base64 is an error that names it`(text: String) {
        expectUndecodable(Data.self, text, ["Data", "expected bytes in base64", "'\(text)'"])
    }

    @Test(arguments: [
        ("12.50", "12.5"), ("\"12.50\"", "12.5"), ("1e3", "1000"), ("-0.001", "-0.001"),
        ("-0", "0"),
        ("12345678901234567890123456789012345678", "12345678901234567890123456789012345678"),
        ("1.2345678901234567890123456789012345678", "1.2345678901234567890123456789012345678"),
    ])
    func `a decimal number is read with all its digits, also in quotes`(
        text: String,
        digits: String
    ) throws {
        let number = try #require(Decimal(string: digits))
        #expect(try StateCodec<[Decimal]>.standard.decode(Array("[\(text)]".utf8)) == [number])
        #expect(try stored([number]) == "[\(digits)]")
    }

    @Test func `a decimal number is typed as any other number`() throws {
        for text in ["12.5", " +12.50\n", "012.5"] {
            #expect(try StateCodec<Decimal>.standard.decode(Array(text.utf8)) == 12.5)
        }
    }

    @Test(arguments: ["", "five", "NaN", "1e200", "1e-200", String(repeating: "7", count: 40)])
    func `what no decimal number can hold is an error that names it`(text: String) {
        expectUndecodable(Decimal.self, text, ["Decimal", "a decimal number of at most 38 digits"])
        expectUndecodable([Decimal].self, "[\"\(text)\"]", ["at '0'", "at most 38 digits"])
    }

    @Test func `what is no URL is an error that names it`() {
        expectUndecodable(URL.self, "http://[", ["URL", "expected a URL", "'http://['"])
        expectUndecodable(URL.self, "", ["expected a URL"])
        expectUndecodable([URL].self, "[5]", ["at '0'", "expected a URL, found the number '5'"])
    }

    @Test func `an error names the place of a value in another`() {
        expectUndecodable(
            [String: [Date]].self,
            #"{"a":["2026-11-29T07:51:20Z",5]}"#,
            ["at 'a/1'", "expected a date such as 2026-11-29T07:51:20Z, found the number '5'"]
        )
        expectUndecodable([Data].self, #"[[0,255]]"#, ["at '0'", "base64, found an array"])
        expectUndecodable([Date].self, "[null]", ["at '0'", "found null"])
    }

    // MARK: What cannot be stored

    @Test func `a date without a year of four digits is refused, never stored as another`() throws {
        for seconds in [1e300, -1e300, 252_423_993_600, -63_145_526_401, .nan, .infinity] {
            let date = Date(timeIntervalSinceReferenceDate: seconds)
            expectUnencodable(date, ["Date cannot be stored"])
            expectUnencodable(["a": date], ["at 'a'"])
        }
        let date = Date(timeIntervalSinceReferenceDate: 1e300)
        expectUnencodable(date, ["1e+300 seconds after 2001-01-01T00:00:00Z", "years 0 to 9999"])
    }

    @Test func `a Decimal that is no number is refused`() {
        expectUnencodable(["a": Decimal.nan], ["at 'a'", "not a number"])
    }

    // MARK: Exactness

    @Test func `the first and last dates, and those that Foundation names, come back`() throws {
        let texts = [
            (-63_145_526_400, "0000-01-01T00:00:00Z"), (252_423_993_599, "9999-12-31T23:59:59Z"),
            (0, "2001-01-01T00:00:00Z"), (-0.25, "2000-12-31T23:59:59.75Z"),
            (-978_307_200, "1970-01-01T00:00:00Z"), (1e-9, "2001-01-01T00:00:00.000000001Z"),
            (-26_524_800, "2000-02-29T00:00:00Z"), (-31_622_400.5, "1999-12-31T23:59:59.5Z"),
            (-3_187_296_000, "1900-01-01T00:00:00Z"),
        ]
        for (seconds, text) in texts {
            #expect(try stored(Date(timeIntervalSinceReferenceDate: seconds)) == text)
        }
        #expect(try stored(Date.distantFuture) == "4001-01-01T00:00:00Z")
        for date in [Date.distantPast, .distantFuture, Date()] { try expectSame([date]) }
    }

    @Test(arguments: 0..<8 as Range<UInt64>)
    func `any date comes back as the same Double, and is the one that its text says`(
        seed: UInt64
    ) throws {
        var random = DrawnNumbers(state: seed)
        for _ in 0..<500 {
            var seconds = Double.random(in: -63_145_526_400..<252_423_993_600, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0: seconds.round()
            case 1: seconds = (seconds * 1000).rounded() / 1000
            case 2: seconds *= pow(10, Double.random(in: -30..<0, using: &random))
            default: break
            }
            let date = Date(timeIntervalSinceReferenceDate: seconds)
            let text = try stored(date)
            let back = try StateCodec<Date>.standard.decode(Array(text.utf8))
            #expect(back.timeIntervalSinceReferenceDate == seconds, "\(text)")
            // Before 1582 Foundation has the Julian calendar, and ISO 8601 the Gregorian one.
            if seconds > -13_000_000_000 {
                let theirs = try Date.ISO8601FormatStyle().parse(String(text.prefix(19)) + "Z")
                #expect(theirs.timeIntervalSinceReferenceDate == seconds.rounded(.down))
            }
        }
    }

    @Test(arguments: 0..<8 as Range<UInt64>)
    func `any decimal number comes back with all its digits`(seed: UInt64) throws {
        var random = DrawnNumbers(state: seed)
        for _ in 0..<200 {
            let count = Int.random(in: 1...38, using: &random)
            let digits = (0..<count).map { _ in String(Int.random(in: 0...9, using: &random)) }
            let number = try #require(Decimal(string: digits.joined()))
            let exponent = Int.random(in: -128...127 - 38, using: &random)
            let value = Decimal(
                sign: Bool.random(using: &random) ? .minus : .plus,
                exponent: exponent,
                significand: number
            )
            try expectSame(value)
            try expectSame(["a": value])
        }
        for value in [
            .greatestFiniteMagnitude, .leastFiniteMagnitude, .leastNonzeroMagnitude, Decimal(0),
        ] {
            try expectSame(value)
        }
    }

    @Test(arguments: [0, 1, 2, 3, 4, 1_000, 1_000_000])
    func `data of any size comes back`(count: Int) throws {
        let data = Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        #expect(try stored(data) == data.base64EncodedString())
        try expectSame(data)
        try expectSame([data])
        try expectSame(data.dropFirst(1))
    }

    // MARK: URLs with a base

    /// The examples of RFC 3986, section 5.4, and some more.
    static let references = [
        "g:h", "g", "./g", "g/", "/g", "//g", "?y", "g?y", "#s", "g#s", "g?y#s", ";x", "g;x",
        "g;x?y#s", ".", "./", "..", "../", "../g", "../..", "../../", "../../g", "../../../g",
        "../../../../g", "/./g", "/../g", "g.", ".g", "g..", "..g", "./../g", "./g/.", "g/./h",
        "g/../h", "g;x=1/./y", "g;x=1/../y", "g?y/./x", "g?y/../x", "g#s/./x", "g#s/../x",
        "a%20b", "a/b/../../c",
    ]

    @Test(arguments: references)
    func `a URL with a base is stored as its absolute text`(reference: String) throws {
        for base in [
            "http://a/b/c/d;p?q", "http://a.b", "file:///x/y", "https://u:p@h:8/p/?q#f",
        ] {
            let url = try #require(URL(string: reference, relativeTo: URL(string: base)))
            #expect(try stored(url) == url.absoluteString, "\(reference) at \(base)")
            #expect(try stored([url]) == "[\"\(url.absoluteString)\"]")
        }
    }

    @Test func `a file by a relative path is stored by its absolute path`() throws {
        let url = URL(fileURLWithPath: "conf/x y.json")
        #expect(try stored(url) == url.absoluteString)
        #expect(try stored(url).hasPrefix("file:///"))
    }

    // MARK: Types of the same name

    @Test func `a type of one's own that is named Date encodes itself`() throws {
        enum Mine {
            struct Date: Codable, Sendable { var day = 1.5 }
        }
        #expect(try stored(Mine.Date()) == #"{"day":1.5}"#)
    }
}

/// SplitMix64: the same numbers for a seed, on every machine.
struct DrawnNumbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
