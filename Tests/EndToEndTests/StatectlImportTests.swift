import StateClient
import StateEngine
import StateTestSupport
import Testing

struct StatectlImportTests {
    let daemon: Daemon

    init() throws { daemon = try Daemon() }

    private func count() throws -> Int64 { try daemon.connect().count(of: .everything) }

    private func value(_ key: Key) throws -> String? {
        try daemon.connect().value(for: key).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func `lines of sysctl become keys below a prefix`() throws {
        let lines = """
            kernel.hostname = box
            kernel.core_pattern = |/usr/bin/core -p=%p -s = %s
            kernel.domainname =
            net.ipv4.ip_local_port_range = 32768\t60999

            # a note
            kernel.hostname = last
            """
        let result = try Statectl.run(
            daemon,
            "import",
            "--prefix",
            "sys/",
            "--dots",
            "-",
            input: lines
        )
        #expect(result.exitCode == 0)
        #expect(result.text.hasPrefix("5 entries in 1 commit; revision "))
        // Standard error is no terminal: no progress.
        #expect(result.error.isEmpty)
        #expect(try value("sys/kernel/hostname") == "last")
        #expect(try value("sys/kernel/core_pattern") == "|/usr/bin/core -p=%p -s = %s")
        #expect(try value("sys/kernel/domainname") == "")
        #expect(try value("sys/net/ipv4/ip_local_port_range") == "32768\t60999")
        #expect(try count() == 4)
    }

    @Test func `this machine's own settings are taken`() throws {
        let settings = try runCommand("sysctl", ["-a"])
        try #require(settings.lines.contains { $0.hasPrefix("kernel.ostype = Linux") })
        let result = try Statectl.run(
            daemon,
            "import",
            "--prefix",
            "kernel/",
            "--dots",
            "-",
            input: settings.text
        )
        #expect(result.exitCode == 0, "\(result)")
        #expect(try value("kernel/kernel/ostype") == "Linux")
        // A value of several lines; the kernel may be too old for it.
        let modes = try runCommand("sysctl", ["-n", "kernel.core_modes"])
        if modes.exitCode == 0 {
            #expect(try value("kernel/kernel/core_modes") == modes.lines.joined(separator: "\n"))
        }
    }

    @Test func `lines of sysctl with the same key are one value, and dots in names stay`() throws {
        // Names, and a tab at the end, as sysctl prints them; 999 lines before, so that the value is
        // at the end of a batch.
        let lines =
            (0..<998).map { "a.k\($0) = \($0)\n" }.joined()
                + """
                dev.cdrom.info = CD-ROM information, Id: cdrom.c 3.20 2003/12/17
                dev.cdrom.info =\("")
                dev.cdrom.info = drive name:\t
                dev.cdrom.info =   drive # of slots:\t1
                ; a comment of sysctl.d
                kernel.core_pattern = |/bin/sh -c "cat > /x\\n" \\
                net.ipv4.conf.eth0/100.forwarding = 1
                kernel/domain.name = example
                """
        let result = try Statectl.run(daemon, "import", "--dots", "-", input: lines)
        #expect(result.text.hasPrefix("1002 entries in 2 commits; "), "\(result)")
        #expect(
            try value("dev/cdrom/info")
                == "CD-ROM information, Id: cdrom.c 3.20 2003/12/17\n\ndrive name:\t\n  drive # of slots:\t1"
        )
        #expect(try value("kernel/core_pattern") == #"|/bin/sh -c "cat > /x\n" \"#)
        #expect(try value("net/ipv4/conf/eth0.100/forwarding") == "1")
        #expect(try value("kernel/domain.name") == "example")
    }

    @Test(arguments: [
        ("-net.ipv4.conf.all.x = 1", "sysctl.d"), ("net.ipv4.conf.*.x = 1", "sysctl.d"),
        ("-net.ipv4.conf.all.x", "expected 'name = value'"),
        ("$ sysctl -w a.b=1", "expected 'name = value'"),
        ("kernel.printk =   4", "more than one space"),
    ])
    func `what only sysctl.d has is refused with its line`(line: String, part: String) throws {
        let input = "a = 1\n\(line)\n"
        let result = try Statectl.run(daemon, "import", "--dots", "-", input: input)
        #expect(result.exitCode == 2)
        #expect(result.errorText.contains("line 2: "))
        #expect(result.errorText.contains(part))
        #expect(try count() == 0)
    }

    @Test func `a key in two lines in a row is refused, later the last line counts`() throws {
        let repeated = try Statectl.run(daemon, "import", "-", input: "a = 1\n# b\na = 2\n")
        #expect(repeated.exitCode == 2)
        #expect(repeated.errorText.contains("line 3: the key 'a' is in the line before, too"))
        #expect(repeated.errorText.contains("(nothing was stored)"))
        #expect(try Statectl.run(daemon, "import", "-", input: "a = 1\nb = 2\na = 3").exitCode == 0)
        #expect(try value("a") == "3")
    }

    @Test func `each thousand lines are one commit`() throws {
        let text = (0..<2_500).map { "k/\($0) = \($0)\n" }.joined()
        let before = try daemon.connect().set([], for: "z").revision
        let directory = try TemporaryDirectory()
        let path = try directory.write(text, to: "lines")
        let result = try Statectl.run(daemon, "import", path, "--json")
        #expect(result.text == "{\"revision\":\(before + 3),\"count\":2500,\"commits\":3}\n")
        let client = try daemon.connect()
        #expect(try client.entry(for: "k/999")?.revision == before + 1)
        #expect(try client.entry(for: "k/1000")?.revision == before + 2)
    }

    @Test(arguments: [
        ("no divider", "expected 'key = value'"),
        ("a/ = v", "ends in '/'"), (" = v", "at least 1 byte"),
        (#"{"key":"k"}"#, "value"), (#"{"key":"k","value":"v"#, "no closing quote"),
    ])
    func `a bad line is named by number and nothing of its batch is kept`(
        line: String,
        part: String
    ) throws {
        var lines = (0..<2_500).map { "k/\($0) = \($0)" }
        lines[1_233] = line
        let result = try Statectl.run(
            daemon,
            "import",
            "-",
            input: lines.joined(separator: "\n")
        )
        #expect(result.exitCode == 2)
        #expect(result.errorText.contains("line 1234: "))
        #expect(result.errorText.contains(part))
        #expect(result.errorText.contains("lines 1 to 1000 are stored"))
        #expect(try count() == 1_000)
    }

    @Test func `what the daemon refuses keeps nothing of its batch`() throws {
        let value = String(repeating: "x", count: 9 << 20)
        let text = (0..<1_500).map { $0 == 1_200 ? "k/\($0) = \(value)\n" : "k/\($0) = \($0)\n" }
        let result = try Statectl.run(daemon, "import", "-", input: text.joined())
        #expect(result.exitCode == 4)
        #expect(result.errorText.contains("TOOBIG lines 1001 to 1500:"))
        #expect(try count() == 1_000)
    }

    @Test func `an import of nothing is done`() throws {
        let result = try Statectl.run(daemon, "import", "-", input: "\n# nothing\n")
        #expect(result.exitCode == 0)
        #expect(result.text == "0 entries in 0 commits\n")
    }

    @Test func `what export prints, import reads back, whatever the bytes`() throws {
        var random = SplitMix(seed: 7)
        var values: [(key: Key, value: [UInt8])] = [
            ("text", Array("é \" \\ \n \u{9B}".utf8)), ("empty", []), ("a = b", [0x3D]),
            ("{k}", [0x7B]), ("#k", [0x23]), ("ünïcode/🎚", [0xF0, 0x9F, 0x8E, 0x9A]),
            ("quoted", Array("\"q\"".utf8)), (" spaces ", Array(" s ".utf8)),
            ("export a: b", Array("a # b \\".utf8)), ("[s]", Array("'".utf8)),
            (";c", Array("a\r".utf8)), ("!d", Array("#fff".utf8)), ("\u{FEFF}e", [0xFF]),
        ]
        for index in 0..<200 {
            values.append((Key(stringLiteral: "r/\(index)"), random.bytes(index)))
        }
        try daemon.connect().set(values)
        let exported = try Statectl.run(daemon, "export")
        #expect(exported.lines.count == values.count)
        let list = try Statectl.run(daemon, "list").text

        for (verb, text) in [("export", exported.text), ("list", list)] {
            let other = try Daemon()
            let result = try Statectl.run(other, "import", "-", input: text)
            #expect(result.exitCode == 0, "\(verb): \(result)")
            let client = try other.connect()
            for (key, value) in values { #expect(try client.value(for: key) == value) }
            #expect(try client.count(of: .everything) == Int64(values.count))
        }
    }

    @Test func `an export of a prefix goes below another`() throws {
        try daemon.connect().set([("audio/volume", [0x31]), ("video", [0x32])])
        let exported = try Statectl.run(daemon, "export", "audio/").text
        #expect(exported == "{\"key\":\"audio/volume\",\"value\":\"1\"}\n")
        _ = try Statectl.run(daemon, "import", "--prefix", "backup/", "-", input: exported)
        #expect(try value("backup/audio/volume") == "1")
        #expect(try count() == 3)
    }

    @Test func `values that are large together are taken and listed`() throws {
        let value = String(repeating: "v", count: 4 << 20)
        let text = (0..<8).map { "large/\($0) = \(value)\n" }.joined()
        #expect(try Statectl.run(daemon, "import", "-", input: text).exitCode == 0)
        #expect(try Statectl.run(daemon, "list").output.count == text.utf8.count)
    }

    @Test func `a terminal sees progress`() throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write(
            (0..<2_500).map { "k/\($0) = \($0)\n" }.joined(),
            to: "lines"
        )
        let result = try Statectl.runOnTerminal(daemon, "import \(path)")
        #expect(result.exitCode == 0)
        #expect(result.text.contains("\r1000 lines\r2000 lines\r2500 lines\r"))
        #expect(result.text.contains("2500 entries in 3 commits"))
    }
}
