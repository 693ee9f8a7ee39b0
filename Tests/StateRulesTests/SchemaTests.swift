import StateContainers
import StateEngine
import StateJSON
import StateRules
import Testing

/// What each word of JSON Schema draft 2020-12 allows and refuses.
struct SchemaTests {
    /// A schema, values that it allows and values that it refuses, all as they are stored.
    struct Row: CustomTestStringConvertible {
        let schema: String
        let allowed: [String]
        let refused: [String]

        init(_ schema: String, _ allowed: [String], not refused: [String]) {
            (self.schema, self.allowed, self.refused) = (schema, allowed, refused)
        }

        var testDescription: String { schema }
    }

    static let rows: [Row] = [
        // type
        Row(#"{"type": "null"}"#, ["null"], not: ["0", "", "nul", "\"null\"", "[]"]),
        Row(#"{"type": "boolean"}"#, ["true", "false"], not: ["1", "True", "\"true\"", ""]),
        Row(
            #"{"type": "integer"}"#,
            ["0", "-1", "1.0", "1e3", "10.50e1", "9007199254740993", "1e400", " 7 "],
            not: ["1.5", "1e-1", "NaN", "+1", "01", "0x10", "", "one", "true"]
        ),
        Row(
            #"{"type": "number"}"#,
            ["0.5", "-0", "1E+2", "1e-400", "123456789012345678901234567890"],
            not: [".5", "1.", "Infinity", "1 2", "[1]", "\"1\""]
        ),
        Row(
            #"{"type": "string"}"#,
            ["", "5", "true", "{}", "\"quoted\"", "né"],
            not: ["\u{FF}raw"]
        ),
        Row(#"{"type": "array"}"#, ["[]", "[1, \"a\"]"], not: ["{}", "[", "a", "1"]),
        Row(#"{"type": "object"}"#, ["{}", #" {"a": {}} "#], not: ["[]", "{", "{}{}", "a"]),
        Row(#"{"type": ["integer", "null"]}"#, ["5", "null"], not: ["5.5", "", "text"]),
        Row(#"{"type": ["integer", "string"]}"#, ["5", "text", "5.5"], not: []),
        Row("{}", ["", "a", "1", "{}", "[null]"], not: []),
        Row("true", ["anything"], not: []),
        Row("false", [], not: ["anything", "1", ""]),
        // Bounds, beyond what a Double can tell apart.
        Row(
            #"{"type": "number", "minimum": 0, "maximum": 1}"#,
            ["0", "1", "0.0", "1.0", "1e-9", "-0"],
            not: ["-1e-9", "1.0000000000000000000001", "2"]
        ),
        Row(
            #"{"type": "integer", "maximum": 9007199254740992}"#,
            ["9007199254740992"],
            not: ["9007199254740993", "9007199254740992.5"]
        ),
        Row(
            #"{"type": "integer", "minimum": -9007199254740993}"#,
            ["-9007199254740993"],
            not: ["-9007199254740994"]
        ),
        Row(
            #"{"exclusiveMinimum": 0, "exclusiveMaximum": 10}"#,
            ["0.1", "9.99", "text"],
            not: ["0", "10", "10.0", "-5"]
        ),
        Row(
            #"{"type": "number", "minimum": 100000000000000000000}"#,
            ["100000000000000000000", "1e20", "1e21"],
            not: ["99999999999999999999", "9.9e19"]
        ),
        Row(
            #"{"type": "number", "maximum": 0.1}"#,
            ["0.1", "0.10", "1e-1"],
            not: ["0.10000000000000000001"]
        ),
        Row(
            #"{"type": "number", "multipleOf": 0.1}"#,
            ["0.3", "1", "0", "1e30", "-0.7"],
            not: ["0.35", "1e-2"]
        ),
        Row(
            #"{"type": "number", "multipleOf": 3}"#,
            ["9", "9.0", "3e5", "123456789012345678901234567890"],
            not: ["10", "1e5", "0.3", "123456789012345678901234567891"]
        ),
        Row(#"{"type": "integer", "multipleOf": 20}"#, ["100", "1e3"], not: ["10", "30"]),
        // Strings: code points, not bytes and not characters.
        Row(
            #"{"type": "string", "minLength": 2}"#,
            ["ab", "éé", "e\u{301}", "12"],
            not: ["", "a", "é", "👍"]
        ),
        Row(
            #"{"type": "string", "maxLength": 2}"#,
            ["", "ab", "👍👍", "日本"],
            not: ["abc", "e\u{301}\u{301}"]
        ),
        Row(#"{"minLength": 3}"#, ["abc", "5", "true", "[]"], not: ["ab"]),
        Row(#"{"type": "string", "pattern": "b"}"#, ["abc", "b"], not: ["ac", "B", ""]),
        Row(
            #"{"type": "string", "pattern": "^a+$"}"#,
            ["a", "aaa"],
            not: ["", "ab", "ba", "a\n"]
        ),
        Row(#"{"type": "string", "pattern": "^\\d{3}$"}"#, ["123"], not: ["1234", "12", "١٢٣"]),
        Row(#"{"type": "string", "pattern": "^.$"}"#, ["a", "👍", "é"], not: ["ab", "\n", ""]),
        // enum, const
        Row(#"{"enum": ["on", "off"]}"#, ["on", "off"], not: ["On", "", "true", "[]"]),
        Row(
            #"{"enum": [1, 2.50, null, true]}"#,
            ["1", "1.0", "2.5", "25e-1", "null", "true"],
            not: ["2", "false", "text"]
        ),
        Row(#"{"enum": ["5"]}"#, ["5"], not: ["5.0", "6"]),
        Row(#"{"enum": [5, "five"]}"#, ["5", "five", "5e0"], not: ["four", "6"]),
        Row(
            #"{"const": {"a": 1, "b": [2]}}"#,
            [#"{"b":[2.0],"a":1}"#],
            not: [#"{"a":1}"#, #"{"a":1,"b":[2],"c":0}"#, "text"]
        ),
        Row(#"{"const": "é"}"#, ["\u{E9}"], not: ["e\u{301}"]),
        Row(#"{"const": 9007199254740993}"#, ["9007199254740993"], not: ["9007199254740992"]),
        // Arrays
        Row(
            #"{"type": "array", "items": {"type": "integer"}}"#,
            ["[]", "[1, 2.0]"],
            not: ["[1, \"2\"]", "[1.5]", "[[1]]"]
        ),
        Row(
            #"{"type": "array", "minItems": 1, "maxItems": 2}"#,
            ["[1]", "[1, 2]"],
            not: ["[]", "[1, 2, 3]"]
        ),
        Row(#"{"items": false}"#, ["[]", "text"], not: ["[0]"]),
        // Objects
        Row(
            #"{"type": "object", "required": ["a", "b"]}"#,
            [#"{"a":1,"b":null}"#],
            not: [#"{"a":1}"#, "{}"]
        ),
        Row(
            #"{"type": "object", "properties": {"a": {"type": "integer"}}}"#,
            ["{}", #"{"a":1}"#, #"{"b":"x"}"#],
            not: [#"{"a":"1"}"#, #"{"a":1,"a":"x"}"#, #"{"\u0061":"x"}"#]
        ),
        Row(
            #"{"type": "object", "properties": {"a": {}}, "additionalProperties": false}"#,
            ["{}", #"{"a":[]}"#],
            not: [#"{"b":1}"#, #"{"a":1,"b":1}"#]
        ),
        Row(
            #"{"type": "object", "additionalProperties": {"minimum": 3}}"#,
            ["{}", #"{"x":3,"y":"z"}"#],
            not: [#"{"x":2}"#]
        ),
        Row(
            #"{"type": "object", "properties": {"n": {"type": "object", "required": ["m"]}}}"#,
            [#"{"n":{"m":0}}"#],
            not: [#"{"n":{}}"#, #"{"n":3}"#]
        ),
        // Formats
        Row(
            #"{"type": "string", "format": "email"}"#,
            ["a@b.example", "a+b@c"],
            not: ["a", "@b", "a@", "a@b@c", "a b@c", "a@-b"]
        ),
        Row(
            #"{"type": "string", "format": "date-time"}"#,
            [
                "2026-11-21T12:00:00Z", "1985-04-12T23:20:50.52Z", "1996-12-19T16:39:57-08:00",
                "1990-12-31T23:59:60Z", "1990-12-31T15:59:60-08:00", "2024-02-29T00:00:00z",
            ],
            not: [
                "2026-11-21", "2026-11-21T12:00:00", "2023-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
                "2026-11-21T24:00:00Z", "1990-12-31T22:59:60Z", "2026-11-21 12:00:00Z",
                "2026-11-21T12:00:00.Z", "2026-11-21T12:00:00+24:00",
            ]
        ),
        Row(
            #"{"type": "string", "format": "uri"}"#,
            [
                "http://foo.example/?bar=baz#nose", "urn:oasis:names", "mailto:a@b",
                "ftp://[::1]:21/x", "tel:+1-816-555-1212", "http://user:pw@h/p", "file:///etc",
            ],
            not: [
                "//foo.example/", "/abc", "bar", "http://a b", "http://[::1", "\\\\share",
                "http://x/%zz", "http://h:port", "1http://x", "http://é",
            ]
        ),
        Row(
            #"{"type": "string", "format": "uuid"}"#,
            ["2EB8AA08-aa98-11ea-b4aa-73b441d16380", "00000000-0000-0000-0000-000000000000"],
            not: [
                "2eb8aa08-aa98-11ea-b4aa-73b441d1638", "2eb8aa08aa9811eab4aa73b441d16380",
                "2eb8aa08-aa98-11ea-b4ga-73b441d16380", "2eb8aa0-8aa98-11ea-b4aa73b441d16380-",
            ]
        ),
        Row(
            #"{"type": "string", "format": "ipv4"}"#,
            ["192.168.0.1", "0.0.0.0", "255.255.255.255"],
            not: [
                "127.0.0.0.1", "256.1.1.1", "127.0", "0x7f000001", "087.10.0.1", "1.2.3.",
                "1.2.3.4/8", "1٠.0.0.1",
            ]
        ),
        Row(
            #"{"type": "string", "format": "ipv6"}"#,
            [
                "::", "::1", "1::8", "12:34:56:78:9a:bc:de:f0", "::ffff:192.168.0.1", "1:2::8",
                "1::2:3:4:5:6:7",
            ],
            not: [
                "12345::", "1:2:3:4:5:6:7", "1::2::3", ":2:3:4:5:6:7:8", "1:2:3:4:5:6:7:",
                "::1.2.3", "fe80::1%eth0", "1:2:3:4:5:6:7:8:9", "1:2:3:4::5:6:7:8", ":::",
            ]
        ),
    ]

    private func schema(_ text: String) throws -> Schema {
        try Schema(JSONValue(parsing: Array(text.utf8)), at: JSONPath())
    }

    private func issues(_ schema: Schema, _ value: [UInt8]) -> [ValidationIssue] {
        value.withUnsafeBytes { schema.issues(of: $0, depthLimit: 64) }
    }

    @Test(arguments: rows) func `values are allowed and refused`(row: Row) throws {
        let schema = try schema(row.schema)
        for value in row.allowed {
            #expect(issues(schema, Array(value.utf8)) == [], "'\(value)' is allowed")
        }
        for value in row.refused where value != "\u{FF}raw" {
            #expect(issues(schema, Array(value.utf8)) != [], "'\(value)' is refused")
        }
    }

    @Test func `bytes that are not UTF-8 are no string`() throws {
        #expect(
            issues(try schema(#"{"type":"string"}"#), [0x61, 0xFF]).map(\.rule) == ["type string"]
        )
        #expect(
            issues(try schema(#"{"type":"object"}"#), Array(#"{"a":""#.utf8) + [0xFF, 0x22, 0x7D])
                .count == 1
        )
    }

    @Test func `an issue names the place, the rule and the value`() throws {
        let schema = try schema(
            #"{"type":"object","required":["id"],"properties":{"tags":{"items":{"maxLength":3}},"n":{"maximum":5}},"additionalProperties":false}"#
        )
        let found = issues(schema, Array(#"{"tags":["ok","long"],"n":6,"x":1}"#.utf8))
        #expect(
            found.map(\.description) == [
                "id: a value is required",
                "tags/1: 'long' has 4 characters, more than 3",
                "n: 6 is above 5",
                "x: this member is not allowed",
            ]
        )
        #expect(
            found.map(\.rule) == [
                "required", "maxLength 3", "maximum 5", "additionalProperties false",
            ]
        )
    }

    @Test func `depth is limited`() throws {
        let schema = try schema(#"{"type":"array"}"#)
        let nested = { (depth: Int) in
            Array(String(repeating: "[", count: depth).utf8)
                + Array(String(repeating: "]", count: depth).utf8)
        }
        #expect(issues(schema, nested(64)) == [])
        #expect(issues(schema, nested(65)) != [])
    }

    @Test(arguments: [
        (
            #"{"type": "text"}"#,
            #"type: "text" is not one of "null", "boolean", "integer", "number", "string", "array", "object""#
        ),
        (#"{"minimun": 1}"#, "minimun: unknown option; did you mean 'minimum'?"),
        (#"{"minimum": "1"}"#, #"minimum: expected a number, not "1""#),
        (
            #"{"multipleOf": 0}"#,
            "multipleOf: expected a number above 0 of at most 19 digits, not 0"
        ),
        (
            #"{"pattern": "(a)\\1"}"#,
            "pattern: pattern '(a)\\1': back-references are not supported at 3"
        ),
        (
            #"{"properties": {"a b": {"minLength": -1}}}"#,
            #"properties["a b"].minLength: expected a whole number from 0, not -1"#
        ),
        (#"{"minLength": 1e-400}"#, "minLength: expected a whole number from 0, not 1e-400"),
        (
            #"{"items": {"format": "Date"}}"#,
            #"items.format: "Date" is not one of "email", "idn-email", "date-time", "date", "time", "duration", "hostname", "idn-hostname", "ipv4", "ipv6", "uri", "uri-reference", "iri", "iri-reference", "uri-template", "uuid", "json-pointer", "relative-json-pointer", "regex""#
        ),
        ("5", "expected an object in { }, not 5"),
    ])
    func `a schema that is none is refused with its place`(text: String, message: String) {
        let fault = #expect(throws: OptionFault.self) { _ = try schema(text) }
        #expect(fault?.description == message)
    }

    @Test func `all patterns of a value together take so many steps, and then it is refused`()
        throws
    {
        let schema = try schema(#"{"items": {"pattern": "^(a?){500}a{500}$"}}"#)
        func issues(_ count: Int) -> [ValidationIssue] {
            let texts = Array(repeating: "\"\(String(repeating: "a", count: 900))\"", count: count)
            return Array("[\(texts.joined(separator: ","))]".utf8).withUnsafeBytes {
                schema.issues(of: $0, depthLimit: 64)
            }
        }
        #expect(issues(2) == [])
        let issue = try #require(issues(200).first)
        #expect(try #require(Int(issue.path)) > 2)
        #expect(issue.message.hasSuffix("takes too long (more than 2000000 steps for one value)"))
    }

    @Test(arguments: [
        (#""minimum": 0, "maximum": 1000"#, 0...1_000 as ClosedRange<Int64>?),
        (#""exclusiveMinimum": -0.5, "exclusiveMaximum": 7"#, 0...6),
        (#""minimum": -1e3, "maximum": 12.75, "exclusiveMaximum": 12.5"#, -1_000...12),
        (#""minimum": 9007199254740993"#, nil), (#""minimum": 0.1, "maximum": 0.9"#, nil),
        (#""maximum": 1e400"#, -999_999_999_999_999...999_999_999_999_999),
        (#""minimum": 1, "multipleOf": 2"#, nil), (#""enum": [1, 2]"#, nil),
    ])
    func `what is taken for granted of whole numbers is what the schema allows`(
        words: String,
        range: ClosedRange<Int64>?
    ) throws {
        let schema = try schema(#"{"type": "number", \#(words)}"#)
        #expect(schema.plainIntegers == range)
        guard let range else { return }
        let ends = [range.lowerBound, range.upperBound]
        for number in ends + ends.flatMap({ [$0 - 1, $0 + 1] }) {
            let issues = Array("\(number)".utf8).withUnsafeBytes {
                schema.issues(of: $0, depthLimit: 64)
            }
            // Beyond 15 digits nothing is known.
            guard abs(number) < 1_000_000_000_000_000 else { continue }
            #expect(issues.isEmpty == range.contains(number), "\(number)")
        }
    }
}
