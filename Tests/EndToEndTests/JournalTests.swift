import Glibc
import StateEngine
import StateServer
import StateTestSupport
import Testing

/// The log of a daemon whose standard error is the journal.
struct JournalTests {
    private let directory: TemporaryDirectory
    private let journal: JournalStage

    init() throws {
        directory = try TemporaryDirectory()
        #expect(mkdir(directory.path(of: "journal"), 0o755) == 0)
        journal = try JournalStage(path: directory.path(of: "journal/socket"))
    }

    /// A mount namespace has a /run of its own, where this test is the journal.
    private func start(_ configuration: String, _ errors: Pipe, stream: String) throws -> Program {
        let path = try directory.write(configuration, to: "stated.json5")
        let words = [
            builtProgram("stated"), "--socket", directory.path(of: "s"), "--data",
            directory.path(of: "data"), "--config", path,
        ]
        let script =
            "mount -t tmpfs none /run && mkdir /run/systemd && ln -s "
            + "\(directory.path(of: "journal")) /run/systemd/journal && exec "
            + words.joined(separator: " ")
        return try Program(
            ["unshare", "-rm", "sh", "-c", script],
            environment: ["HOME": directory.path(of: "home"), "JOURNAL_STREAM": stream],
            errorPipe: errors
        )
    }

    /// The next entry of this kind.
    private func next(_ event: LogEvent) throws -> [String: String] {
        while true {
            let entry = try journal.next().mapValues { String(decoding: $0, as: UTF8.self) }
            if entry["MESSAGE_ID"] == event.rawValue { return entry }
        }
    }

    @Test(.enabled(if: mayMount, "it needs mount namespaces"))
    func `messages are entries with the key, the rule, the user and the process`() throws {
        let errors = try Pipe()
        let rules = "{ rules: [ { keys: 'b' }, { keys: 'a/', audit: true } ] }"
        let program = try start(rules, errors, stream: errors.identity)
        #expect(try next(.started)["PRIORITY"] == "6")
        let peer = try Peer(directory.path(of: "s"))
        _ = try peer.ask(["SET", "a/key = x", "secret word"].map { Array($0.utf8) })
        let entry = try next(.audit)
        let wanted = [
            "PRIORITY": "5", "STATED_KEY": "a/key = x", "STATED_RULE": "2", "STATED_ACTION": "set",
            "STATED_REVISION": "1", "STATED_PID": String(getpid()), "SYSLOG_IDENTIFIER": "stated",
        ]
        for (name, value) in wanted { #expect(entry[name] == value, "\(name)") }
        #expect(!entry.values.contains { $0.contains("secret word") })
        try directory.write("{ rules: [ { keys: 3 } ] }", to: "stated.json5")
        program.send(SIGHUP)
        let error = try next(.configurationError)
        #expect(error["MESSAGE"]?.contains("1 | { rules: [ { keys: 3 } ] }\n") == true, "\(error)")
        #expect(try next(.reloadFailed)["PRIORITY"] == "3")
        program.send(SIGTERM)
        #expect(try program.end() == 0)
        #expect(try next(.stopped)["MESSAGE"] == "stopped by SIGTERM")
        #expect(program.errors == "")
    }

    @Test(.enabled(if: mayMount, "it needs mount namespaces"))
    func `where nobody is the journal any more, lines go to standard error`() throws {
        let errors = try Pipe()
        unlink(journal.path)
        let program = try start("{}", errors, stream: errors.identity)
        try program.waitForErrors(containing: "<6>stated ")
        program.send(SIGTERM)
        #expect(try program.end() == 0)
        #expect(program.errors.hasSuffix("<6>stopped by SIGTERM\n"))
    }

    @Test(.enabled(if: mayMount, "it needs mount namespaces"))
    func `a standard error that is another stream gets the lines`() throws {
        let errors = try Pipe()
        let program = try start("{}", errors, stream: "1:2")
        try program.waitForErrors(containing: "stated: info: stated ")
        program.send(SIGTERM)
        #expect(try program.end() == 0)
    }

    private static let mayMount =
        (try? runCommand("unshare", ["-rm", "mount", "-t", "tmpfs", "none", "/run"]))?.exitCode == 0
}
