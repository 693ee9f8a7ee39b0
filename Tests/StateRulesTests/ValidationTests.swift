import StateContainers
import StateEngine
import StateJSON
import StateRules
import Testing

/// A value with each of the library's wrappers that has a counterpart in a schema.
private struct Profile: Validatable, Codable, Hashable, Sendable {
    @Required var id: String? = "a"
    @Email var mail: String? = nil
    @Min(0) @Max(150) var age: Int? = nil
    @Min(-0.5) @Max(1.0) var share: Double? = nil
    @Matches("^[a-z]+$") var name: String? = nil
}

/// The library's wrappers and the words of a schema say the same of the same value.
struct ValidationTests {
    private static let schema = #"""
        {
          "type": "object", "required": ["id"],
          "properties": {
            "mail": {"format": "email"},
            "age": {"minimum": 0, "maximum": 150},
            "share": {"minimum": -0.5, "maximum": 1},
            "name": {"pattern": "^[a-z]+$"}
          }
        }
        """#

    fileprivate struct Row: Sendable, CustomTestStringConvertible {
        let change: @Sendable (inout Profile) -> Void
        /// The path, the rule and the message; nil where the value is good.
        let issue: String?

        init(_ issue: String?, _ change: @escaping @Sendable (inout Profile) -> Void) {
            (self.issue, self.change) = (issue, change)
        }

        var testDescription: String { issue ?? "good" }
    }

    fileprivate static let rows: [Row] = [
        Row(nil) { _ in },
        Row("id|required|a value is required") { $0.id = nil },
        Row(nil) { $0.mail = "ada@example.org" },
        Row("mail|format email|'ada' is not an e-mail address") { $0.mail = "ada" },
        Row("mail|format email|'' is not an e-mail address") { $0.mail = "" },
        Row("mail|format email|'é@b' is not an e-mail address") { $0.mail = "é@b" },
        Row("mail|format email|'a@-b' is not an e-mail address") { $0.mail = "a@-b" },
        Row(nil) { $0.age = 0 },
        Row(nil) { $0.age = 150 },
        Row("age|minimum 0|-1 is below 0") { $0.age = -1 },
        Row("age|maximum 150|151 is above 150") { $0.age = 151 },
        Row("age|maximum 150|9223372036854775807 is above 150") { $0.age = .max },
        Row("age|minimum 0|-9223372036854775808 is below 0") { $0.age = .min },
        Row(nil) { $0.share = 1 },
        Row(nil) { $0.share = -0.0 },
        Row(nil) { $0.share = -0.5 },
        Row("share|minimum -0.5|-0.51 is below -0.5") { $0.share = -0.51 },
        Row("share|minimum -0.5|-1 is below -0.5") { $0.share = -1 },
        Row("share|maximum 1|2 is above 1") { $0.share = 2 },
        Row("share|maximum 1|1.0000000000000002 is above 1") { $0.share = 1.0.nextUp },
        Row("share|maximum 1|1e+300 is above 1") { $0.share = 1e300 },
        Row(nil) { $0.name = "ada" },
        Row("name|pattern ^[a-z]+$|'' does not match ^[a-z]+$") { $0.name = "" },
        Row("name|pattern ^[a-z]+$|'Ada' does not match ^[a-z]+$") { $0.name = "Ada" },
        Row("name|pattern ^[a-z]+$|'a\\x0A' does not match ^[a-z]+$") { $0.name = "a\n" },
    ]

    @Test(arguments: rows)
    fileprivate func `the wrappers and the schema give the same issue`(row: Row) throws {
        var profile = Profile()
        row.change(&profile)
        let bytes = try #require(try StateCodec<Profile>.standard.encode(profile))
        let schema = try Schema(
            JSONValue(parsing: Array(Self.schema.utf8)),
            at: JSONPath()
        )
        let found = bytes.withUnsafeBytes { schema.issues(of: $0, depthLimit: 64) }
        #expect(found == profile.validate())
        #expect(
            found.map { "\($0.path)|\($0.rule)|\($0.message)" } == (row.issue.map { [$0] } ?? [])
        )
    }
}
