import StateEngine
import StateTestSupport
import Testing

struct StatectlTests {
    let daemon: Daemon

    init() throws { daemon = try Daemon() }

    @Test func `get prints the value and a newline, raw the value alone`() throws {
        let set = try Statectl.run(daemon, "set", "audio/volume", "0.7")
        #expect(set.exitCode == 0)
        #expect(set.text.isEmpty)
        #expect(try Statectl.run(daemon, "get", "audio/volume").text == "0.7\n")
        #expect(try Statectl.run(daemon, "get", "audio/volume", "--raw").text == "0.7")
    }

    @Test func `an absent key prints nothing and exits 1`() throws {
        for arguments in [["get", "k"], ["get", "k", "--long"], ["get", "k", "--json"]] {
            let result = try Statectl.run(["--socket", daemon.socketPath] + arguments)
            #expect(result.exitCode == 1)
            #expect(result.output.isEmpty && result.error.isEmpty)
        }
    }

    @Test func `an empty value is a value`() throws {
        _ = try Statectl.run(daemon, "set", "k", "")
        let result = try Statectl.run(daemon, "get", "k")
        #expect(result.exitCode == 0)
        #expect(result.text == "\n")
    }

    @Test func `a value of any bytes goes in as an argument and comes out`() throws {
        let value = Array(UInt8(1)...UInt8(255))
        let words = ["set", "k"].map { Array($0.utf8) }
        #expect(try Statectl.run(daemon, bytes: words + [value]).exitCode == 0)
        #expect(try Statectl.run(daemon, "get", "k", "--raw").output == value)
    }

    @Test(arguments: [
        ("", "", ""), ("a", "a", "a"), ("a\n", "a", "a\n"), ("a\n\n", "a\n", "a\n\n"),
        ("\n", "", "\n"), ("\0b\n", "\0b", "\0b\n"),
    ])
    func `standard input loses one final newline, but for raw`(
        input: String,
        value: String,
        raw: String
    ) throws {
        _ = try Statectl.run(daemon, "set", "k", "-", input: input)
        #expect(try Statectl.run(daemon, "get", "k", "--raw").text == value)
        _ = try Statectl.run(daemon, "set", "k", "-", "--raw", input: input)
        #expect(try Statectl.run(daemon, "get", "k", "--raw").text == raw)
    }

    @Test func `a value may begin with a dash`() throws {
        _ = try Statectl.run(daemon, "set", "k", "-5")
        #expect(try Statectl.run(daemon, "get", "k").text == "-5\n")
        _ = try Statectl.run(daemon, "set", "k", "--", "--json")
        #expect(try Statectl.run(daemon, "get", "k").text == "--json\n")
    }

    @Test func `a key is literal in get, set and delete`() throws {
        for key in ["a*", "ab", "[a]", #"a\b"#, "dryrun"] {
            #expect(try Statectl.run(daemon, "set", key, key).exitCode == 0)
        }
        #expect(try Statectl.run(daemon, "get", "a*").text == "a*\n")
        for key in ["a*", "[a]", #"a\b"#, "dryrun"] {
            #expect(try Statectl.run(daemon, "delete", key).text == "1\n")
        }
        #expect(try Statectl.run(daemon, "list", "--keys").lines == ["ab"])
    }

    @Test(arguments: [
        (["--if-absent"], 4), (["--if-present"], 0), (["--if-revision", "0"], 4),
        (["--if-value", "old"], 0), (["--if-value=other"], 4),
    ])
    func `a condition of set decides`(options: [String], exitCode: Int) throws {
        _ = try Statectl.run(daemon, "set", "k", "old")
        let arguments = ["--socket", daemon.socketPath, "set", "k", "new"] + options
        let result = try Statectl.run(arguments)
        #expect(Int(result.exitCode) == exitCode)
        #expect(result.errorText.contains("CONFLICT") == (exitCode == 4))
        let value = try Statectl.run(daemon, "get", "k").text
        #expect(value == (exitCode == 0 ? "new\n" : "old\n"))
    }

    @Test(arguments: [("memory", "memory"), ("synced", "synced")])
    func `set waits for the durability that is asked for`(level: String, reached: String) throws {
        let set = try Statectl.run(daemon, "set", "k", "v", "--durability", level, "--json")
        #expect(set.exitCode == 0)
        #expect(set.text == #"{"revision":1,"durability":"\#(reached)"}"# + "\n")
        let wrong = try Statectl.run(daemon, "set", "k", "v", "--durability", "written")
        #expect(wrong.exitCode == 2)
    }

    @Test func `the revision that set told is the one that if-revision takes`() throws {
        let first = try Statectl.run(daemon, "set", "k", "1", "--json").text
        let digits = first.drop { !$0.isNumber }.prefix { $0.isNumber }
        #expect(first == "{\"revision\":\(digits),\"durability\":\"synced\"}\n")
        let set = try Statectl.run(daemon, "set", "k", "2", "--if-revision", String(digits))
        #expect(set.exitCode == 0)
        let again = try Statectl.run(daemon, "set", "k", "3", "--if-revision", String(digits))
        #expect(again.exitCode == 4)
    }

    @Test func `delete takes a prefix and leaves its namesakes`() throws {
        for key in ["test", "test/a", "test/b/c", "test2", "test2/a"] {
            _ = try Statectl.run(daemon, "set", key, "v")
        }
        #expect(try Statectl.run(daemon, "delete", "test/", "--dry-run").text == "2\n")
        #expect(try Statectl.run(daemon, "list", "--count").text == "5\n")
        #expect(try Statectl.run(daemon, "delete", "test/").text == "2\n")
        #expect(try Statectl.run(daemon, "list", "--keys").lines == ["test", "test2", "test2/a"])
        let nothing = try Statectl.run(daemon, "delete", "test/")
        #expect(nothing.exitCode == 0)
        #expect(nothing.text == "0\n")
        #expect(try Statectl.run(daemon, "delete", "/").exitCode == 2)
        #expect(try Statectl.run(daemon, "delete", "--all", "--json").text.contains("\"count\":3"))
    }

    @Test func `list prints keys in order, and every form of them`() throws {
        for (key, value) in [("b", "2"), ("a/x", "1"), ("c", "")] {
            _ = try Statectl.run(daemon, "set", key, value)
        }
        #expect(try Statectl.run(daemon, "list").text == "a/x = 1\nb = 2\nc = \n")
        #expect(try Statectl.run(daemon, "list", "a/").text == "a/x = 1\n")
        #expect(try Statectl.run(daemon, "list", "[bc]", "--keys").text == "b\nc\n")
        #expect(try Statectl.run(daemon, "list", "--count").text == "3\n")
        #expect(try Statectl.run(daemon, "list", "none/").text.isEmpty)
        let long = try Statectl.run(daemon, "list", "b", "--long").text.split(separator: "\t")
        #expect(Int(long[0]) != nil && long[5].hasSuffix("\n"))
        #expect(long[1...4] == ["b", "2", "sqlite", "number"])
        let json = try Statectl.run(daemon, "list", "b", "--json").text
        #expect(json == "{\"revision\":\(long[0]),\"key\":\"b\",\"value\":\"2\"}\n")
    }

    @Test func `a listing of many pages has each key once and in order`() throws {
        let lines = (0..<2_500).map { "k\(10_000 + $0) = \($0)" }
        let text = lines.joined(separator: "\n")
        #expect(try Statectl.run(daemon, "import", "-", input: text).exitCode == 0)
        #expect(try Statectl.run(daemon, "list").lines == lines)
    }

    @Test func `an escape sequence does not reach a terminal raw`() throws {
        let value = "\u{1B}[31mred\u{9B}\n\\"
        _ = try Statectl.run(daemon, "set", "k", value)
        let escaped = #"\x1B[31mred\xC2\x9B\n\\"#
        #expect(try Statectl.run(daemon, "list").text == "k = \(escaped)\n")
        #expect(try Statectl.run(daemon, "get", "k").text == value + "\n")
        #expect(try Statectl.runOnTerminal(daemon, "get k").text == escaped + "\r\n")
    }

    @Test func `json has plain strings, and base64 for what is no text`() throws {
        _ = try Statectl.run(daemon, "set", "text", "é\n")
        let words = ["set", "bytes"].map { Array($0.utf8) }
        _ = try Statectl.run(daemon, bytes: words + [[0xFF, 0xFE]])
        let text = try Statectl.run(daemon, "get", "text", "--json").text
        #expect(text.contains(#""key":"text","value":"é\n","created":"#))
        #expect(text.contains(#""version":1,"#) && text.contains(#""durability":"synced"}"#))
        #expect(text.contains(#""expires":null"#) && text.contains(":statectl:"))
        let bytes = try Statectl.run(daemon, "get", "bytes", "--json").text
        #expect(bytes.contains(#""base64":"//4=""#) && !bytes.contains("value"))
    }

    @Test func `long shows what the daemon keeps of a key`() throws {
        _ = try Statectl.run(daemon, "set", "k", "v\n")
        let lines = try Statectl.run(daemon, "get", "k", "--long").lines
        let names = lines.map { String($0.prefix { $0 != ":" }) }
        #expect(
            names == [
                "key", "value", "revision", "created", "version", "time", "owner", "by", "expires",
                "durability",
            ]
        )
        #expect(lines[1] == #"value:      v\n"#)
        #expect(lines[8] == "expires:    never")
    }

    @Test func `status is aligned, and one object with json`() throws {
        let lines = try Statectl.run(daemon, "status").lines
        #expect(lines.contains { $0.hasPrefix("version:") })
        #expect(lines.contains { $0.hasPrefix("epoch:") })
        let columns = lines.map { line in
            let name = line.prefix { $0 != ":" }
            return name.count + 1 + line.dropFirst(name.count + 1).prefix { $0 == " " }.count
        }
        #expect(Set(columns).count == 1)
        let json = try Statectl.run(daemon, "status", "--json")
        #expect(json.lines.count == 1)
        #expect(json.text.hasPrefix("{\"") && json.text.contains("\"revision\":"))
    }
}
