import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// `statectl watch` and `wait` over the end of a daemon.
struct StatectlReconnectTests {
    private func set(_ daemon: Daemon, _ key: Key, _ value: String) throws -> Int64 {
        try daemon.connect().set(Array(value.utf8), for: key).revision
    }

    @Test(arguments: [[], ["--snapshot"], ["--from", "0"], ["--from", "0", "--json"]])
    func `every change is told once over a restart, also what came before it was back`(
        options: [String]
    ) throws {
        let daemon = try Daemon()
        let watch = try RunningCommand(
            builtProgram("statectl"),
            (["--socket", daemon.socketPath, "watch", "w/"] + options).map { Array($0.utf8) }
        )
        // Only a change that is told says that a watch has begun.
        var first = 0
        while first == 0 {
            _ = try set(daemon, "w/begin", "x")
            first = (try? watch.nextLine(within: .milliseconds(200))) == nil ? 0 : 1
        }
        var expected: [Int64] = []
        for round in 0..<3 {
            expected.append(try set(daemon, "w/k", "before \(round)"))
            daemon.kill()
            try daemon.start()
            for index in 0..<3 { expected.append(try set(daemon, "w/k", "after \(index)")) }
        }
        var told: [Int64] = []
        while told.last != expected.last {
            let line = try watch.nextLine()
            guard line.contains("w/k") else { continue }
            told.append(try #require(Int64(line.drop { !$0.isNumber }.prefix { $0.isNumber })))
        }
        #expect(told == expected)
        watch.signal(SIGTERM)
        let messages = try watch.finish().errorText.split(separator: "\n")
        // A daemon that is killed before it was found again is not lost once more.
        let lost = messages.count { $0.hasSuffix("reconnecting") }
        #expect((1...3).contains(lost))
        #expect(messages.count { $0.hasSuffix("reconnected") } == lost)
    }

    @Test func `latest values go on after a restart`() throws {
        let daemon = try Daemon()
        _ = try set(daemon, "w/k", "old")
        // Not with a snapshot, which a kill may meet before its end: then a gap is right.
        let watch = try Statectl.start(daemon, "watch", "w/", "--from", "0", "--latest")
        #expect(try watch.nextLine().hasSuffix("\tset\tw/k\told"))
        daemon.kill()
        try daemon.start()
        var last: Int64 = 0
        for index in 0..<50 { last = try set(daemon, "w/k", "\(index)") }
        var revisions: [Int64] = []
        while revisions.last != last {
            let line = try watch.nextLine()
            #expect(!line.contains("gap"))
            revisions.append(try #require(Int64(line.prefix { $0 != "\t" })))
        }
        #expect(revisions == revisions.sorted())
    }

    @Test func `what a store in memory has lost is a gap`() throws {
        let daemon = try Daemon("--memory")
        _ = try set(daemon, "w/old", "x")
        let watch = try Statectl.start(daemon, "watch", "w/", "--snapshot")
        #expect(try watch.nextLine().hasSuffix("\tset\tw/old\tx"))
        _ = try set(daemon, "w/old", "y")
        #expect(try watch.nextLine().hasSuffix("\tset\tw/old\ty"))
        daemon.kill()
        try daemon.start()
        _ = try set(daemon, "w/new", "z")
        #expect(try watch.nextLine().hasSuffix("\tgap"))
        #expect(try watch.nextLine().hasSuffix("\tset\tw/new\tz"))
    }

    @Test func `the timeout covers the time without a daemon`() throws {
        let daemon = try Daemon()
        _ = try set(daemon, "w/k", "x")
        let watch = try Statectl.start(
            daemon,
            "watch",
            "w/",
            "--snapshot",
            "--count",
            "2",
            "--timeout",
            "2s"
        )
        #expect(try watch.nextLine().hasSuffix("w/k\tx"))
        daemon.kill()
        #expect(try watch.finish().exitCode == 1)
    }

    @Test func `without a daemon at the beginning it ends with 3`() throws {
        let daemon = try Daemon()
        daemon.kill()
        for verb in ["watch", "wait"] {
            let result = try Statectl.run(daemon, verb, "w")
            #expect(result.exitCode == 3)
            #expect(result.errorText.contains(daemon.socketPath))
        }
    }

    @Test func `a watch that nobody reads ends while it has no daemon, too`() throws {
        let daemon = try Daemon()
        _ = try set(daemon, "w/k", "x")
        let watch = try Statectl.start(daemon, "watch", "w/", "--snapshot")
        #expect(try watch.nextLine().hasSuffix("w/k\tx"))
        daemon.kill()
        watch.closeOutput()
        #expect(watch.wait() == 0)
    }

    // MARK: wait

    @Test func `wait ends at once where it is so already`() throws {
        let daemon = try Daemon()
        let revision = try set(daemon, "w/k", "x")
        for options in [[], ["--present"], ["--value", "x"]] {
            let result = try Statectl.run(["--socket", daemon.socketPath, "wait", "w/k"] + options)
            #expect(result.exitCode == 0)
            #expect(result.text.isEmpty)
        }
        #expect(try Statectl.run(daemon, "wait", "other", "--absent").exitCode == 0)
        #expect(
            try Statectl.run(daemon, "wait", "w/k", "--json").text
                == #"{"revision":\#(revision),"op":"set","key":"w/k","value":"x"}"# + "\n"
        )
    }

    @Test(arguments: [["--present"], ["--value", "x"], ["--absent"]])
    func `wait gives up with 1`(options: [String]) throws {
        let daemon = try Daemon()
        if options == ["--absent"] { _ = try set(daemon, "w/k", "y") }
        if options == ["--value", "x"] { _ = try set(daemon, "w/k", "xx") }
        let result = try Statectl.run(
            ["--socket", daemon.socketPath, "wait", "w/k", "--timeout", "100ms"] + options
        )
        #expect(result.exitCode == 1)
        #expect(result.text.isEmpty)
    }

    @Test func `wait is told of a value that is there for a moment, also over a restart`() throws {
        let daemon = try Daemon()
        _ = try set(daemon, "w/k", "a")
        let wait = try Statectl.start(daemon, "wait", "w/k", "--value", "b", "--json")
        // What was sent is read, also once the daemon is gone; before the state was sent, the watch
        // would begin anew.
        let client = try daemon.connect()
        let isSent = try eventually {
            try client.watches().contains { $0.state == "synced" && $0.waiting == 0 }
        }
        try #require(isSent)
        daemon.kill()
        try daemon.start()
        let revision = try set(daemon, "w/k", "b")
        _ = try set(daemon, "w/k", "c")
        let result = try wait.finish()
        #expect(result.exitCode == 0)
        #expect(
            result.text == #"{"revision":\#(revision),"op":"set","key":"w/k","value":"b"}"# + "\n"
        )
    }

    @Test func `wait takes one condition and one literal key`() throws {
        let daemon = try Daemon()
        let twice = try Statectl.run(daemon, "wait", "w", "--present", "--absent")
        #expect(twice.exitCode == 2)
        #expect(try Statectl.run(daemon, "wait", "w/").exitCode == 2)
        _ = try set(daemon, "wx", "1")
        #expect(try Statectl.run(daemon, "wait", "w*", "--absent").exitCode == 0)
    }
}
