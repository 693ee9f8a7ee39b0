import Glibc
import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// Keys that live in files, as scripts, editors and git meet them.
struct FileContainerTests {
    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test func `a set is a file, a file is a value, and a restart changes nothing`() throws {
        let stage = try FileContainerDaemon { try $0.write("there", to: "d/before") }
        let client = try stage.daemon.connect()
        #expect(try client.value(for: "app/before") == bytes("there"))
        try client.set(bytes("0.5"), for: "app/audio/volume")
        #expect(try readFile(stage.path("audio/volume")) == bytes("0.5"))
        try stage.shell("echo -n 0.7 > audio/volume; rm before; mkdir new; echo -n 1 > new/key")
        #expect(try stage.becomeEqual() != nil)
        let entry = try #require(try client.entry(for: "app/audio/volume"))
        #expect(entry.version == 2 && entry.writer.hasSuffix(":file:"))
        #expect(try client.history(of: "app/audio/volume", limit: 10).count == 2)
        let entries = try stage.entries(client)
        try stage.daemon.restart()
        #expect(try stage.entries(stage.daemon.connect()) == entries)
        #expect(try stage.daemon.connect().entry(for: "app/audio/volume") == entry)
        try stage.daemon.connect().delete(["app/"])
        #expect(try stage.files() == [:])
    }

    @Test func `what was edited before a set is written over, and refuses a set that knew it not`()
        throws
    {
        let stage = try FileContainerDaemon()
        let client = try stage.daemon.connect()
        for round in 0..<5 {
            let known = try client.set(bytes("old"), for: "app/volume").revision
            try stage.shell("echo 0.3 > volume")
            let error = #expect(throws: StateError.self) {
                try client.set(bytes("lost"), for: "app/volume", if: .revision(known))
            }
            #expect(error?.code == .conflict, "round \(round)")
            #expect(try client.value(for: "app/volume") == bytes("0.3\n"))
            try stage.shell("echo 0.4 > volume.new; mv volume.new volume")
            try client.set([(key: "app/volume", value: bytes("0.5")), (key: "plain", value: [])])
            #expect(try readFile(stage.path("volume")) == bytes("0.5"))
            #expect(try client.value(for: "app/volume") == bytes("0.5"))
        }
    }

    @Test(arguments: ["MULTI", "STATE.DELETE app/", "STATE.REVERT app/ TO 1", "GETDEL app/volume"])
    func `every command that writes comes after edits that were complete`(command: String) throws {
        let stage = try FileContainerDaemon()
        let client = try stage.daemon.connect()
        try client.set(bytes("old"), for: "app/volume")
        try stage.shell("echo -n edited > volume; echo -n edited > other")
        if command == "MULTI" {
            for line in ["MULTI", "APPEND app/volume !", "EXEC"] {
                _ = try client.call(line.split(separator: " ").map { Array($0.utf8) })
            }
            #expect(try client.value(for: "app/volume") == bytes("edited!"))
        } else {
            _ = try client.call(command.split(separator: " ").map { Array($0.utf8) })
            let history = try client.history(of: "app/volume", limit: 10)
            #expect(history.count == 3 && history[1].value == bytes("edited"))
        }
        #expect(try stage.becomeEqual() != nil)
    }

    @Test func `a file that is edited for ever holds a writer no longer than about a second`()
        throws
    {
        let stage = try FileContainerDaemon()
        let editor = try RunningCommand(
            "/bin/sh",
            ["-c", "while :; do echo x >> '\(stage.path("busy"))'; echo; sleep 0.02; done"]
                .map { Array($0.utf8) }
        )
        _ = try editor.nextLine()
        let start = ContinuousClock.now
        try stage.daemon.connect().set(bytes("mine"), for: "app/busy")
        #expect(ContinuousClock.now - start < .seconds(5))
        try stage.daemon.connect().set(bytes("mine"), for: "app/idle")
        editor.signal(SIGKILL)
        _ = editor.wait()
        #expect(try stage.becomeEqual() != nil)
    }

    @Test func `a value that a rule refuses is left in its file, and its key keeps what it had`()
        throws
    {
        let stage = try FileContainerDaemon(
            rules: "{ keys: \"app/\", schema: { type: \"number\", maximum: 1 } }"
        ) { try $0.write("0.25", to: "d/a") }
        let client = try stage.daemon.connect()
        try stage.shell("echo -n loud > a; echo -n 0.5 > b")
        #expect(try stage.becomeEqual(to: ["a": bytes("0.25"), "b": bytes("0.5")]) != nil)
        #expect(try readFile(stage.path("a")) == bytes("loud"))
        let status = try #require(try client.status().first { $0.name == "files" }).text
        #expect(status.contains(stage.path("a")) && status.contains("app/a"), "\(status)")
        #expect(eventually { stage.daemon.log.contains(stage.path("a")) })
        try stage.daemon.restart()
        #expect(try stage.entries(stage.daemon.connect())["a"] == bytes("0.25"))
        try stage.daemon.connect().set(bytes("1"), for: "app/a")
        #expect(try readFile(stage.path("a")) == bytes("1"))
        #expect(try stage.daemon.connect().status().first { $0.name == "files" }?.text == "ok")
    }

    @Test func `a directory that goes removes nothing, and is read again when it is back`() throws {
        let stage = try FileContainerDaemon()
        let client = try stage.daemon.connect()
        let root = stage.directory.path(of: "d")
        try client.set(bytes("1"), for: "app/a")
        try client.set(bytes("1"), for: "app/b")
        #expect(rename(root, root + ".away") == 0)
        #expect(try stage.refuses("app/a", naming: root))
        #expect(try client.count(of: "app/") == 2)
        #expect(try client.set(bytes("1"), for: "other").revision > 0)
        try stage.directory.write("2", to: "d.away/a")
        #expect(rename(root + ".away", root) == 0)
        #expect(try stage.becomeEqual(to: ["a": bytes("2"), "b": bytes("1")]) != nil)
        try stage.shell("cd ..; rm -rf d")
        #expect(try stage.refuses("app/a", naming: root))
        #expect(try stage.entries(client).keys.sorted() == ["a", "b"])
        stage.daemon.kill()
        let start = try stage.startThatFails()
        #expect(start.exitCode == 5)
        #expect(start.errorText.contains("the directory \(root) cannot be used"), "\(start)")
    }

    @Test func `another directory at the place is refused until a reload, and reported`() throws {
        let stage = try FileContainerDaemon()
        let client = try stage.daemon.connect()
        try client.set(bytes("1"), for: "app/a")
        try client.set(bytes("1"), for: "app/b")
        let reason = "was replaced by another one"
        try stage.shell("cd ..; cp -r d e; echo -n 3 > e/b; rm e/a; mv d away; mv e d")
        #expect(try eventually { try Statectl.run(stage.daemon, "check").text.contains(reason) })
        #expect(try stage.refuses("app/c", naming: reason))
        #expect(try stage.entries(client) == ["a": bytes("1"), "b": bytes("1")])
        #expect(try client.status().first { $0.name == "files" }?.text.contains(reason) ?? false)
        #expect(eventually { stage.daemon.log.contains(reason) })
        let reload = try Statectl.run(stage.daemon, "reload")
        #expect(reload.exitCode == 0, "\(reload)")
        #expect(try stage.becomeEqual(to: ["b": bytes("3")]) != nil)
        #expect(try stage.accepts("app/c"))
        #expect(try stage.becomeEqual() != nil)
        #expect(try stage.daemon.connect().status().first { $0.name == "files" }?.text == "ok")
    }

    @Test func `an empty directory that a reload refuses is not said to need a reload`() throws {
        let stage = try FileContainerDaemon()
        let client = try stage.daemon.connect()
        try client.set(bytes("1"), for: "app/a")
        try stage.shell("cd ..; mv d away; mkdir d")
        func isReported(_ reason: String) throws -> Bool {
            try eventually { try Statectl.run(stage.daemon, "check").text.contains(reason) }
        }
        #expect(try isReported("was replaced by another one"))
        _ = try Statectl.run(stage.daemon, "reload")
        #expect(try isReported("is a mount missing?"))
        #expect(try stage.refuses("app/b", naming: "is a mount missing?"))
        // It is looked at again every second or so, and stays.
        try stage.shell("cd ..; touch d/.stated")
        #expect(try stage.entries(client) == ["a": bytes("1")])
        #expect(try Statectl.run(stage.daemon, "reload").exitCode == 0)
        #expect(try stage.becomeEqual(to: [:]) != nil)
    }

    @Test func `an empty directory in the place of a mount is refused at the start`() throws {
        let stage = try FileContainerDaemon()
        try stage.daemon.connect().set(bytes("1"), for: "app/a")
        try stage.daemon.stop()
        try stage.shell("cd ..; mv d away; mkdir d")
        let start = try stage.startThatFails()
        #expect(start.exitCode == 5 && start.errorText.contains("is a mount missing?"), "\(start)")
        try stage.shell("cd ..; rmdir d; mv away d")
        try stage.daemon.start()
        #expect(try stage.becomeEqual(to: ["a": bytes("1")]) != nil)
    }

    @Test func `keys that are there get files when a rule first says so, and files win`() throws {
        let directory = try TemporaryDirectory()
        mkdir(directory.path(of: "d"), 0o755)
        try directory.write("of the file", to: "d/b")
        let daemon = try Daemon([], directory: directory)
        for key in ["app/a", "app/b"] { try daemon.connect().set(bytes("stored"), for: Key(key)) }
        try daemon.stop()
        try directory.write(
            "{ rules: [{ keys: \"app/\", backing: \"file\", directory: \"\(directory.path(of: "d"))\" }] }",
            to: "c.json5"
        )
        let again = try Daemon(["--config", directory.path(of: "c.json5")], directory: directory)
        #expect(try again.connect().value(for: "app/a") == bytes("stored"))
        #expect(try again.connect().value(for: "app/b") == bytes("of the file"))
        #expect(try readFile(directory.path(of: "d/a")) == bytes("stored"))
    }

    // MARK: Without inotify

    /// Lets a program have so many inotify watches, in a user namespace of its own.
    private static func watches(_ count: Int) -> [String] {
        let line = "echo \(count) > /proc/sys/user/max_inotify_watches && exec \"$@\""
        return ["unshare", "-Ur", "/bin/sh", "-c", line, "sh"]
    }

    private static let canLimitWatches =
        (try? runCommand("unshare", watches(1).dropFirst() + ["true"]).exitCode) == 0

    @Test(.enabled(if: canLimitWatches, "there are no user namespaces for this user"))
    func `where no inotify watch is left, edits are found by looking, and check names the place`()
        throws
    {
        // The store needs more, one for each directory of its path, and so does without.
        let stage = try FileContainerDaemon(launcher: FileContainerTests.watches(2)) { directory in
            for name in ["d/a", "d/b"] { mkdir(directory.path(of: name), 0o755) }
        }
        func findings() throws -> String { try Statectl.run(stage.daemon, "check").text }
        let found = try findings()
        let unwatched = found.contains(stage.path("a")) ? "a" : "b"
        let watched = unwatched == "a" ? "b" : "a"
        #expect(found.contains(stage.path(unwatched)))
        #expect(found.contains("max_user_watches") && !found.contains(stage.path(watched)))
        #expect(
            eventually {
                stage.daemon.log.contains("\(unwatched) is ignored: no inotify watch is left")
            }
        )
        try stage.shell("echo 1 > \(unwatched)/k; mkdir \(unwatched)/c; echo 2 > \(unwatched)/c/k")
        #expect(try stage.becomeEqual() != nil)
        try stage.shell("echo 3 > \(unwatched)/c/k; rm \(unwatched)/k")
        #expect(try stage.becomeEqual() != nil)
        // A watch is free again.
        try stage.shell("rm -r \(watched) \(unwatched)/c; echo 4 > \(unwatched)/k")
        #expect(try stage.becomeEqual() != nil)
        #expect(try eventually { try !findings().contains("max_user_watches") })
        // Once for each of the two at most, not every 5 s.
        #expect(stage.daemon.log.split(separator: "is ignored").count <= 3)
    }
}

extension FileContainerDaemon {
    /// Waits until a write is refused with READONLY, naming something.
    func refuses(_ key: String, naming text: String) throws -> Bool {
        try waits { error in
            error?.code == .readOnly && error?.message.contains(text) ?? false
        } set: {
            key
        }
    }

    func accepts(_ key: String) throws -> Bool {
        try waits {
            $0 == nil
        } set: {
            key
        }
    }

    private func waits(
        until isDone: (StateError?) -> Bool,
        set key: () -> String
    ) throws -> Bool {
        let client = try daemon.connect()
        return eventually {
            var failure: StateError?
            do throws(StateError) { try client.set([1], for: Key(key())) } catch { failure = error }
            return isDone(failure)
        }
    }
}
