import StateEngine
import StateTestSupport
import Testing

/// `config/stated.json5` is the manual: every option is in it, with its default and what it means.
struct ManualTests {
    private let path = packageRoot + "/config/stated.json5"
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private var lines: [Substring] {
        get throws { String(decoding: try readFile(path), as: UTF8.self).split(separator: "\n") }
    }

    private func check(_ text: String) throws -> CommandResult {
        let path = try directory.write(text, to: "check.json5")
        return try runCommand(builtProgram("stated"), ["--check-config", path])
    }

    /// The names that the program itself says that it knows, where none of them is near.
    private func known(_ before: String, _ after: String) throws -> [String] {
        let message = try check("\(before) '----------------------------': 1 \(after)").errorText
        let parts = message.split(separator: "known options: ")
        try #require(parts.count == 2, "\(message)")
        return parts[1].split(separator: "\n")[0].split(separator: ", ").map(String.init)
    }

    @Test(arguments: [
        ("{ socket: {", "} }"), ("{ limits: {", "} }"), ("{ history: {", "} }"), ("{", "}"),
    ])
    func `each option of the daemon stands there below a comment`(
        before: String,
        after: String
    ) throws {
        let (lines, names) = (try lines, try known(before, after))
        #expect(names.count >= 3)
        for name in names where name != "$schema" {
            let places = lines.indices.filter { index in
                let text = lines[index].drop { $0 == " " || $0 == "/" }
                return text.hasPrefix("\(name): ")
            }
            #expect(!places.isEmpty, "\(name) is missing")
            #expect(
                places.contains { place in
                    let isComment = lines[place - 1].drop { $0 == " " }.hasPrefix("//")
                    // Three that one comment explains.
                    return isComment || before == "{ history: {"
                        || lines[place].contains("socket: {")
                },
                "nothing explains \(name)"
            )
        }
    }

    /// A value for each option of a rule, by which it is seen whether this version does it.
    private static let samples = [
        "backing": "'memory'", "directory": "'/srv/x', backing: 'file'",
        "mode": "'0640', backing: 'file', directory: '/srv/x'",
        "owner": "'root', backing: 'file', directory: '/srv/x'",
        "group": "'root', backing: 'file', directory: '/srv/x'",
        "trim": "true, backing: 'file', directory: '/srv/x'",
        "stale": "'serve', backing: 'cluster'", "staleAfter": "'5s', backing: 'cluster'",
        "shared": "true, backing: 'file', directory: '/srv/x'", "durability": "'synced'",
        "commitEvery": "'5s', durability: 'interval'", "history": "5", "expire": "'5m'",
        "lifetime": "'connection'",
        "schema": "{}", "default": "1", "readonly": "true",
        "writeOnce": "true", "audit": "true", "read": "['root']", "write": "['root']",
        "watch": "['root']",
        "create": "['root']", "admin": "['root']", "limits": "{ valueBytes: 5 }",
        "softLimits": "{ valueBytes: 5 }",
    ]

    @Test func `each option of a rule that is done stands there`() throws {
        let text = try lines.joined(separator: "\n")
        for name in try known("{ rules: [ { keys: 'a',", "} ] }") where name != "keys" {
            let sample = try #require(Self.samples[name], "\(name) is not known to this test")
            let result = try check("{ rules: [ { keys: 'a', \(name): \(sample) } ] }")
            if result.errorText.contains("does not do that yet") { continue }
            let isOwnership = ["mode", "owner", "group"].contains(name)
            let title = isOwnership ? "mode, owner, group" : name
            #expect(text.contains("\n  //   \(title) "), "\(name) is missing")
        }
        for name in try known("{ rules: [ { keys: 'a', limits: {", "} } ] }") {
            let result = try check("{ rules: [ { keys: 'a', limits: { \(name): 5 } } ] }")
            if result.errorText.contains("does not do that yet") { continue }
            #expect(text.contains("\(name): "), "limits.\(name) is missing")
        }
        let page = try String(decoding: readFile(packageRoot + "/docs/rules.md"), as: UTF8.self)
        for word in try known("{ rules: [ { keys: 'a', schema: {", "} } ] }") {
            #expect(
                text.contains("\(word):") || page.contains("`\(word)`"),
                "schema.\(word) is missing"
            )
        }
    }

    /// What a daemon says of itself, but for what is another in each run.
    private func described(_ arguments: [String]) throws -> [String] {
        let daemon = try Daemon(arguments)
        let own = [
            "pid", "uptime", "epoch", "socket", "client_socket", "data", "database_bytes",
            "log_bytes",
            "clients", "client_memory", "memory",
        ]
        let status = try Statectl.run(daemon, "status").lines.filter { line in
            !own.contains { line.hasPrefix("\($0):") }
        }
        let mode = try runCommand("stat", ["-c", "%a %G", daemon.socketPath]).lines
        let peer = try Peer(daemon.socketPath)
        return status + mode + [try peer.ask("CONFIG GET *").shown]
            + (try Statectl.run(daemon, "explain", "some/key").lines)
            + (try Statectl.run(daemon, "rules").lines)
    }

    @Test func `as it stands it starts the daemon, which does what one without it does`() throws {
        let plain = try described([])
        #expect(plain.count > 20)
        #expect(try described(["--config", path]) == plain)
        let empty = try directory.write("{}", to: "empty.json5")
        #expect(try described(["--config", empty]) == plain)
    }

    @Test func `to take every option away changes nothing`() throws {
        let daemon = try Daemon("--config", directory.write(readFile(path), to: "stated.json5"))
        try directory.write("{}", to: "stated.json5")
        let removed = try Statectl.run(daemon, "reload", "--json").text
        #expect(removed == "{\"revision\":1,\"changed\":[],\"restart\":[]}\n")
        try directory.write(readFile(path), to: "stated.json5")
        #expect(try Statectl.run(daemon, "reload", "--json").text == removed)
        // One of them that is another is told.
        try directory.write("{ limits: { replyBytes: '1GiB' } }", to: "stated.json5")
        #expect(
            try Statectl.run(daemon, "reload").text.contains("limits.replyBytes: 256MiB → 1GiB")
        )
    }
}
