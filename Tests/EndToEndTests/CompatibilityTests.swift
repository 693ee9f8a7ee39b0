import Glibc
import StateTestSupport
import StateWire
import Testing

/// What the manual says of each verb of Redis is what the program says.
struct CompatibilityTests {
    @Test func `the table of the protocol page is that of COMMAND DOCS`() throws {
        let page = try #require(readText(packageRoot + "/docs/protocol.md"))
        let sections = page.split(separator: "\n### Compared with Redis\n")
        let section = try #require(sections.last?.prefix { $0 != "#" })
        let rows = section.split(separator: "\n").filter { $0.hasPrefix("| `") }.map(String.init)
        var expected = VerbDocumentation.all.compactMap { documentation in
            documentation.comparison.map {
                "| `\(documentation.verb.rawValue.uppercased())` | \($0) |"
            }
        }
        expected += RefusedCommands.all.map { refused in
            let names = refused.names.map { "`\($0)`" }.joined(separator: " ")
            return "| \(names) | refused: \(refused.reason) |"
        }
        #expect(Set(rows) == Set(expected))
        #expect(rows.count == expected.count)
    }

    private func readText(_ path: String) -> String? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var (text, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
        while case let count = fread(&buffer, 1, buffer.count, file), count > 0 {
            text += buffer[..<count]
        }
        return String(decoding: text, as: UTF8.self)
    }
}
