import StateClient
import StateEngine
import StateTestSupport
import Testing

/// Several keys at once, numbers, transactions and trees from the command line.
struct StatectlKeysTests {
    private let daemon: Daemon

    init() throws { daemon = try Daemon() }

    private func run(_ arguments: String..., input: String = "") throws -> CommandResult {
        try Statectl.run(["--socket", daemon.socketPath] + arguments, input: Array(input.utf8))
    }

    @Test func `set with = sets all in one commit`() throws {
        let result = try run("set", "a=1", "b=x=y", "c=", "d=-", "--json")
        #expect(result.exitCode == 0 && result.text.contains("\"count\":4"))
        #expect(try run("get", "a", "b", "c", "d").lines == ["a = 1", "b = x=y", "c = ", "d = -"])
        let client = try daemon.connect()
        let revisions = try ["a", "b", "c", "d"].map { try client.entry(for: Key($0))?.revision }
        #expect(Set(revisions).count == 1)
    }

    @Test func `set with a key and a value takes = in the value, and in the key if it is literal`()
        throws
    {
        #expect(try run("set", "url", "a=b").exitCode == 0)
        #expect(try run("get", "url").text == "a=b\n")
        #expect(try run("set", "--literal", "k=1", "v").exitCode == 0)
        #expect(try run("get", "k=1").text == "v\n")
        for words in [["a=1", "b"], ["a", "b=1", "c=2"], ["=1"], ["a"]] {
            let result = try Statectl.run(["--socket", daemon.socketPath, "set"] + words)
            #expect(result.exitCode == 2 && !result.error.isEmpty, "\(words)")
        }
        #expect(try run("set", "a=1", "--if-absent").errorText.contains("--if-absent"))
        #expect(try run("list", "--keys").lines == ["k=1", "url"])
    }

    @Test func `set with = takes a time for all`() throws {
        #expect(try run("set", "a=1", "b=2", "--ttl", "90m").exitCode == 0)
        for key in ["a", "b"] { #expect(try run("ttl", key).text.hasPrefix("1h")) }
    }

    @Test func `get of several keys exits 1 if one is absent, and prints the others`() throws {
        _ = try run("set", "a=1", "c=3")
        let result = try run("get", "a", "b", "c")
        #expect(result.exitCode == 1 && result.lines == ["a = 1", "c = 3"])
        #expect(
            try run("get", "c", "a", "--json").lines
                == [#"{"key":"c","value":"3"}"#, #"{"key":"a","value":"1"}"#]
        )
        #expect(try run("get", "a", "c", "--raw").exitCode == 2)
    }

    @Test func `incr adds, and refuses what is no number`() throws {
        #expect(try run("incr", "n").text == "1\n")
        #expect(try run("incr", "n", "41").text == "42\n")
        #expect(try run("incr", "n", "-50", "--json").text == "{\"key\":\"n\",\"value\":-8}\n")
        #expect(try run("incr", "n", "x").exitCode == 2)
        _ = try run("set", "text", "x")
        #expect(try run("incr", "text").exitCode == 2)
        #expect(try run("get", "n", "text").lines == ["n = -8", "text = x"])
    }

    @Test func `a transaction happens whole or not at all`() throws {
        _ = try run("set", "old", "1")
        let revision = try #require(try daemon.connect().entry(for: "old")?.revision)
        let lines = """
            # a comment

            set new = a b
            set tab = \\t
            set  {"key":"json","value":"j"}
            delete old

            """
        // Checks see what the lines before them have done.
        let refused = try run("txn", "-", input: lines + "check old \(revision)\n")
        #expect(refused.exitCode == 4 && refused.errorText.contains("CONFLICT key 'old' is absent"))
        #expect(try run("list").text == "old = 1\n")
        let checks = "check old \(revision)\ncheck none absent\n"
        let result = try run("txn", "-", input: checks + lines)
        #expect(result.text == "4\n", "\(result)")
        #expect(try run("list").lines == ["json = j", "new = a b", "tab = \\t"])
    }

    @Test(arguments: [
        ("sett a = 1", "line 2: expected set, delete or check, not 'sett'"),
        ("set a = 1\nset b", "line 3: expected 'key = value'"),
        ("check a", "line 2: expected 'check KEY REVISION' or 'check KEY absent'"),
        ("check a -1", "line 2: expected a revision or 'absent' at the end, not '-1'"),
        ("delete a/", "line 2:"),
    ]) func `a line of another form is named, and nothing is stored`(
        lines: String,
        words: String
    ) throws {
        let result = try run("txn", "-", input: "set first = 1\n" + lines)
        #expect(result.exitCode == 2)
        #expect(result.errorText.contains(words), "\(result.errorText)")
        #expect(try run("list").text == "")
    }

    @Test func `a tree has each prefix once, and children the next level`() throws {
        _ = try run("set", "a=0", "a/b=1", "a/c/d=2", "a/c/e/f=3", "a/g=4", "h=5")
        #expect(
            try run("tree").text == """
                a = 0
                a/
                  b = 1
                  c/
                    d = 2
                    e/
                      f = 3
                  g = 4
                h = 5

                """
        )
        #expect(try run("tree", "a/", "--depth", "1").lines == ["b = 1", "c/", "g = 4"])
        #expect(try run("list", "a/", "--children").lines == ["a/b", "a/c/", "a/g"])
        #expect(try run("list", "--children", "--json").lines.first == #"{"name":"a"}"#)
        #expect(try run("list", "a", "--children").exitCode == 2)
        #expect(try run("tree", "a*").exitCode == 2)
    }

    @Test func `ping says whether there is a daemon`() throws {
        #expect(try run("ping").text == "PONG\n")
        try daemon.stop()
        #expect(try run("ping").exitCode == 3)
    }
}
