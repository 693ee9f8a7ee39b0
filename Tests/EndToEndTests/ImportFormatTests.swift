import StateClient
import StateEngine
import StateTestSupport
import Testing

/// Files as other programs and systems write them.
struct ImportFormatTests {
    let daemon: Daemon

    init() throws {
        daemon = try Daemon()
    }

    private func list() throws -> [String] {
        try Statectl.run(daemon, "list").lines.map { String($0) }
    }

    @Test func `line ends and byte order marks of Windows are no part of keys and values`() throws {
        let lines =
            "\u{FEFF}db/host = localhost\r\n\r\n# c\r\n{\"key\":\"db/port\",\"value\":\"1\"}\r\n"
        #expect(
            try Statectl.run(daemon, "import", "-", input: lines + "db/user = x\r").exitCode == 0
        )
        #expect(try list() == ["db/host = localhost", "db/port = 1", "db/user = x"])
        let steps = "\u{FEFF}check db/host 1\r\nset db/host = example\r\ndelete db/port\r\n"
        let result = try Statectl.run(daemon, "txn", "-", input: steps)
        #expect(result.exitCode == 0, "\(result)")
        #expect(try list() == ["db/host = example", "db/user = x"])
        let document = "\u{FEFF}{\r\n  \"db/\": {\r\n    \"host\": \"a\"\r\n  }\r\n}\r\n"
        #expect(try Statectl.run(daemon, "apply", "-", input: document).exitCode == 0)
        #expect(try list() == ["db/host = a", "db/user = x"])
    }

    @Test(arguments: [
        ["import", "-"], ["txn", "-"], ["apply", "-"],
    ])
    func `text in UTF-16 is refused with the way to convert it`(arguments: [String]) throws {
        let text: [UInt8] = [0xFF, 0xFE] + Array("a=1\r\n".utf8).flatMap { [$0, 0] }
        let result = try Statectl.run(["--socket", daemon.socketPath] + arguments, input: text)
        #expect(result.exitCode == 2)
        #expect(result.errorText.contains("iconv -f UTF-16 -t UTF-8"), "\(result)")
        #expect(try list().isEmpty)
    }
}
