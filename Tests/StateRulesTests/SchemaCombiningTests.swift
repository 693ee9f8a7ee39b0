import StateEngine
import StateJSON
import StateRules
import Testing

/// Schemas that consist of others, and the rarer words.
struct SchemaCombiningTests {
    private typealias Row = SchemaTests.Row

    static let rows: [SchemaTests.Row] = [
        Row(
            #"{"anyOf": [{"type": "integer", "minimum": 5}, {"enum": ["auto"]}]}"#,
            ["5", "auto", "7.0"],
            not: ["4", "other", "5.5", "[]"]
        ),
        Row(
            #"{"type": "integer", "oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]}"#,
            ["2", "3", "4", "9"],
            not: ["6", "0", "5"]
        ),
        Row(
            #"{"type": "number", "allOf": [{"minimum": 1}, {"maximum": 2}]}"#,
            ["1", "2"],
            not: ["0", "3"]
        ),
        Row(#"{"type": "string", "not": {"pattern": "x"}}"#, ["a", ""], not: ["x", "axb"]),
        Row(
            #"{"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}}"#,
            [#"{"a":1,"b":1}"#, #"{"c":1}"#],
            not: [#"{"a":1}"#, "{}", #"{"a":1,"c":1}"#]
        ),
        Row(
            #"{"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}}"#,
            ["[]", #"["a"]"#, #"["a",1,2]"#],
            not: ["[1]", #"["a","b"]"#]
        ),
        Row(
            #"{"type": "array", "contains": {"minimum": 5}, "minContains": 2, "maxContains": 3}"#,
            ["[5,6]", "[1,5,6,7]"],
            not: ["[]", "[5]", "[5,6,7,8]"]
        ),
        Row(
            #"{"type": "array", "uniqueItems": true}"#,
            ["[]", "[1,true,\"1\"]", #"[{"a":1},{"a":2}]"#, "[[1],[[1]]]", #"["ab",["a","b"]]"#],
            not: ["[1,1.0]", #"[{"a":1,"b":2},{"b":2e0,"a":1}]"#, #"["a","\u0061"]"#, "[0,-0]"]
        ),
        Row(
            #"{"type": "object", "patternProperties": {"^n": {"type": "integer"}}, "additionalProperties": false}"#,
            ["{}", #"{"n":1,"nn":2}"#],
            not: [#"{"n":"1"}"#, #"{"m":1}"#]
        ),
        Row(
            #"{"type": "object", "propertyNames": {"maxLength": 2}, "minProperties": 1, "maxProperties": 2}"#,
            [#"{"ab":1}"#, #"{"a":1,"b":2}"#],
            not: ["{}", #"{"abc":1}"#, #"{"a":1,"b":2,"c":3}"#]
        ),
        Row(
            #"{"type": "object", "dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"maxProperties": 1}}}"#,
            ["{}", #"{"b":1}"#, #"{"a":1,"b":1}"#, #"{"c":1}"#],
            not: [#"{"a":1}"#, #"{"c":1,"b":1}"#]
        ),
        Row(
            #"{"type": "object", "allOf": [{"properties": {"a": true}}], "anyOf": [{"properties": {"b": {"type": "integer"}}}, true], "unevaluatedProperties": false}"#,
            [#"{"a":1}"#, #"{"a":1,"b":2}"#],
            not: [#"{"c":1}"#, #"{"b":"text"}"#]
        ),
        Row(
            #"{"type": "array", "prefixItems": [true], "contains": {"const": 7}, "unevaluatedItems": {"type": "string"}}"#,
            ["[7]", #"[1,7,"a"]"#],
            not: ["[1]", "[1,7,8]"]
        ),
        Row(
            ##"{"$defs": {"t": {"type": "object", "properties": {"next": {"$ref": "#/$defs/t"}, "v": {"type": "integer"}}}}, "$ref": "#/$defs/t"}"##,
            ["{}", #"{"next":{"next":{"v":1}}}"#],
            not: ["[]", #"{"next":{"next":{"v":"1"}}}"#, #"{"next":1}"#]
        ),
        Row(
            ##"{"$id": "https://example.com/s", "$defs": {"p": {"$anchor": "port", "type": "integer"}, "q": {"$id": "q", "minimum": 3}}, "allOf": [{"$ref": "#port"}, {"$ref": "q"}, {"$ref": "https://example.com/q"}]}"##,
            ["3"],
            not: ["2", "3.5", "a"]
        ),
        Row(
            #"{"type": "string", "pattern": "^\\p{Lu}\\p{Script=Greek}+[\\p{Nd}\\-]$"}"#,
            ["Éαβ٣", "Aα-"],
            not: ["éα1", "Aa1", "Aα", "Aαx"]
        ),
        Row(
            #"{"type": "string", "pattern": "^\\P{L}+$"}"#,
            ["12", "- -"],
            not: ["", "1a", "é"]
        ),
        Row(
            #"{"type": "string", "format": "date"}"#,
            ["2024-02-29"],
            not: ["2023-02-29", "2024-2-9", "2024-02-29Z"]
        ),
        Row(
            #"{"type": "string", "format": "duration"}"#,
            ["P1DT12H", "PT1H30M", "P2W"],
            not: ["P", "PT", "P1Y2D", "PT1D", "1D", "P1W2D"]
        ),
        Row(
            #"{"type": "string", "format": "hostname"}"#,
            ["a.example", "xn--ihqwcrb4cv8a8dqg056pqjye"],
            not: ["", "a..b", "-a", "a_b", "xn--x", "é.example"]
        ),
        Row(
            #"{"type": "string", "format": "idn-hostname"}"#,
            ["bücher.example", "日本。jp", "l·l", "a.b"],
            not: ["", "·l", "é-", "Bücher", "a\u{302E}b"]
        ),
        Row(
            #"{"type": "string", "format": "regex"}"#,
            ["^a(?=b)\\1$", "\\p{L}"],
            not: ["(a", "\\a", "\\p{Nothing}"]
        ),
        Row(
            #"{"type": "string", "format": "uri-template"}"#,
            ["/a/{b:3}{?c,d*}"],
            not: ["{a", "}", "{a:0}", "{}"]
        ),
        Row(
            #"{"type": "string", "format": "email"}"#,
            [#""a b"@c"#, "a@[127.0.0.1]", "a@[IPv6:::1]"],
            not: [#""a"b"@c"#, "a@[300.0.0.1]"]
        ),
        Row(
            #"{"type": "string", "format": "iri"}"#,
            ["http://bücher.example/ü?ö#ä"],
            not: ["ü", "http://a b", "http://a\u{80}"]
        ),
    ]

    private func schema(
        _ text: String,
        _ files: [String: String] = [:]
    ) throws -> Schema {
        let library = SchemaLibrary { address in
            files[address].flatMap { try? JSON5Document($0) }.map { .success($0) }
        }
        return try Schema(
            JSONValue(parsing: Array(text.utf8)),
            at: JSONPath().member("schema"),
            in: library
        )
    }

    private func issues(_ schema: Schema, _ value: String) -> [ValidationIssue] {
        Array(value.utf8).withUnsafeBytes { schema.issues(of: $0, depthLimit: 64) }
    }

    @Test(arguments: rows) func `values are allowed and refused`(row: SchemaTests.Row) throws {
        let schema = try schema(row.schema)
        for value in row.allowed {
            #expect(issues(schema, value) == [], "'\(value)' is allowed")
        }
        for value in row.refused { #expect(issues(schema, value) != [], "'\(value)' is refused") }
    }

    @Test func `types behind references decide how bytes are read`() throws {
        let text = try schema(##"{"$defs":{"t":{"type":"string"}},"$ref":"#/$defs/t"}"##)
        #expect(issues(text, "5") == [])
        #expect(text.typeName == "string")
        let both = try schema(
            #"{"anyOf":[{"type":"integer","maximum":5},{"type":"string","maxLength":2}]}"#
        )
        #expect(issues(both, "6") != [])
        #expect(issues(both, "ab") == [])
        #expect(both.typeName == nil)
    }

    @Test func `an issue says which alternative refuses what`() throws {
        let schema = try schema(
            #"{"anyOf":[{"type":"integer"},{"type":"array","items":{"type":"string"}}]}"#
        )
        #expect(
            issues(schema, "[1]").map(\.description) == [
                "it matches none of the 2 schemas of 'anyOf': (1) an array is not of type integer; (2) [0]: the number '1' is not of type string"
            ]
        )
        let choice = try self.schema(#"{"enum":["debug","info"]}"#)
        #expect(
            issues(choice, "warning").map(\.description) == [
                #"'warning' is not one of "debug", "info""#
            ]
        )
    }

    @Test func `files beside the configuration may name each other`() throws {
        let files = [
            "schemas/a.json5": #"{ $defs: { x: { $ref: "b.json5#/$defs/y" } } }"#,
            "schemas/b.json5": #"{ $defs: { y: { type: "integer", maximum: 3 } } }"#,
            "schemas/wrong.json5": "{\n  type: 5 }",
        ]
        let schema = try schema(##"{"$ref":"schemas/a.json5#/$defs/x"}"##, files)
        #expect(issues(schema, "3") == [])
        #expect(issues(schema, "4") != [])
        let fault = #expect(throws: OptionFault.self) {
            _ = try self.schema(#"{"$ref":"schemas/wrong.json5"}"#, files)
        }
        let message = try #require(fault?.description)
        let unused = #expect(throws: OptionFault.self) {
            _ = try self.schema(
                ##"{"$ref":"schemas/c.json5#/$defs/x"}"##,
                ["schemas/c.json5": "{ $defs: { x: true, y: { type: 5 } } }"]
            )
        }
        #expect(unused?.message.contains("$defs") ?? false)
        #expect(message.hasPrefix(#"schema["$ref"]: schemas/wrong.json5:2:3: type: "#))
    }

    @Test(arguments: [
        (##"{"$ref": "#"}"##, "it refers to itself"),
        (
            ##"{"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}}"##,
            "it refers to itself"
        ), (##"{"$ref": "#/$defs/a"}"##, ##""#/$defs/a" names nothing"##),
        (##"{"$ref": "#a"}"##, #"no schema has "$anchor": "a""#),
        (#"{"$ref": "schemas/a.json5"}"#, "there is no file schemas/a.json5"),
        (#"{"$ref": "https://example.com/a"}"#, "none is fetched"),
        (#"{"$schema": "http://json-schema.org/draft-07/schema#"}"#, "2020-12"),
        (##"{"$dynamicRef": "#a"}"##, "not supported"), (#"{"anyOf": []}"#, "at least one schema"),
        (#"{"$id": "a#b"}"#, "without '#'"), (#"{"pattern": "\\p{Klingon}"}"#, "no property"),
    ])
    func `a schema that is none is refused`(text: String, message: String) throws {
        let fault = #expect(throws: OptionFault.self) { _ = try schema(text) }
        let description = try #require(fault?.description)
        #expect(description.contains(message), "\(description)")
    }

    @Test(arguments: [
        (#"{"type":"integer","minimum":3,"maximum":2}"#, ["schema.minimum"]),
        (#"{"exclusiveMinimum":3,"maximum":3}"#, ["schema.exclusiveMinimum"]),
        (#"{"type":"string","minLength":3,"maxLength":2}"#, ["schema.minLength"]),
        (#"{"enum":[]}"#, ["schema.enum"]),
        (#"{"type":"string","enum":["a",5]}"#, ["schema.enum[2]"]),
        (#"{"pattern":"^a"}"#, ["schema.pattern"]),
        (#"{"type":"integer","pattern":"^a"}"#, ["schema.pattern"]),
        (
            #"{"type":"object","required":["a"],"additionalProperties":false}"#,
            ["schema.required[1]"]
        ),
        (#"{"then":{}}"#, ["schema.then"]), (#"{"type":"integer","minimum":3,"maximum":3}"#, []),
        (#"{"type":"string","anyOf":[{"pattern":"a"},{"pattern":"b"}]}"#, []),
        (##"{"$defs":{"a":{"pattern":"a"}},"type":"string","$ref":"#/$defs/a"}"##, []),
        (#"{"type":["string","integer"],"pattern":"a","minimum":1}"#, []),
        (#"{"type":"object","propertyNames":{"pattern":"a"}}"#, []),
    ])
    func `contradictions are warnings with their place`(text: String, paths: [String]) throws {
        #expect(try schema(text).warnings.map(\.path.description) == paths)
    }

    @Test func `combined schemas take so many steps, and then the value is refused`() throws {
        // Each level visits the next one twice.
        let schema = try schema(
            ##"{"$defs":{"t":{"anyOf":[{"items":{"$ref":"#/$defs/t"},"minItems":9},{"items":{"$ref":"#/$defs/t"}}]}},"$ref":"#/$defs/t"}"##
        )
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + "1" + String(repeating: "]", count: depth)
        }
        #expect(issues(schema, nested(8)) == [])
        let wide = try self.schema(
            ##"{"$defs":{"t":{"allOf":[{"items":{"$ref":"#/$defs/t"}},{"items":{"$ref":"#/$defs/t"}}]}},"$ref":"#/$defs/t"}"##
        )
        #expect(issues(wide, nested(4)) == [])
        let issue = try #require(issues(wide, nested(60)).first)
        #expect(issue.message.hasSuffix("(more than 2000000 steps for one value)"))
        // A check that is given up refuses the value, also where a match is forbidden.
        let forbidden = try self.schema(
            ##"{"$defs":{"t":{"allOf":[{"items":{"$ref":"#/$defs/t"}},{"items":{"$ref":"#/$defs/t"}},{"not":false}]}},"not":{"$ref":"#/$defs/t"}}"##
        )
        #expect(issues(forbidden, nested(60)).map(\.rule) == ["steps"])
    }
}
