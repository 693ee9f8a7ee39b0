import Foundation
import StateTestSupport
import Testing

/// The configuration of an appliance in docs/rules.md, walked through.
struct ApplianceTests {
    private let directory: TemporaryDirectory
    private let daemon: Daemon

    init() throws {
        directory = try TemporaryDirectory()
        for name in ["secrets", "config"] {
            mkdir(directory.path(of: name), 0o755)
        }
        let text = try ApplianceTests.documented
            .replacing("/srv/appliance/", with: directory.path + "/")
        daemon = try Daemon("--config", directory.write(text, to: "stated.json5"))
    }

    /// The configuration in the manual.
    private static var documented: String {
        get throws {
            let root = URL(filePath: #filePath)
                .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            let manual = try String(
                contentsOf: root.appending(path: "docs/rules.md"),
                encoding: .utf8
            )
            let section = try #require(manual.components(separatedBy: "\n## An appliance\n").last)
            let parts = section.components(separatedBy: "```")
            return String(try #require(parts.dropFirst().first).dropFirst("json5".count))
        }
    }

    private func set(_ key: String, _ value: String) throws -> CommandResult {
        try Statectl.run(daemon, "set", key, "--", value)
    }

    private func get(_ key: String) throws -> String {
        try Statectl.run(daemon, "get", key, "--raw").text
    }

    private func permissions(_ name: String) -> UInt32 {
        var status = stat()
        return stat(directory.path(of: name), &status) == 0 ? status.st_mode & 0o777 : 0
    }

    @Test func `it has thirty rules, and nothing is wrong with it`() throws {
        #expect(try Statectl.run(daemon, "rules", "--json").lines.count == 31)
        let path = directory.path(of: "stated.json5")
        let check = try runCommand(
            builtProgram("stated"),
            ["--check-config", path, "--all-warnings-are-errors"]
        )
        #expect(check.exitCode == 0 && check.text == "\(path) is valid: 30 rules\n", "\(check)")
        let preview = try Statectl.run(daemon, "check-config")
        #expect(
            preview.text
                == "nothing would change\n0 stored values checked: nothing would be refused\n"
        )
    }

    @Test func `network and audio take what their schemas allow`() throws {
        for (key, value) in [
            ("network/hostname", "living-room"), ("network/dns", #"["192.0.2.1","192.0.2.2"]"#),
            ("network/interfaces/eth0", #"{"method":"static","address":"192.0.2.7","mtu":1500}"#),
            ("network/status/eth0", #"{"up":true}"#), ("audio/volume", "0.7"),
            ("audio/device", "USB headset"), ("audio/muted", "true"),
            ("audio/presets/rock", "[1,2,3]"), ("display/brightness", "55"),
        ] {
            #expect(try set(key, value).exitCode == 0, "\(key)")
            #expect(try get(key) == value)
        }
        for (key, value, place) in [
            ("network/hostname", "Living Room", "rule 3, line "),
            ("network/dns", #"["x"]"#, "rule 4, line "),
            ("network/interfaces/eth0", #"{"method":"maybe"}"#, "rule 5, line "),
            ("network/interfaces/eth0", #"{"mtu":1500}"#, "rule 5, line "),
            ("audio/volume", "1.5", "rule 8, line "), ("audio/presets/x", "[1]", "rule 12, line "),
            ("display/brightness", "101", "rule 14, line "),
        ] {
            let refused = try set(key, value)
            #expect(refused.exitCode == 4 && refused.errorText.contains(place), "\(refused)")
        }
        #expect(try get("audio/muted") == "true" && get("network/absent") == "")
        _ = try Statectl.run(daemon, "delete", "audio/volume")
        #expect(try get("audio/volume") == "0.5")
    }

    @Test func `leases end, what is written once stays, and a rule counts its keys`() throws {
        #expect(try set("lease/dhcp", "10.0.0.7").exitCode == 0)
        let ttl = try Statectl.run(daemon, "get", "lease/dhcp", "--json").text
        #expect(ttl.contains("expires") || ttl.contains("ttl"), "\(ttl)")
        #expect(try Statectl.run(daemon, "set", "lease/dhcp", "x", "--ttl", "10m").exitCode == 4)
        #expect(
            try Statectl.run(daemon, "set", "lease/firmware", "x", "--ttl", "10m").exitCode == 0
        )
        #expect(try set("build/1", "ok").exitCode == 0 && set("build/1", "no").exitCode == 4)
        #expect(
            try Statectl.run(daemon, "delete", "build/1").errorText.contains(
                "it may not be deleted (rule 26, line "
            )
        )
        #expect(
            try set("build/latest", "1").exitCode == 0 && set("build/latest", "2").exitCode == 0
        )
        #expect(try set("factory/id", "1").exitCode == 4)
        for number in 0..<20 {
            let area = number < 10 ? "presets" : "equalizer"
            #expect(try set("audio/\(area)/\(number)", "[1,2,3]").exitCode == 0)
        }
        let full = try set("audio/presets/more", "[1,2,3]")
        #expect(
            full.errorText.contains("the rule already has its 20 keys (rule 12, line "),
            "\(full)"
        )
    }

    @Test func `secrets are for their owner, and the cache is in memory`() throws {
        #expect(try set("secrets/wifi/home", "hunter2").exitCode == 0)
        #expect(eventually { permissions("secrets/wifi/home") == 0o600 })
        #expect(permissions("secrets/wifi") == 0o700)
        #expect(try set("cache/page", "x").exitCode == 0)
        let listed = try Statectl.run(daemon, "list", "cache/", "--long").text
        #expect(listed.contains("memory"), "\(listed)")
        #expect(try Statectl.run(daemon, "history", "secrets/wifi/home").exitCode <= 1)
    }

    @Test func `files are under version control, and what an editor saves passes`() throws {
        #expect(try set("config/motd", "hello").exitCode == 0)
        #expect(eventually { permissions("config/motd") == 0o644 })
        // An editor ends the file with a line break, which is no part of the value.
        try directory.write("good bye\n", to: "config/motd")
        #expect(eventually { (try? get("config/motd")) == "good bye" })
        try directory.write(String(repeating: "x", count: 81) + "\n", to: "config/motd")
        #expect(eventually { (try? Statectl.run(daemon, "check").exitCode) == 4 })
        #expect(try get("config/motd") == "good bye")
        try directory.write(String(repeating: "x", count: 80) + "\n", to: "config/motd")
        #expect(eventually { (try? get("config/motd").utf8.count) == 80 })
        let place = directory.path(of: "config")
        let git = "cd '\(place)' && git init -q . && git add -A && git status --porcelain"
        let found = try runCommand("sh", ["-c", "command -v git >/dev/null || exit 77; \(git)"])
        #expect(found.exitCode == 77 || found.text == "A  motd\n", "\(found)")
    }
}
