import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// Rules and defaults in the layers of the vendor, the running system and the administrator.
struct LayerTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        for layer in ["usr", "run", "etc"] {
            for folder in ["rules.d", "defaults.d", "schemas"] {
                let path = directory.path(of: "\(layer)/\(folder)")
                #expect(try runCommand("mkdir", ["-p", path]).exitCode == 0)
            }
        }
    }

    private func path(_ name: String) -> String { directory.path(of: name) }

    @discardableResult
    private func write(_ text: String, _ name: String) throws -> String {
        try directory.write(text, to: name)
    }

    private func configuration(_ rules: String = "") throws -> String {
        try write(
            "{ layers: [\"\(path("usr"))\", \"\(path("run"))/\"], rules: [\(rules)] }",
            "etc/stated.json5"
        )
    }

    private func start(_ rules: String = "") throws -> Daemon {
        try Daemon("--config", configuration(rules))
    }

    private func keys(_ daemon: Daemon) throws -> [String] {
        try Statectl.run(daemon, "rules").lines.dropFirst().map {
            String($0.split(separator: " ")[2])
        }
    }

    @Test func `files come in the order of their names, and the highest layer has each name`()
        throws
    {
        try write("{ rules: [{ keys: 'usr-50' }] }", "usr/rules.d/50-a.json5")
        try write("{ rules: [{ keys: 'run-50' }] }", "run/rules.d/50-a.json5")
        try write("{ rules: [{ keys: 'etc-50' }] }", "etc/rules.d/50-a.json5")
        try write("{ rules: [{ keys: 'usr-10' }] }", "usr/rules.d/10.json5")
        try write("{ rules: [{ keys: 'usr-60' }] }", "usr/rules.d/60.json5")
        try write("{ rules: [{ keys: 'run-60' }] }", "run/rules.d/60.json5")
        try write("{ rules: [{ keys: 'run-70' }] }", "run/rules.d/70.json5")
        try write("{ rules: [{ keys: 'masked' }] }", "usr/rules.d/80.json5")
        try write("", "etc/rules.d/80.json5")
        try write("{ rules: [{ keys: 'masked' }] }", "usr/rules.d/81.json5")
        #expect(symlink("/dev/null", path("run/rules.d/81.json5")) == 0)
        try write("{ broken", "usr/rules.d/82.json5")
        #expect(symlink("/dev/null", path("etc/rules.d/82.json5")) == 0)
        let daemon = try start("{ keys: 'main' }")
        #expect(try keys(daemon) == ["main", "usr-10", "etc-50", "run-60", "run-70"])
        let explained = try Statectl.run(daemon, "rules").lines
        #expect(explained[2].contains("\(path("usr"))/rules.d/10.json5:1"))
        #expect(explained[3].contains(" rules.d/50-a.json5:1"))
    }

    @Test func `explain names the file of a vendor's rule, and a reload takes a mask`() throws {
        try write("{ rules: [{ keys: 'a', readonly: true }] }", "usr/rules.d/50-vendor.json5")
        let daemon = try start()
        let line = try Statectl.run(daemon, "explain", "a").lines.first { $0.hasPrefix("readonly") }
        #expect(line?.hasSuffix("1 (a), \(path("usr"))/rules.d/50-vendor.json5:1") == true)
        let refused = try Statectl.run(daemon, "set", "a", "1")
        #expect(refused.exitCode == 4 && refused.errorText.contains("50-vendor.json5:1"))
        try write("", "etc/rules.d/50-vendor.json5")
        #expect(try Statectl.run(daemon, "check-config").text.contains("readonly: true → none"))
        #expect(try Statectl.run(daemon, "reload").text.contains("readonly: true → none"))
        #expect(try Statectl.run(daemon, "set", "a", "1").exitCode == 0)
    }

    @Test func `errors name the file of their layer, and a schema is found in the highest one`()
        throws
    {
        let vendor = try write("{ rules: [{ keyz: 'a' }] }", "usr/rules.d/50.json5")
        let checked = try runCommand(
            builtProgram("stated"),
            ["--check-config", configuration()]
        )
        #expect(checked.exitCode == 2 && checked.errorText.contains("\(vendor):1:"), "\(checked)")
        let rule = "{ keys: 'n', schema: { $ref: 'schemas/n.json5' } }"
        try write("{ rules: [\(rule)] }", "usr/rules.d/50.json5")
        try write("{ maximum: 1 }", "usr/schemas/n.json5")
        let daemon = try start()
        #expect(try Statectl.run(daemon, "set", "n", "2").exitCode == 4)
        try write("{ maximum: 3 }", "etc/schemas/n.json5")
        #expect(try Statectl.run(daemon, "reload").exitCode == 0)
        #expect(try Statectl.run(daemon, "set", "n", "2").exitCode == 0)
    }

    @Test func `a directory of keys may not overlap a layer`() throws {
        let rule = "{ keys: 'x/', backing: 'file', directory: '\(path("usr/rules.d"))' }"
        let arguments = ["--memory", "--socket", path("s"), "--config", try configuration(rule)]
        let refused = try runCommand(builtProgram("stated"), arguments)
        #expect(refused.exitCode == 2)
        #expect(refused.errorText.contains("which has files of the configuration"))
    }

    // MARK: Defaults

    private func prepareDefaults() throws {
        try write(
            "{ 'audio/': { volume: 0.5, device: 'hw:0', card: { b: 1 } }, gone: 1, ruled: 'vendor' }",
            "usr/defaults.d/50-vendor.json5"
        )
        try write("{ 'audio/': { device: 'usb' }, gone: null }", "etc/defaults.d/60-site.json5")
    }

    private static let rules = """
        { keys: 'audio/volume', schema: { type: 'number', maximum: 1 } },
        { keys: 'ruled', default: 'rule' }, { keys: 'other', default: 7 },
        """

    @Test func `a key that nobody has set answers its default, and says where it is from`() throws {
        try prepareDefaults()
        let daemon = try start(LayerTests.rules)
        func get(_ key: String) throws -> String { try Statectl.run(daemon, "get", key).text }
        #expect(try get("audio/volume") == "0.5\n")
        #expect(try get("audio/device") == "usb\n")
        #expect(try get("audio/card") == "{\"b\":1}\n")
        #expect(try get("ruled") == "vendor\n")
        #expect(try get("other") == "7\n")
        #expect(try Statectl.run(daemon, "get", "gone").exitCode == 1)
        let site = path("etc/defaults.d/60-site.json5")
        let long = try Statectl.run(daemon, "get", "audio/device", "--long").lines
        #expect(long.last == "origin:  default from \(site)")
        let other = try Statectl.run(daemon, "get", "other", "--json").text
        #expect(other.contains("\"default\":1,\"origin\":\"rule 3"))
        let explained = try Statectl.run(daemon, "explain", "audio/device").lines
        #expect(
            explained.contains { $0.hasPrefix("default ") && $0.hasSuffix("default from \(site)") }
        )
        // For everything else the key is absent.
        #expect(try Statectl.run(daemon, "list").text.isEmpty)
        #expect(try Statectl.run(daemon, "delete", "audio/device").text == "0\n")
        #expect(try Statectl.run(daemon, "set", "audio/device", "x", "--if-absent").exitCode == 0)
        #expect(try get("audio/device") == "x\n")
        let set = try Statectl.run(daemon, "get", "audio/device", "--json").text
        #expect(!set.contains("origin"))
    }

    @Test func `reset goes back to the default, and diff lists what differs from it`() throws {
        try prepareDefaults()
        let daemon = try start(LayerTests.rules)
        _ = try Statectl.run(
            daemon,
            "set",
            "audio/volume=0.7",
            "audio/device=usb",
            "audio/free=1",
            "other=8"
        )
        let diff = try Statectl.run(daemon, "diff", "--defaults")
        #expect(
            diff.text == """
                - audio/volume = 0.5
                + audio/volume = 0.7
                - other = 7
                + other = 8

                """
        )
        #expect(try Statectl.run(daemon, "diff", "--defaults", "other").lines.count == 2)
        let one = try Statectl.run(daemon, "reset", "other").text
        #expect(one.hasPrefix("~ other = 7\twas 8\n0 added, 1 changed, 0 deleted; revision "))
        let again = try Statectl.run(daemon, "reset", "other")
        #expect(again.text == "nothing changed\n" && again.exitCode == 0)
        let lines = """
            ~ audio/device = usb\twas usb
            - audio/free = 1
            ~ audio/volume = 0.5\twas 0.7
            0 added, 2 changed, 1 deleted; 
            """
        let dry = try Statectl.run(daemon, "reset", "audio/", "--dry-run").text
        #expect(dry == lines + "nothing was changed (--dry-run)\n")
        #expect(try Statectl.run(daemon, "reset", "audio/").text.hasPrefix(lines + "revision "))
        #expect(try Statectl.run(daemon, "list").text.isEmpty)
        #expect(try Statectl.run(daemon, "get", "audio/volume").text == "0.5\n")
        #expect(try Statectl.run(daemon, "diff", "--defaults").text.isEmpty)
        #expect(try Statectl.run(daemon, "reset").exitCode == 2)
        #expect(try Statectl.run(daemon, "reset", "/").exitCode == 2)
        #expect(try Statectl.run(daemon, "diff").exitCode == 2)
    }

    @Test func `a reload takes new defaults and says so; no watch sees them`() throws {
        try prepareDefaults()
        let daemon = try start(LayerTests.rules)
        let client = try daemon.connect()
        let before = try client.status().first { $0.name == "revision" }?.number
        try write("{ 'audio/': { device: 'hdmi', new: 1 } }", "etc/defaults.d/60-site.json5")
        let preview = try Statectl.run(daemon, "check-config").text
        #expect(preview.contains("default of audio/device: \"usb\" → \"hdmi\""))
        let done = try Statectl.run(daemon, "reload").text
        #expect(done.contains("default of audio/new: none → 1"))
        #expect(done.contains("default of gone: none → 1"))
        #expect(try Statectl.run(daemon, "get", "audio/device").text == "hdmi\n")
        #expect(try Statectl.run(daemon, "get", "audio/device", "gone").lines.count == 2)
        #expect(try client.status().first { $0.name == "revision" }?.number == before)
    }

    @Test func `a default that a rule refuses is an error at its place`() throws {
        try prepareDefaults()
        let daemon = try start(LayerTests.rules)
        let site = try write(
            "{ 'audio/': {\n  volume: 5 }, 'x/': 1 }",
            "etc/defaults.d/60-site.json5"
        )
        let refused = try Statectl.run(daemon, "reload")
        #expect(refused.exitCode == 2)
        let checked = try Statectl.run(daemon, "check-config")
        #expect(checked.exitCode == 2)
        for part in [
            "\(site):2:3: [\"audio/\"].volume: the default of 'audio/volume': the schema of rule 1",
            "because a name that ends in / is a prefix",
        ] { #expect(checked.text.contains(part), "\(checked)") }
        #expect(try Statectl.run(daemon, "get", "audio/device").text == "usb\n")
    }

    @Test func `defaults work without any rule`() throws {
        try write("{ a: 1 }", "etc/defaults.d/a.json5")
        let daemon = try start()
        #expect(try Statectl.run(daemon, "get", "a").text == "1\n")
        #expect(try daemon.connect().defaults(of: .everything).map(\.key) == [Array("a".utf8)])
        #expect(try Statectl.run(daemon, "set", "b", "2").exitCode == 0)
    }

    @Test func `a pipe in a layer is refused, and keeps nobody waiting`() throws {
        let daemon = try start()
        try #require(mkfifo(path("run/defaults.d/pipe.json5"), 0o600) == 0)
        let message = "\(path("run"))/defaults.d/pipe.json5 is a FIFO, not a file"
        for _ in 0..<2 {
            let refused = try Statectl.run(daemon, "reload")
            #expect(refused.exitCode == 2 && refused.errorText.contains(message), "\(refused)")
        }
        #expect(unlink(path("run/defaults.d/pipe.json5")) == 0)
        #expect(try Statectl.run(daemon, "reload").exitCode == 0)
    }

    @Test func `the log of a reload has no default of keys that not everybody may read`() throws {
        try write("{ 'a/secret': 'one', 'a/open': 'two' }", "etc/defaults.d/10.json5")
        let daemon = try start("{ keys: 'a/secret', read: ['root'] }, { keys: 'a/open' }")
        try write("{ 'a/secret': 'other', 'a/open': 'new' }", "etc/defaults.d/10.json5")
        let changes = try Statectl.run(daemon, "reload").text
        #expect(changes.contains("default of a/secret: \"one\" → \"other\""), "\(changes)")
        #expect(changes.contains("default of a/open: \"two\" → \"new\""), "\(changes)")
        #expect(eventually { daemon.log.contains("default of a/secret: (hidden) → (hidden)") })
        #expect(eventually { daemon.log.contains("default of a/open: \"two\" → \"new\"") })
        #expect(!daemon.log.contains("other"))
    }

    @Test func `an administrator locks a vendor's setting, for root too, and unlocks it`() throws {
        let vendors = "{ \"update/\": { server: 'vendor', automatic: false } }"
        try write(vendors, "usr/defaults.d/10.json5")
        let daemon = try start()
        #expect(try Statectl.run(daemon, "set", "update/server", "user").exitCode == 0)
        try write("{ \"update/\": { server: 'site' } }", "etc/defaults.d/50-site.json5")
        #expect(try Statectl.run(daemon, "reload").exitCode == 0)
        #expect(try Statectl.run(daemon, "diff", "--defaults", "update/").text.contains("user"))
        #expect(try Statectl.run(daemon, "reset", "update/").exitCode == 0)
        try write("{ rules: [{ keys: 'update/', readonly: true }] }", "etc/rules.d/50-site.json5")
        #expect(try Statectl.run(daemon, "reload").text.contains("readonly: none → true"))
        #expect(try Statectl.run(daemon, "diff", "--defaults", "update/").text == "")
        for words in [["set", "update/server", "user"], ["set", "update/automatic", "true"]] {
            let refused = try Statectl.run(daemon, bytes: words.map { Array($0.utf8) })
            #expect(refused.exitCode == 4, "\(words)")
            #expect(refused.errorText.contains("rules.d/50-site.json5:1"), "\(refused)")
        }
        #expect(try Statectl.run(daemon, "get", "update/server").text == "site\n")
        let origin = try Statectl.run(daemon, "get", "update/server", "--long").text
        #expect(origin.contains("defaults.d/50-site.json5"), "\(origin)")
        let explained = try Statectl.run(daemon, "explain", "update/server").lines
        let lock = explained.first { $0.hasPrefix("readonly") }
        #expect(lock?.hasSuffix("rules.d/50-site.json5:1") == true, "\(explained)")
        try write("", "etc/rules.d/50-site.json5")
        #expect(try Statectl.run(daemon, "reload").text.contains("readonly: true → none"))
        #expect(try Statectl.run(daemon, "set", "update/server", "user").exitCode == 0)
    }
}
