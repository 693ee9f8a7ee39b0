import Glibc
import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// Looking back and going back from the command line.
struct StatectlHistoryTests {
    let daemon: Daemon

    init() throws {
        daemon = try Daemon()
        let client = try daemon.connect()
        try client.set(Array("1".utf8), for: "a/x")
        try client.set(Array("2".utf8), for: "a/y")
        try client.set([(key: "a/x", value: Array("tab\t\\".utf8)), (key: "b", value: [0xFF])])
        try client.delete([Pattern("a/y")])
        try client.set([], for: "a/z")
    }

    @Test func `get and list tell what was at a revision`() throws {
        #expect(try Statectl.run(daemon, "get", "a/x", "--at", "2").text == "1\n")
        #expect(try Statectl.run(daemon, "get", "a/x", "--at", "3", "--raw").text == "tab\t\\")
        let long = try Statectl.run(daemon, "get", "a/y", "--at", "3", "--long").lines
        #expect(long.contains("revision:   2"))
        let json = try Statectl.run(daemon, "get", "a/x", "--at", "1", "--json").text
        #expect(json.hasPrefix(#"{"revision":1,"key":"a/x","value":"1","created":1,"version":1,"#))
        #expect(try Statectl.run(daemon, "list", "--at", "2").text == "a/x = 1\na/y = 2\n")
        #expect(
            try Statectl.run(daemon, "list", "a/", "--at", "3").text
                == "a/x = tab\\t\\\\\na/y = 2\n"
        )
        #expect(try Statectl.run(daemon, "list", "--at", "4", "--keys").text == "a/x\nb\n")
        #expect(try Statectl.run(daemon, "list", "--at", "0", "--count").text == "0\n")
        let absent = try Statectl.run(daemon, "get", "a/y", "--at", "4")
        #expect(absent.exitCode == 1 && absent.output.isEmpty && absent.error.isEmpty)
    }

    @Test func `history prints the changes of a key, newest first`() throws {
        let lines = try Statectl.run(daemon, "history", "a/y").lines
            .map { $0.split(separator: "\t") }
        try #require(lines.map(\.count) == [3, 4])
        #expect(lines.map { $0[0] } == ["4", "2"])
        #expect(lines.map { $0[1] } == ["delete", "set"])
        #expect(lines[1][3] == "2")
        #expect(
            lines[0][2].wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d/) != nil
        )
        let escaped = try Statectl.run(daemon, "history", "a/x", "--limit", "1").text
        #expect(escaped.hasPrefix("3\tset\t") && escaped.hasSuffix("\ttab\\t\\\\\n"))
        let json = try Statectl.run(daemon, "history", "b", "--json").text
        #expect(json.hasPrefix(#"{"revision":3,"op":"set","key":"b","base64":"/w==","time":"#))
        let none = try Statectl.run(daemon, "history", "none")
        #expect(none.exitCode == 1 && none.output.isEmpty)
    }

    @Test func `the history of a key is whole however many pages it takes`() throws {
        let client = try daemon.connect()
        _ = try client.pipeline(count: 2_300, .write) { request in
            for number in 0..<2_300 { request.append(words: "SET", "many", String(number)) }
        }
        let values = try Statectl.run(daemon, "history", "many").lines
            .map { $0.split(separator: "\t").last.map(String.init) }
        #expect(values == (0..<2_300).reversed().map(String.init))
        #expect(try Statectl.run(daemon, "blame", "many", "--limit", "1001").lines.count == 1_001)
    }

    @Test func `blame prints who changed a key, when, and with which process`() throws {
        _ = try Statectl.run(daemon, "set", "k", "1")
        let named = try Client(socket: daemon.socketPath, name: "mixer")
        _ = try named.delete([Pattern("k")])
        let environment = ["TZ": "XYZ-5:30"]
        let arguments = ["--socket", daemon.socketPath, "blame", "k"]
        let lines = try Statectl.run(arguments, environment: environment).lines
            .map { $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init) }
        try #require(lines.map(\.count) == [7, 7])
        let user = String(cString: getpwuid(geteuid()).pointee.pw_name)
        #expect(lines[0][1] == "delete" && lines[1][1] == "set")
        #expect(lines.map { $0[3] } == [user, user])
        #expect(lines[0][4] == String(getpid()) && lines[0][6] == "mixer")
        #expect(lines[1][5] == "statectl" && lines[1][6] == "")
        // Both have the same time, with the zone in which it is.
        let history = ["--socket", daemon.socketPath, "history", "k", "--limit", "1"]
        let local = try Statectl.run(history, environment: environment).text
        #expect(lines[0][2].hasSuffix("+05:30"))
        #expect(local.split(separator: "\t")[2] == lines[0][2])
        let west = try Statectl.run(history, environment: ["TZ": "XYZ3:30"]).text
        #expect(west.split(separator: "\t")[2].hasSuffix("-03:30"))
        let json = try Statectl.run(daemon, "blame", "k", "--limit", "1", "--json").text
        #expect(json.hasPrefix(#"{"revision":7,"op":"delete","key":"k","time":"#))
        #expect(json.contains(#","uid":\#(geteuid()),"user":"\#(user)","#))
        #expect(json.hasSuffix(#","client":"mixer"}"# + "\n"))
    }

    @Test func `diff prints what is not the same at two revisions`() throws {
        #expect(
            try Statectl.run(daemon, "diff", "2").text
                == "- a/x = 1\n+ a/x = tab\\t\\\\\n- a/y = 2\n+ a/z = \n+ b = \\xFF\n"
        )
        #expect(try Statectl.run(daemon, "diff", "1", "2").text == "+ a/y = 2\n")
        #expect(try Statectl.run(daemon, "diff", "2", "3", "a/").lines.count == 2)
        #expect(try Statectl.run(daemon, "diff", "1", "a/y").text.isEmpty, "it came and went")
        #expect(try Statectl.run(daemon, "diff", "3", "3").text.isEmpty)
        #expect(
            try Statectl.run(daemon, "diff", "2", "b", "--json").text
                == #"{"revision":3,"op":"set","key":"b","base64":"/w==","previous":null}"# + "\n"
        )
        #expect(
            try Statectl.run(daemon, "diff", "2", "4", "a/y", "--json").text
                == #"{"revision":4,"op":"delete","key":"a/y","previous":"2"}"# + "\n"
        )
        let future = try Statectl.run(daemon, "diff", "2", "9")
        #expect(future.exitCode == 2)
        #expect(future.errorText.contains("revision 9 is above the current revision 5"))
        #expect(try Statectl.run(daemon, "diff", "3", "2").exitCode == 2)
        #expect(try Statectl.run(daemon, "diff", "a/").exitCode == 2)
    }

    @Test func `revert gives exactly what list --at tells, and back again`() throws {
        let before = try Statectl.run(daemon, "list").text
        let then = try Statectl.run(daemon, "list", "a/", "--at", "2").text
        let dry = try Statectl.run(daemon, "revert", "a/", "--to", "2", "--dry-run").text
        #expect(dry == "- a/x = tab\\t\\\\\n+ a/x = 1\n+ a/y = 2\n- a/z = \n")
        #expect(try Statectl.run(daemon, "list").text == before)
        #expect(try Statectl.run(daemon, "revert", "a/", "--to", "2").text == "3\n")
        #expect(try Statectl.run(daemon, "list", "a/").text == then)
        #expect(
            try Statectl.run(daemon, "revert", "a/", "--to", "5", "--json").text
                == "{\"revision\":7,\"count\":3}\n"
        )
        #expect(try Statectl.run(daemon, "list").text == before)
        #expect(try Statectl.run(daemon, "revert", "a/", "--to", "7").text == "0\n")
    }

    @Test func `everything is reverted only where that is said`() throws {
        for arguments in [["/"], [], ["a/", "--all"]] {
            let base = ["--socket", daemon.socketPath, "revert", "--to", "0"]
            #expect(try Statectl.run(base + arguments).exitCode == 2)
        }
        #expect(try Statectl.run(daemon, "revert", "a/").exitCode == 2)
        #expect(try Statectl.run(daemon, "list", "--count").text == "3\n")
        #expect(try Statectl.run(daemon, "revert", "--all", "--to", "0").text == "3\n")
        #expect(try Statectl.run(daemon, "list", "--count").text == "0\n")
    }

    @Test func `a daemon without a history says so`() throws {
        let daemon = try Daemon("--memory")
        for value in ["1", "2"] { _ = try Statectl.run(daemon, "set", "k", value) }
        for arguments in [
            ["get", "k", "--at", "1"], ["list", "--at", "1"], ["history", "k"], ["blame", "k"],
            ["diff", "1"], ["revert", "k", "--to", "1"],
        ] {
            let result = try Statectl.run(["--socket", daemon.socketPath] + arguments)
            #expect(result.exitCode == 5)
            #expect(result.errorText.contains("COMPACTED values in memory have no history"))
        }
    }

    @Test func `a listing of many pages is of one moment, while others write`() throws {
        let client = try daemon.connect()
        try client.set((0..<3_000).map { (key: Key(verified: "m/\(10_000 + $0)"), value: [0x30]) })
        let isDone = Observed(false)
        let path = daemon.socketPath
        let listings = Observed<[String]>([])
        onThreads(2) { number in
            do {
                guard number == 0 else {
                    // Each commit sets the first and the last key to the same.
                    let writer = try Client(socket: path)
                    var round = 0
                    while !isDone.current {
                        round += 1
                        let value = Array(String(round).utf8)
                        try writer.set(["m/10000", "m/12999"].map { (key: $0, value: value) })
                    }
                    return
                }
                defer { isDone.update { $0 = true } }
                for verb in ["list", "export", "list"] {
                    let result = try Statectl.run(["--socket", path, verb, "m/"])
                    listings.update { $0.append(result.text) }
                }
            } catch {
                Issue.record("\(error)")
            }
        }
        #expect(listings.current.count == 3)
        for listing in listings.current {
            let lines = listing.split(separator: "\n")
            try #require(lines.count == 3_000)
            #expect(lines[0].replacing("10000", with: "12999") == lines[2_999])
        }
    }
}
