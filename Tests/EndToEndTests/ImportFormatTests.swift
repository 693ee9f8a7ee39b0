import StateClient
import StateEngine
import StateTestSupport
import Testing

/// Files as other programs and systems write them.
struct ImportFormatTests {
    let daemon: Daemon
    let directory: TemporaryDirectory

    init() throws {
        daemon = try Daemon()
        directory = try TemporaryDirectory()
    }

    private func list() throws -> [String] {
        try Statectl.run(daemon, "list").lines.map { String($0) }
    }

    private func `import`(
        _ text: String,
        as name: String,
        _ options: String...
    ) throws -> CommandResult {
        let path = try directory.write(text, to: name)
        let arguments = ["--socket", daemon.socketPath, "import", path] + options
        return try Statectl.run(arguments)
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
        ["import", "-"], ["txn", "-"], ["import", "-", "--format", "ini"], ["apply", "-"],
    ])
    func `text in UTF-16 is refused with the way to convert it`(arguments: [String]) throws {
        let text: [UInt8] = [0xFF, 0xFE] + Array("a=1\r\n".utf8).flatMap { [$0, 0] }
        let result = try Statectl.run(["--socket", daemon.socketPath] + arguments, input: text)
        #expect(result.exitCode == 2)
        #expect(result.errorText.contains("iconv -f UTF-16 -t UTF-8"), "\(result)")
        #expect(try list().isEmpty)
    }

    @Test func `a file of variables is read by its name`() throws {
        let text = """
            \u{FEFF}# application\r
            APP_NAME="My App"\r
            export APP_URL=http://localhost # local\r
            APP_KEY=\r
            PRIVATE_KEY="-----BEGIN-----\\nabc\\n"\r
            """
        #expect(try `import`(text, as: ".env", "--prefix", "web/").text.hasPrefix("4 entries"))
        #expect(
            try list() == [
                "web/APP_KEY = ", "web/APP_NAME = My App", "web/APP_URL = http://localhost",
                #"web/PRIVATE_KEY = -----BEGIN-----\nabc\n"#,
            ]
        )
        let lines = try `import`(text, as: ".env", "--format", "lines")
        #expect(lines.exitCode == 2)
        #expect(lines.errorText.contains("line 2: the quote would be part of the value"))
        #expect(lines.errorText.contains("--format env"))
    }

    @Test func `a file with sections is read by its name, a key of it once`() throws {
        let text =
            "[Desktop Entry]\nName = Files\nExec=\"files -w\"\n\n[net.ipv4]\nip_forward = 1\n"
        let options = ["--prefix", "x/", "--dots"]
        #expect(try `import`(text, as: "a.ini", options[0], options[1], options[2]).exitCode == 0)
        #expect(
            try list() == [
                "x/Desktop Entry/Exec = files -w", "x/Desktop Entry/Name = Files",
                "x/net/ipv4/ip_forward = 1",
            ]
        )
        let repeated = try `import`(text + "ip_forward = 2\n", as: "b.ini")
        #expect(repeated.exitCode == 2)
        #expect(repeated.errorText.contains("line 7: the key 'ip_forward' is in line 6 already"))
        let plain = try Statectl.run(daemon, "import", "-", input: text)
        #expect(plain.errorText.contains("line 1: '[' begins a section"))
    }

    @Test func `properties of Java are read by their name`() throws {
        let text = """
            # server
            server.address: 127.0.0.1
            distribution=https\\://example.org/a\\
                .zip
            greeting=Gr\\u00fc\\u00df Gott
            """
        #expect(try `import`(text, as: "app.properties", "--dots").exitCode == 0)
        #expect(
            try list() == [
                "distribution = https://example.org/a.zip", "greeting = Grüß Gott",
                "server/address = 127.0.0.1",
            ]
        )
    }

    @Test func `a file with one wrong line stores nothing, however long it is`() throws {
        let text = (0..<2_500).map { "k\($0)=\($0)\n" }.joined() + "k0=x\n"
        let result = try `import`(text, as: "long.properties")
        #expect(result.exitCode == 2)
        #expect(result.errorText.contains("line 2501: the key 'k0' is in line 1 already"))
        #expect(result.errorText.contains("(nothing was stored)"))
        let bad = try `import`(text.dropLast(5) + "k/=x\n", as: "bad.properties")
        #expect(bad.errorText.contains("line 2501: key 'k/' ends in '/'"))
        #expect(try list().isEmpty)
    }

    @Test func `a file of a format has a limit`() throws {
        let text = "A=" + String(repeating: "x", count: 4 << 20)
        let result = try `import`(text, as: "large.env")
        #expect(result.exitCode == 2)
        #expect(result.errorText.contains("has more than 4194304 bytes"))
    }

    @Test func `a format that there is not is refused`() throws {
        let unknown = try `import`("a = 1", as: "a", "--format", "toml")
        #expect(unknown.exitCode == 2)
        #expect(unknown.errorText.contains("lines, env, ini or properties, not 'toml'"))
        let json = try `import`("{}", as: "a", "--format", "json")
        #expect(json.errorText.contains("'statectl apply' reads a document of JSON"))
    }

    @Test func `a step of a transaction with spaces at the end of its key is refused`() throws {
        for step in ["delete k ", "set k  = v", "check k  0", "set k = \"v\""] {
            let result = try Statectl.run(daemon, "txn", "-", input: step)
            #expect(result.exitCode == 2, "\(step): \(result)")
            #expect(result.errorText.contains("line 1: "))
        }
    }
}
