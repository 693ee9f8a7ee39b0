/// A schema, and values that it allows and refuses.
struct RuleCase {
    /// The keys are `cases/NAME/…`.
    let name: String
    /// As it stands in the configuration.
    let schema: String
    let allowed: [String]
    let refused: [String]

    init(_ name: String, _ schema: String, allowed: [String], refused: [String]) {
        self.name = name
        self.schema = schema
        self.allowed = allowed
        self.refused = refused
    }
}

/// Values and what JSON Schema draft 2020-12 says of them, as Python's `jsonschema` 4.26 answers with exact numbers; its `email` and
/// `uri` take nearly everything, there the answer is that of RFC 5321 and RFC 3986.
///
/// Under `type: "string"` the bytes are the string, under any other type they are JSON.
let ruleCases: [RuleCase] = [
    RuleCase(
        "unit",
        #"{"type":"number","minimum":0,"maximum":1}"#,
        allowed: [
            "0", "1", "0.5", "1.0", "1e0", "-0", "0.0", "1E-300", "0.9999999999999999999",
            "10e-1",
        ],
        refused: [
            "1.0000000000000000001", "-1e-300", "2", "1e1", "-0.1", "x", "true", "null", "[0]",
            "{}", "", "0x1", "01", ".5", "1.", "+1", "NaN", "Infinity", "\"0.5\"",
        ]
    ),
    RuleCase(
        "step",
        #"{"type":"number","exclusiveMinimum":-1.5,"exclusiveMaximum":1000,"multipleOf":0.01}"#,
        allowed: [
            "0", "-1.49", "999.99", "0.01", "1e2", "0.070", "999.9900",
        ],
        refused: [
            "-1.5", "1000", "1e3", "0.001", "0.015", "-1.500", "1000.0",
        ]
    ),
    RuleCase(
        "whole",
        #"{"type":"integer","minimum":-9007199254740993,"maximum":18446744073709551617}"#,
        allowed: [
            "1", "1.0", "-9007199254740993", "18446744073709551617", "1e3", "100e-2",
            "9007199254740993", "1.8446744073709551617e19",
        ],
        refused: [
            "1.5", "-9007199254740994", "18446744073709551618", "1e-1", "18446744073709551617.5",
            "1e20", "a", "true", "\"1\"",
        ]
    ),
    RuleCase(
        "even",
        #"{"type":"integer","multipleOf":2}"#,
        allowed: [
            "0", "2", "-4", "9007199254740994", "2.0", "18446744073709551616",
        ],
        refused: [
            "1", "9007199254740993", "18446744073709551617", "3.0",
        ]
    ),
    RuleCase(
        "name",
        #"{"type":"string","minLength":2,"maxLength":5}"#,
        allowed: [
            "ab", "abcde", "\u{e4}\u{f6}", "\u{1f600}\u{1f600}", "e\u{301}e\u{301}", "12", "a b",
            "{}", "5.25", "\u{65e5}\u{672c}\u{8a9e}",
        ],
        refused: [
            "", "a", "abcdef", "\u{1f600}", "e\u{301}e\u{301}e\u{301}",
            "\u{65e5}\u{672c}\u{8a9e}\u{65e5}\u{672c}\u{8a9e}",
        ]
    ),
    RuleCase(
        "code",
        #"{"type":"string","pattern":"[a-c]+\\d{2}"}"#,
        allowed: [
            "a12", "xxabc99yy", "b00", "--c42--",
        ],
        refused: [
            "d12", "a1", "", "A12", "a 12",
        ]
    ),
    RuleCase(
        "line",
        #"{"type":"string","pattern":"^(ab|cd)*$"}"#,
        allowed: [
            "", "ab", "abcd", "cdcdab",
        ],
        refused: [
            "a", "abc", "ab ", "xab",
        ]
    ),
    RuleCase(
        "mail",
        #"{"type":"string","format":"email"}"#,
        allowed: [
            "a@b.example", "first.last+tag@sub.domain.example",
        ],
        refused: [
            "a", "@b", "a@", "a b@c.example", "a@b@c",
        ]
    ),
    RuleCase(
        "when",
        #"{"type":"string","format":"date-time"}"#,
        allowed: [
            "2026-11-21T10:20:30Z", "2026-11-21T10:20:30.123+01:00", "2024-02-29T00:00:00-00:30",
        ],
        refused: [
            "2026-11-21", "2026-13-01T00:00:00Z", "2025-02-29T00:00:00Z", "2026-11-21T25:00:00Z",
            "2026-11-21T10:20:30",
        ]
    ),
    RuleCase(
        "link",
        #"{"type":"string","format":"uri"}"#,
        allowed: [
            "http://a.example/x?y#z", "urn:isbn:0451450523", "mailto:a@b.example",
        ],
        refused: [
            "/relative", "a b", "http://a b/", "no-scheme",
        ]
    ),
    RuleCase(
        "id",
        #"{"type":"string","format":"uuid"}"#,
        allowed: [
            "2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2EB8AA08-AA98-11EA-B4AA-73B441D16380",
        ],
        refused: [
            "2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-11ea-b4aa-73b441d1638",
            "geb8aa08-aa98-11ea-b4aa-73b441d16380",
        ]
    ),
    RuleCase(
        "four",
        #"{"type":"string","format":"ipv4"}"#,
        allowed: [
            "127.0.0.1", "255.255.255.255",
        ],
        refused: [
            "256.0.0.1", "1.2.3", "01.2.3.4", "1.2.3.4.5",
        ]
    ),
    RuleCase(
        "six",
        #"{"type":"string","format":"ipv6"}"#,
        allowed: [
            "::1", "2001:db8::7", "::ffff:192.0.2.1",
        ],
        refused: [
            ":::1", "2001:db8::7::1", "12345::", "1.2.3.4",
        ]
    ),
    RuleCase(
        "choice",
        #"{"enum":["a",1,null,[1,2],{"x":1},true]}"#,
        allowed: [
            "a", "1", "1.0", "null", "[1, 2]", "{\"x\":1.0}", "true",
        ],
        refused: [
            "b", "2", "[2,1]", "{\"x\":2}", "false", "{\"x\":1,\"y\":1}", "[1]",
        ]
    ),
    RuleCase(
        "fixed",
        #"{"const":{"a":[1.0,"x"]}}"#,
        allowed: [
            "{\"a\":[1,\"x\"]}", "{ \"a\" : [ 1.00 , \"\\u0078\" ] }",
        ],
        refused: [
            "{\"a\":[1,\"y\"]}", "{\"a\":[1]}", "{}", "[]",
        ]
    ),
    RuleCase(
        "person",
        #"{"type":"object","required":["name"],"properties":{"name":{"type":"string","minLength":1},"age":{"type":"integer","minimum":0}},"additionalProperties":false}"#,
        allowed: [
            "{\"name\":\"n\"}", "{\"age\":3,\"name\":\"n\"}", "{\"name\":\"n\",\"age\":3.0}",
        ],
        refused: [
            "{}", "{\"name\":\"\"}", "{\"name\":5}", "{\"name\":\"n\",\"age\":-1}",
            "{\"name\":\"n\",\"x\":1}", "[]", "{\"name\":\"n\"", "name",
        ]
    ),
    RuleCase(
        "list",
        #"{"type":"array","items":{"type":"number"},"minItems":1,"maxItems":3}"#,
        allowed: [
            "[1]", "[1,2.5,3]", " [ 1 , 2 ] ",
        ],
        refused: [
            "[]", "[1,2,3,4]", "[\"1\"]", "[1,null]", "{}", "1", "[1,]",
        ]
    ),
    RuleCase(
        "flag",
        #"{"type":"boolean"}"#,
        allowed: [
            "true", "false",
        ],
        refused: [
            "1", "0", "yes", "True", "null",
        ]
    ),
    RuleCase(
        "nothing",
        #"{"type":"null"}"#,
        allowed: [
            "null"
        ],
        refused: [
            "0", "false", "{}",
        ]
    ),
    RuleCase(
        "either",
        #"{"type":["integer","null"]}"#,
        allowed: [
            "1", "null", "-3",
        ],
        refused: [
            "1.5", "true", "[]",
        ]
    ),
    RuleCase(
        "rest",
        #"{"type":"object","additionalProperties":{"type":"integer"},"properties":{"s":{"type":"string"}}}"#,
        allowed: [
            "{}", "{\"a\":1}", "{\"s\":\"t\",\"b\":2}",
        ],
        refused: [
            "{\"a\":\"1\"}", "{\"s\":1}",
        ]
    ),
]
