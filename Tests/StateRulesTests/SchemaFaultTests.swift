import StateEngine
import StateJSON
import StateRules
import Testing

/// Schemas with several mistakes, and limits of schemas and of what checking a value costs.
struct SchemaFaultTests {
    private func schema(
        _ text: String,
        _ files: [String: String] = [:]
    ) throws(OptionFault) -> Schema {
        let library = SchemaLibrary { address in
            files[address].flatMap { try? JSON5Document($0) }.map { .success($0) }
        }
        let document = JSON5Document(Array(text.utf8))
        return try Schema(document.value, at: JSONPath().member("schema"), in: library)
    }

    private func faults(_ text: String, _ files: [String: String] = [:]) -> [String] {
        do throws(OptionFault) {
            _ = try schema(text, files)
            return []
        } catch { return error.all.map(\.description) }
    }

    private func places(_ text: String) -> [String] {
        faults(text).map { String($0.prefix { $0 != ":" }) }
    }

    // MARK: Several faults

    @Test func `a wrong reference hides nothing else`() {
        #expect(
            places(
                """
                { $ref: '#/none', type: 'text', properties: { a: { type: 1 }, b: { $ref: '#x' },
                    c: { minimum: '1' } }, patternProperties: { '(': { type: 2 }, x: { maximum: [] } },
                  $defs: { d: { $ref: 'schemas/none.json5' }, e: { pattern: '(' }, f: 5 },
                  allOf: [ { type: 3 }, { minLength: 'a' } ], propertyNames: { type: 4 },
                  dependencies: { x: [5], y: { type: 6 } }, tipe: 1 }
                """
            )
            .sorted()
                == [
                    #"schema.$defs.d["$ref"]"#, "schema.$defs.e.pattern", "schema.$defs.f",
                    "schema.allOf[1].type", "schema.allOf[2].minLength", "schema.dependencies.x[1]",
                    "schema.dependencies.y.type", #"schema.patternProperties["("]"#,
                    #"schema.patternProperties["("].type"#, "schema.patternProperties.x.maximum",
                    "schema.properties.a.type", #"schema.properties.b["$ref"]"#,
                    "schema.properties.c.minimum", "schema.propertyNames.type", #"schema["$ref"]"#,
                    "schema.tipe", "schema.type",
                ]
                .map { $0.replacing("schema.$defs", with: #"schema["$defs"]"#) }.sorted()
        )
    }

    @Test func `what is wrong is told once, however often it is named`() {
        #expect(
            places("{ properties: { a: { type: 1 }, b: { $ref: '#/properties/a' } } }")
                == ["schema.properties.a.type"]
        )
        let many = (0..<50).map { "d\($0): { type: 1 }" }.joined(separator: ", ")
        #expect(places("{ $defs: { \(many) } }").count == 20)
    }

    @Test func `a file with schemas tells all that is wrong in it`() {
        let found = faults(
            "{ $ref: 'schemas/a.json5', type: 'x' }",
            ["schemas/a.json5": "{ type: 'y',\n properties: { b: { type: 5 } } }"]
        )
        #expect(found.count == 3, "\(found)")
        let inFile = found.filter { $0.hasPrefix(#"schema["$ref"]: schemas/a.json5:"#) }
        #expect(inFile.count == 2 && inFile.contains { $0.contains(":2:") }, "\(found)")
    }

    // MARK: Schemas that refer to others

    /// Schemas of which each refers to the next, the last to none.
    private func chain(_ count: Int) -> String {
        let links = (0..<count).map {
            "d\($0): { $ref: '#/$defs/d\($0 + 1)' }"
        }
        return "{ $defs: { \(links.joined(separator: ", ")), d\(count): { type: 'string' } }, "
            + "properties: { a: { $ref: '#/$defs/d0' } } }"
    }

    @Test func `a long row of references is refused with its length, a cycle as one`() throws {
        _ = try schema(chain(63))
        #expect(
            faults(chain(64)).map { String($0.drop { $0 != ":" }) }
                == [": 65 schemas refer to each other in a row; the limit is 64"]
        )
        #expect(
            faults(chain(20_000)).map { String($0.drop { $0 != ":" }) }
                == [": 20001 schemas refer to each other in a row; the limit is 64"]
        )
        for text in [
            "{ $ref: '#' }", "{ properties: { a: { allOf: [ { $ref: '#/properties/a' } ] } } }",
            "{ $defs: { a: { not: { $ref: '#/$defs/b' } }, b: { $ref: '#/$defs/a' } } }",
        ] {
            let found = faults(text)
            #expect(found.count == 1, "\(found)")
            #expect(
                found.first?.hasSuffix(": it refers to itself without going into the value")
                    ?? false,
                "\(found)"
            )
        }
    }

    // MARK: What checking a value costs

    private func issues(_ schema: Schema, _ value: String) -> [ValidationIssue] {
        Array(value.utf8).withUnsafeBytes { schema.issues(of: $0, depthLimit: 512) }
    }

    @Test func `a value to which too many schemas apply inside each other is refused`() throws {
        let level = String(repeating: "{ allOf: [", count: 9)
        let end = String(repeating: "] }", count: 9)
        let schema = try schema(
            "{ $defs: { t: \(level) { items: { $ref: '#/$defs/t' } } \(end) }, $ref: '#/$defs/t' }"
        )
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(issues(schema, nested(100)) == [])
        let found = issues(schema, nested(400))
        #expect(found.map(\.rule) == ["depth"])
        #expect(found.first?.message == "more than 2000 schemas apply inside each other")
    }

    @Test func `what unique elements cost is counted in their bytes`() throws {
        let schema = try schema(
            "{ type: ['array', 'string', 'integer'], uniqueItems: true, items: { $ref: '#' } }"
        )
        let text = "\"" + String(repeating: "x", count: 1 << 20) + "\""
        func nested(_ depth: Int, _ rest: String) -> String {
            String(repeating: "[", count: depth) + text
                + String(repeating: "\(rest)]", count: depth)
        }
        // At each level the text is part of an element that is compared with another.
        #expect(issues(schema, nested(8, ",1")) == [])
        #expect(issues(schema, nested(400, ",1")).map(\.rule) == ["steps"])
        // One element alone is compared with nothing.
        #expect(issues(schema, nested(400, "")) == [])
        #expect(issues(schema, "[\(text),1,1]").map(\.rule) == ["uniqueItems"])
    }
}
