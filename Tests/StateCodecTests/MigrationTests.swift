import StateContainers
import StateJSON
import Testing

/// Schemas that move from one version to the next.
@Suite struct MigrationTests {
    /// Version 1 had one name, version 2 two, version 3 has a list.
    private struct Person: Codable, Hashable, Sendable { var names: [String] }

    private struct Broken: Error {}

    private let codec = StateCodec<Person>.versioned(
        3,
        migrations: [
            StateMigration(from: 1) { value in
                guard case .string(let name)? = value["name"] else { throw Broken() }
                value["name"] = nil
                value["first"] = .string(name)
                value["last"] = ""
            },
            StateMigration(from: 2) { value in
                value = ["names": .array([value["first"] ?? "", value["last"] ?? ""])]
            },
        ]
    )

    @Test func `a value carries its version`() throws {
        #expect(try text(codec, Person(names: ["Ada"])) == #"{"$version":3,"names":["Ada"]}"#)
    }

    @Test(
        arguments: [
            (#"{"name":"Ada"}"#, 1), (#"{"$version":1,"name":"Ada"}"#, 1),
            (#"{"$version":2,"first":"Ada","last":""}"#, 2),
            (#"{"$version":3,"names":["Ada",""]}"#, nil),
        ] as [(String, Int?)]
    )
    func `an older value is migrated step by step, and says where from`(
        text: String,
        version: Int?
    ) throws {
        let stored = try codec.decodeStored(Array(text.utf8))
        #expect(stored.value == Person(names: ["Ada", ""]))
        #expect(stored.migratedFrom == version)
    }

    @Test func `a newer version is refused by name, by a codec without versions too`() {
        let text = Array(#"{"$version":4,"names":[]}"#.utf8)
        let error = #expect(throws: StateError.self) { try codec.decode(text) }
        #expect(error?.code == .newerFormat)
        #expect(error?.message == "the value has schema version 4; this program supports up to 3")
        let unversioned = #expect(throws: StateError.self) {
            try StateCodec<Person>.standard.decode(text)
        }
        #expect(unversioned?.code == .newerFormat)
        #expect(throws: StateError.self) { try StateCodec<[String: Int]>.standard.decode(text) }
    }

    @Test func `a version that is none is refused`() {
        for version in ["0", "-1", "\"2\"", "1.5", "null", "99999999999999999999"] {
            let text = #"{"$version":\#(version),"names":[]}"#
            let error = #expect(throws: StateError.self) { try codec.decode(Array(text.utf8)) }
            #expect(error?.code == .undecodable)
        }
    }

    @Test func `a failing step says which one`() {
        let error = #expect(throws: StateError.self) { try codec.decode(Array("{}".utf8)) }
        #expect(error?.code == .undecodable)
        #expect(error?.message.contains("from version 1 to 2 fails: Broken") == true)
    }

    @Test func `versions that are no longer migrated are refused`() {
        let late = StateCodec<Person>.versioned(3, migrations: [StateMigration(from: 2) { _ in }])
        let error = #expect(throws: StateError.self) { try late.decode(Array("{}".utf8)) }
        let sentence = "the value has schema version 1; this program migrates from version 2"
        #expect(error?.message == sentence)
    }

    @Test func `a value that is no object is wrapped with its version`() throws {
        let codec = StateCodec<Theme>.versioned(
            2,
            migrations: [StateMigration(from: 1) { if $0 == "black" { $0 = "dark" } }]
        )
        #expect(try text(codec, .dark) == #"{"$value":"dark","$version":2}"#)
        #expect(try codec.decode(codec.encode(.light)) == .light)
        let stored = try codec.decodeStored(Array("black".utf8))
        #expect(stored == (.dark, 1))
    }

    @Test func `an Optional of a versioned value is removed by nil`() throws {
        let codec = StateCodec<Int??>.versioned(2, migrations: [StateMigration(from: 1) { _ in }])
        for value: Int?? in [.none, .some(nil), 5] {
            #expect(try codec.decode(codec.encode(value)) == value)
        }
    }

    @Test func `bare numbers and Booleans reach a migration as such`() throws {
        for (text, value) in [
            ("5", JSONValue.number("5")), ("true", true), ("null", nil), ("dark", "dark"),
            ("\"q\"", "\"q\""), ("007", "007"), ("[1,{\"a\":null}]", [1, ["a": nil]]),
        ] {
            let codec = StateCodec<Bool>.versioned(
                2,
                migrations: [StateMigration(from: 1) { $0 = .bool($0 == value) }]
            )
            #expect(try codec.decode(Array(text.utf8)), "\(text)")
        }
    }

    @Test func `the names of the version are kept for it`() {
        expectUnencodable(["$version": 1], ["$version"])
        let codec = StateCodec<[String: Int]>.versioned(
            2,
            migrations: [StateMigration(from: 1) { _ in }]
        )
        #expect(throws: StateError.self) { try codec.encode(["$value": 1]) }
        #expect(throws: Never.self) { try codec.encode(["value": 1]) }
    }

    @Test func `the version is none of a dictionary's members`() throws {
        let codec = StateCodec<[String: Int]>.versioned(
            2,
            migrations: [StateMigration(from: 1) { _ in }]
        )
        #expect(try codec.decode(codec.encode(["a": 1])) == ["a": 1])
        #expect(try codec.decode(Array(#"{"$version":1,"a":1}"#.utf8)) == ["a": 1])
    }

    @Test func `a dry run says what would become of each entry`() {
        let texts = [
            ("a", #"{"$version":3,"names":[]}"#), ("b", #"{"name":"Ada"}"#), ("c", "{}"),
            ("d", #"{"$version":9}"#),
        ]
        let forecast = codec.forecast(texts.map { (Key(stringLiteral: $0.0), Array($0.1.utf8)) })
        #expect(forecast.map(\.key) == ["a", "b", "c", "d"])
        #expect(forecast[0].outcome == .unchanged)
        let bytes = Array(#"{"$version":3,"names":["Ada",""]}"#.utf8)
        #expect(forecast[1].outcome == .migrated(from: 1, bytes: bytes))
        guard case .failed(let broken) = forecast[2].outcome,
            case .failed(let newer) = forecast[3].outcome
        else {
            Issue.record("\(forecast)")
            return
        }
        #expect(broken.code == .undecodable)
        #expect(newer.code == .newerFormat)
    }

    @Test func `JSON comes back as it was, whatever the width of its numbers`() throws {
        let text = #"{"a":[1,2.50,1e400,null,true,"\u001f\"é"],"b":{}}"#
        #expect(try JSONValue(parsing: Array(text.utf8)).text() == Array(text.utf8))
        #expect(throws: StateError.self) { try JSONValue.number("five").text() }
        #expect(throws: StateError.self) { try JSONValue.number(" 5").text() }
    }

    private func text<T>(_ codec: StateCodec<T>, _ value: T) throws -> String {
        String(decoding: try #require(try codec.encode(value)), as: UTF8.self)
    }
}
