import StateEngine
import StateJSON
import StateRules

/// Checks values against schemas, for `scripts/schema-suite` and `scripts/fuzz schema`.
///
/// Each line of its input is an object: `schema`; `data`, an array of values; `formats`, whether
/// formats are checked; and `files`, schemas by their addresses. For each line it prints a line: an
/// array with true or false for each value, or why the schema is refused, as a string.
@main
enum SchemaCheck {
    static func main() {
        while let line = readLine() {
            do {
                print(try results(of: try JSONValue(parsing: Array(line.utf8))))
            } catch {
                let text = JSONValue.string("\(error)")
                print((try? text.text()).map { String(decoding: $0, as: UTF8.self) } ?? "\"\"")
            }
        }
    }

    private static func results(of line: JSONValue) throws -> String {
        let files = line["files"]?.members ?? [:]
        let library = SchemaLibrary { address in
            guard let file = files[address] else { return nil }
            do { return .success(JSON5Document(try file.text())) } catch {
                return .failure(StateError(.err, "\(error)"))
            }
        }
        let schema = try Schema(
            line["schema"] ?? .null,
            at: JSONPath(),
            in: library,
            checksFormats: line["formats"] == true
        )
        guard case .array(let values)? = line["data"] else { return "[]" }
        let results = try values.map { value in
            schema.issues(of: try JSONDocument(try value.text())).isEmpty
        }
        return "[\(results.map { "\($0)" }.joined(separator: ","))]"
    }
}
