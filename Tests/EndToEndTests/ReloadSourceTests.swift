import Glibc
import StateTestSupport
import StateWire
import Testing

/// A configuration that comes slowly, or from its usual place.
struct ReloadSourceTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func start(_ path: String) throws -> Program {
        let program = try Program([
            builtProgram("stated"), "--config", path, "--socket", directory.path(of: "s"), "--data",
            directory.path(of: "d"),
        ])
        try program.waitForErrors(containing: "configured by ")
        return program
    }

    @Test func `a file that comes slowly keeps nobody waiting, neither others nor the end`() throws
    {
        let path = try directory.write("{}", to: "stated.json5")
        let program = try start(path)
        try directory.write("{ rules: [ { keys: 'k', readonly: true } ] }", to: "stated.json5")
        var lease: FileLease? = try FileLease(on: path)
        let (waiting, other) = (
            try Peer(directory.path(of: "s")), try Peer(directory.path(of: "s"))
        )
        try waiting.send("STATE.RELOAD", "PING")
        #expect(try other.ask("SET k 1").shown == "+OK")
        #expect(try waiting.arrived().isEmpty)
        #expect(try other.ask("SET k 2").shown == "+OK")
        withExtendedLifetime(lease) {}
        lease = nil
        #expect(try waiting.next().shown.hasPrefix(#"["revision", 3, "changed", [[1, "k", "#))
        #expect(try waiting.next().shown == "+PONG")
        #expect(try other.ask("SET k 3").errorText?.hasPrefix("REJECTED") == true)
        lease = try FileLease(on: path)
        program.send(SIGHUP)
        program.send(SIGTERM)
        #expect(try program.end() == 0)
        withExtendedLifetime(lease) {}
    }

    @Test func `a configuration in its usual place is read, at the start or later`() throws {
        try #require(mkdir(directory.path(of: "etc"), 0o755) == 0)
        let path = directory.path(of: "etc/stated.json5")
        let environment = [
            "CONFIGURATION_DIRECTORY": directory.path(of: "etc"),
            "STATE_DIRECTORY": directory.path(of: "d"), "STATED_SOCKET": directory.path(of: "s"),
        ]
        let first = try Program([builtProgram("stated")], environment: environment)
        try first.waitForErrors(containing: " serves ")
        let socket = ["--socket", directory.path(of: "s")]
        #expect(
            try Statectl.run(socket + ["reload"]).errorText.contains("no configuration file")
        )
        try directory.write("{ rules: [ { keys: 'a', readonly: true } ] }", to: "etc/stated.json5")
        #expect(
            try Statectl.run(socket + ["reload"]).text.contains("rule 1 (a) readonly: none → true")
        )
        #expect(try Statectl.run(socket + ["set", "a", "1"]).exitCode == 4)
        first.send(SIGTERM)
        #expect(try first.end() == 0)
        let second = try Program([builtProgram("stated")], environment: environment)
        try second.waitForErrors(containing: "configured by \(path): 1 rule")
        second.send(SIGTERM)
        #expect(try second.end() == 0)
        // An instance that is not the usual one has a configuration of its own, or none.
        let other = try Program(
            [builtProgram("stated"), "--data", directory.path(of: "other")],
            environment: environment
        )
        try other.waitForErrors(containing: " serves ")
        #expect(try Statectl.run(socket + ["set", "a", "1"]).exitCode == 0)
        try directory.write("{ nonsense", to: "etc/stated.json5")
        #expect(
            try runCommand(builtProgram("stated"), ["--help"], environment: environment).exitCode
                == 0
        )
        let broken = try Program([builtProgram("stated")], environment: environment)
        #expect(try broken.end() == 2)
        #expect(broken.errors.contains("\(path):1:11: expected ':' after nonsense"))
    }
}
