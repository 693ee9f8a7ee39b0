import StateEngine
import StateTestSupport
import StateWire
import Testing

/// What the daemon tells of its rules, and of what they refuse.
struct RuleVerbTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func configure(_ text: String) throws -> String {
        try directory.write(text, to: "stated.json5")
    }

    @Test func `explain tells each option with the rule that counts, and the defaults`() throws {
        let daemon = try Daemon(
            "--config",
            configure(
                """
                { limits: { valueBytes: "1MiB" }, rules: [
                  { keys: "audio/", schema: { type: "number", minimum: 0 }, limits: { depth: 3 } },
                  { keys: "audio/volume", limits: { valueBytes: "4KiB" } },
                  { keys: "a*", readonly: true, schema: { type: 'string' } },
                ] }
                """
            )
        )
        let volume = try Statectl.run(daemon, "explain", "audio/volume", "--json").lines
        #expect(
            volume.prefix(4) == [
                #"{"option":"limits.valueBytes","value":"4KiB","rule":2,"keys":"audio/volume","source":"3"}"#,
                #"{"option":"schema","value":{"minimum":0,"type":"number"},"rule":1,"keys":"audio/","source":"2"}"#,
                #"{"option":"limits.depth","value":3,"rule":1,"keys":"audio/","source":"2"}"#,
                #"{"option":"readonly","value":true,"rule":3,"keys":"a*","source":"4"}"#,
            ]
        )
        #expect(volume.contains(#"{"option":"backing","value":"sqlite","rule":0}"#))
        #expect(volume.count { $0.contains(#""option":"limits.valueBytes""#) } == 1)
        let other = try Statectl.run(daemon, "explain", "b").lines
        #expect(other[0].split(separator: " ") == ["OPTION", "VALUE", "RULE"])
        #expect(other.dropFirst().allSatisfy { $0.hasSuffix(" default") })
        #expect(
            other.contains {
                $0.split(separator: " ").prefix(2) == ["limits.valueBytes", "1048576"]
            }
        )
        #expect(try Statectl.run(daemon, "explain", "a/").exitCode == 2)
        let under = try Statectl.run(daemon, "explain", "ab", "--json").lines
        #expect(under.contains(#"{"option":"limits.valueBytes","value":262144,"rule":0}"#))
    }

    @Test func `rules are listed with their numbers, as they are written`() throws {
        let daemon = try Daemon(
            "--config",
            configure(
                "{ rules: [ { keys: 'é/', writeOnce: true, readonly: false }, { keys: 'x' } ] }"
            )
        )
        let json = try Statectl.run(daemon, "rules", "--json").text
        #expect(
            json == """
                {"rule":1,"keys":"é/","options":{"readonly":false,"writeOnce":true},"source":"1"}
                {"rule":2,"keys":"x","options":{},"source":"1"}

                """
        )
        let first = try Statectl.run(daemon, "rules").lines.first
        #expect(first?.hasPrefix("RULE  LINE  KEYS") == true)
        #expect(try Statectl.run(Daemon(), "rules").text.isEmpty)
    }

    @Test func `check lists what a new rule refuses, and exits 4`() throws {
        let daemon = try Daemon("--config", configure("{}"))
        for (key, value) in [("a/1", "5"), ("a/2", "0.5"), ("a/3", "x\ty"), ("b", "5")] {
            _ = try Statectl.run(daemon, "set", key, value)
        }
        #expect(try Statectl.run(daemon, "check").text == "4 checked: nothing is refused\n")
        _ = try configure(
            """
            { rules: [ { keys: 'a/', schema: { type: 'number', maximum: 1 } },
              { keys: 'b', readonly: true } ] }
            """
        )
        _ = try Statectl.run(daemon, "reload")
        let found = try Statectl.run(daemon, "check")
        #expect(found.exitCode == 4 && found.error.isEmpty)
        #expect(
            found.text == #"""
                1	a/1	key 'a/1': 5 is above 1 (rule 1, line 1, schema)
                3	a/3	key 'a/3': 'x\x09y' is not of type number (rule 1, line 1, schema)
                4 checked: 2 refused

                """#
        )
        let json = try Statectl.run(daemon, "check", "a/1", "--json")
        #expect(json.exitCode == 4)
        #expect(
            json.text
                == #"{"revision":1,"key":"a/1","issue":"key 'a/1': 5 is above 1 (rule 1, line 1, schema)"}"#
                + "\n"
        )
        #expect(try Statectl.run(daemon, "check", "a/2").exitCode == 0)
        #expect(try Statectl.run(daemon, "get", "a/1").text == "5\n")
        #expect(try Statectl.run(daemon, "set", "a/1", "1").exitCode == 0)
        #expect(try Statectl.run(daemon, "check", "a/[12]").exitCode == 0)
    }

    @Test func `a check goes through many values in pages that keep nobody waiting`() throws {
        let daemon = try Daemon("--config", configure("{}"))
        let lines = (0..<30_000).map { "k/\(100_000 + $0) = \($0)" }.joined(separator: "\n")
        #expect(try Statectl.run(daemon, "import", "-", input: lines).exitCode == 0)
        _ = try configure(
            "{ rules: [ { keys: 'k/', schema: { type: 'integer', multipleOf: 1000 } } ] }"
        )
        _ = try Statectl.run(daemon, "reload")
        let found = try Statectl.run(daemon, "check", "--json")
        #expect(found.lines.count == 29_970)
        #expect(try Statectl.run(daemon, "check", "x*").text == "0 checked: nothing is refused\n")

        let peer = try Peer(daemon.socketPath)
        _ = try peer.ask("HELLO 3")
        var (next, pageCount, refusedCount) = ([UInt8](), 0, 0)
        repeat {
            let page = try peer.ask(
                ["STATE.CHECK", "/", "AFTER"].map { Array($0.utf8) } + [next]
                    + ["LIMIT", "100"].map { Array($0.utf8) }
            )
            let rows = try #require(page["refused"]?.elements)
            #expect(rows.count <= 100)
            (pageCount, refusedCount) = (pageCount + 1, refusedCount + rows.count)
            next = page["next"]?.byteValue ?? []
        } while !next.isEmpty
        #expect(refusedCount == 29_970 && pageCount >= 300)
        // Keys that are compared with a pattern and do not match take slices of time, not pages.
        #expect(try peer.ask("STATE.CHECK *x")["next"] == .null)
    }
}
