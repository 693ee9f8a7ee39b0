import Foundation
import StateJSON
import StateRules
import Testing

/// The schema of the configuration that editors use.
struct ConfigurationSchemaTests {
    private static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    @Test func `the file is what stated prints`() throws {
        let text = try String(
            contentsOf: Self.root.appending(path: "config/stated.schema.json"),
            encoding: .utf8
        )
        #expect(
            text == ConfigurationSchema.text,
            "stated --config-schema > config/stated.schema.json"
        )
    }

    @Test func `it knows each option that the configuration knows, and no other`() throws {
        let schema = try JSONValue(parsing: Array(ConfigurationSchema.text.utf8))
        let none = AccountDirectory(user: { _ in nil }, group: { _ in nil })
        /// The names that are known, by the error of one that is not.
        func known(_ text: String) -> Set<String> {
            let document = JSON5Document(Array(text.utf8))
            do throws(OptionFault) {
                _ = try Configuration(document.value, accounts: none)
                return []
            } catch {
                let words = "known options: "
                let found = error.all.compactMap {
                    $0.message.range(of: words).map { range in
                        error.all.first { $0.message.contains(words) }?.message[range.upperBound...]
                            ?? ""
                    }
                }
                return Set(
                    (found.first ?? "").split(separator: ",").map {
                        $0.trimmingCharacters(in: .whitespaces)
                    }
                )
            }
        }
        func names(_ path: String...) -> Set<String> {
            Set(
                path.reduce(schema) { ($0["properties"] ?? $0)[$1] ?? .null }["properties"]?.members
                    .keys.map { $0 } ?? []
            )
        }
        #expect(
            known("{ qqqqqqqqqq: 1 }") == Set(schema["properties"]?.members.keys.map { $0 } ?? [])
        )
        for group in ["socket", "limits", "history"] {
            #expect(known("{ \(group): { qqqqqqqqqqqqqqq: 1 } }") == names(group), "\(group)")
        }
        let rule = schema["properties"]?["rules"]?["items"]
        #expect(
            known("{ rules: [ { keys: 'a', qqqqqqqqqqqqqqq: 1 } ] }")
                == Set(rule?["properties"]?.members.keys.map { $0 } ?? [])
        )
        #expect(
            known("{ rules: [ { keys: 'a', limits: { qqqqqqqqqqqqqqq: 1 } } ] }")
                == Set(rule?["properties"]?["limits"]?["properties"]?.members.keys.map { $0 } ?? [])
        )
    }
}
