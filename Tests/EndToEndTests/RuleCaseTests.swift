import Glibc
import StateClient
import StateContainers
import StateEngine
import StateTestSupport
import Testing

/// One configuration with rules of every kind, and the same answers on every way in.
struct RuleCaseTests {
    private let daemon: Daemon
    private let files: String

    init() throws {
        let directory = try TemporaryDirectory()
        files = directory.path(of: "files")
        guard mkdir(files, 0o700) == 0 else { throw SystemFailure(call: "mkdir", errno) }
        var text = "{ rules: [\n{ keys: 'cases/', backing: 'file', directory: '\(files)' },\n"
        for rule in ruleCases {
            text += "{ keys: 'cases/\(rule.name)/', schema: \(rule.schema) },\n"
        }
        text += """
            { keys: 'cases/short/', limits: { valueBytes: 3 } },
            { keys: 'cases/still/', readonly: true },
            { keys: 'cases/once/', writeOnce: true },
            { keys: 'cases/deep/', schema: {}, limits: { depth: 3 } },
            ] }
            """
        let path = try directory.write(text, to: "stated.json5")
        daemon = try Daemon(["--config", path], directory: directory)
    }

    private struct Case {
        let key: String
        let value: String
        let isAllowed: Bool
        /// What stands in the refusal.
        let words: String
    }

    /// Every case, each with a key of its own.
    private func cases(_ way: String) -> [Case] {
        var cases: [Case] = []
        func add(_ rule: String, _ values: [String], _ isAllowed: Bool, _ words: String) {
            for value in values {
                let key = "cases/\(rule)/\(way)\(cases.count)"
                cases.append(Case(key: key, value: value, isAllowed: isAllowed, words: words))
            }
        }
        for (index, rule) in ruleCases.enumerated() {
            add(rule.name, rule.allowed, true, "")
            add(rule.name, rule.refused, false, "(rule \(index + 2), line \(index + 3), schema)")
        }
        add("short", ["", "abc"], true, "")
        add("short", ["abcd"], false, "limits.valueBytes)")
        add("still", ["1"], false, "readonly)")
        add("deep", ["[[[1]]]"], true, "")
        add("deep", ["[[[[1]]]]"], false, "limits.depth)")
        return cases
    }

    private func check(
        _ way: String,
        _ set: (_ key: String, _ value: String) throws -> String?
    ) throws {
        let cases = cases(way)
        #expect(cases.count >= 150)
        let client = try daemon.connect()
        for one in cases {
            let refusal = try set(one.key, one.value)
            #expect((refusal == nil) == one.isAllowed, "\(one): \(refusal ?? "accepted")")
            #expect(refusal?.contains(one.words) ?? true, "\(one): \(refusal ?? "")")
            let stored = try client.value(for: Key(one.key))
            #expect(stored == (one.isAllowed ? Array(one.value.utf8) : nil), "\(one)")
        }
        let once = "cases/once/\(way)"
        #expect(try set(once, "1") == nil)
        #expect(try set(once, "2")?.contains("writeOnce)") == true)
        #expect(try client.value(for: Key(once)) == Array("1".utf8))
    }

    @Test func `each case has its answer through redis-cli`() throws {
        try check("redis") { key, value in
            let result = try runCommand(
                "redis-cli",
                ["-s", daemon.socketPath, "-x", "SET", key],
                input: Array(value.utf8)
            )
            return result.text == "OK\n" ? nil : result.text
        }
    }

    @Test func `each case has its answer through statectl`() throws {
        try check("statectl") { key, value in
            let result = try Statectl.run(
                ["--socket", daemon.socketPath, "set", key, "-", "--raw"],
                input: Array(value.utf8)
            )
            #expect(result.exitCode == 0 || result.exitCode == 4)
            return result.exitCode == 0 ? nil : result.errorText
        }
    }

    @Test func `each case has its answer through RemoteState`() throws {
        let keyspace = try RemoteKeyspace(socket: daemon.socketPath)
        try check("remote") { key, value in
            let state = try RemoteState<[UInt8]?>(nil, key: Key(key), in: keyspace)
            do throws(StateError) {
                try state.replace(Array(value.utf8))
                return nil
            } catch {
                return error.message
            }
        }
    }

    @Test func `each case has its answer through an edit of its file`() throws {
        let cases = cases("file")
        for one in cases {
            let path = files + one.key.dropFirst("cases".count)
            let parent = path[..<(path.lastIndex(of: "/") ?? path.endIndex)]
            _ = mkdir(String(parent), 0o700)
            try write(Array(one.value.utf8), to: path)
        }
        let last = Array("files/last".utf8)
        try write(last, to: files + "/last")
        let client = try daemon.connect()
        let allowed = cases.filter(\.isAllowed).count
        let hasSettled = try eventually(within: .seconds(300)) {
            try client.count(of: "cases/*/file*") == allowed
                && client.value(for: "cases/last") == last
        }
        let refused = try Statectl.run(daemon, "check")
        try #require(hasSettled, "\(refused.text)\(daemon.log)")
        #expect(refused.exitCode == 4)
        for one in cases {
            let stored = try client.value(for: Key(one.key))
            #expect(stored == (one.isAllowed ? Array(one.value.utf8) : nil), "\(one)")
            let path = files + one.key.dropFirst("cases".count)
            #expect(try readFile(path) == Array(one.value.utf8))
            let line = refused.text.split(separator: "\n").first {
                $0.contains(path + " ") || $0.hasSuffix(path) || $0.contains(path + ":")
                    || $0.contains(path + "\t")
            }
            #expect((line == nil) == one.isAllowed, "\(one): \(line ?? "not listed")")
            #expect(line?.contains(one.words) ?? true, "\(one): \(line ?? "")")
        }
    }
}
