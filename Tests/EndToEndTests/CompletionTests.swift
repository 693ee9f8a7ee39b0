import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// What a shell offers for a word, and that it executes nothing of what others have named.
struct CompletionTests {
    private let daemon: Daemon
    private let directory: TemporaryDirectory

    init() throws {
        (daemon, directory) = (try Daemon(), try TemporaryDirectory())
    }

    /// What is offered.
    ///
    /// It waits 100 ms for the daemon, which may be too short beside others: then nothing is
    /// offered, and it is asked again.
    private func offered(_ words: String...) throws -> [String] {
        for _ in 0..<20 {
            let line = ["complete", "--socket", daemon.socketPath, "--"] + words
            let lines = try Statectl.run(line).lines
            if !lines.isEmpty { return lines }
        }
        return []
    }

    private func set(_ keys: String...) throws {
        let client = try daemon.connect()
        for key in keys { try client.set([49], for: Key(key)) }
    }

    private var programs: String {
        "/" + builtProgram("statectl").split(separator: "/").dropLast().joined(separator: "/")
    }

    // MARK: The verb

    @Test func `keys are offered by level, and only what begins as the word does`() throws {
        try set("audio/volume", "audio/mute", "ui", "ui/theme", "uix")
        #expect(try offered("get", "") == ["paudio/", "wui", "pui/", "wuix"])
        #expect(try offered("get", "ui") == ["wui", "pui/", "wuix"])
        #expect(try offered("get", "audio/") == ["waudio/mute", "waudio/volume"])
        #expect(try offered("get", "audio/v") == ["waudio/volume"])
        #expect(try offered("get", "ui", "--long", "a") == ["paudio/"])
        #expect(try offered("import", "--prefix=a") == ["p--prefix=audio/"])
        #expect(try offered("set", "ui", "") == [])
        #expect(try offered("get", "none") == [])
    }

    @Test func `a name that a shell would show as another one is not offered`() throws {
        try set("me/a\u{202E}b", "me/a\u{200B}b", "me/a\u{E0041}b", "me/ab")
        #expect(try offered("get", "me/") == ["wme/ab"])
    }

    @Test func `verbs and options are those of the help`() throws {
        #expect(try offered("heal") == ["whealth"])
        #expect(try offered("check") == ["wcheck", "wcheck-config"])
        #expect(try offered("list", "--lim") == ["w--limit"])
        #expect(try offered("--sock") == ["w--socket"])
        #expect(try offered("set", "a", "b", "--durability", "s") == ["wsynced"])
        #expect(try offered("import", "--format", "") == ["wlines", "wenv", "wini", "wproperties"])
        let help = try Statectl.run(["help", "verbs"]).lines
        for verb in try offered("") where verb != "whelp" {
            let line = "  \(verb.dropFirst())"
            #expect(help.contains { $0 == line || $0.hasPrefix(line + " ") }, "\(verb)")
        }
    }

    @Test func `revisions are those of the key, newest first, or the current one`() throws {
        let client = try daemon.connect()
        try client.set([49], for: "a")
        try client.set([50], for: "b")
        try client.set([51], for: "a")
        let changes = try client.history(of: "a", limit: 10).map { "w\($0.revision)" }
        #expect(changes.count == 2)
        #expect(try offered("get", "a", "--at", "") == changes)
        #expect(try offered("get", "a", "--at=") == changes.map { "w--at=" + $0.dropFirst() })
        #expect(try offered("list", "--at", "") == Array(changes.prefix(1)))
    }

    @Test func `handlers, locks, files and commands are offered where they are due`() throws {
        let result = try Statectl.run(
            daemon,
            "watch",
            "a/",
            "--name",
            "zones",
            "--snapshot",
            "--timeout",
            "1s",
            "--",
            "true"
        )
        #expect(result.exitCode == 0, "\(result)")
        try set("locks/backup/1")
        #expect(try offered("handlers", "--forget", "") == ["wzones"])
        #expect(try offered("watch", "--name", "z") == ["wzones"])
        #expect(try offered("lock", "b") == ["pbackup/"])
        #expect(try offered("import", "") == ["f"])
        #expect(try offered("--socket", "/tm") == ["f"])
        #expect(try offered("watch", "a/", "--", "gre") == ["c"])
    }

    @Test func `without a daemon, or with one that does not answer, there is nothing, and soon`()
        throws
    {
        try set("a")
        // The daemon is stopped: it accepts, and answers nothing.
        kill(daemon.pid, SIGSTOP)
        defer { kill(daemon.pid, SIGCONT) }
        let result = try Statectl.run(["complete", "--socket", daemon.socketPath, "--", "get", ""])
        #expect(result.exitCode == 0 && result.output.isEmpty && result.error.isEmpty)
        let none = ["complete", "--", "--socket", directory.path(of: "none"), "get", ""]
        let absent = try Statectl.run(none)
        #expect(absent.exitCode == 0 && absent.output.isEmpty && absent.error.isEmpty)
    }

    // MARK: Shells

    /// Keys that a shell would act upon, each with a first character of its own.
    private static let sharpKeys = [
        "a$(touch x)", "b`touch x`", "c d  e", "f'g'h", "i\"j\"", "k*", "l;touch x", "m&touch x",
        "n|touch x", "o>x", "p<(touch x)", "q!!", "r\\s", "t#u", "v=w:x@y", "{z,y}", "~A",
        "B${HOME}",
        "C/$(touch x)/`touch x`", "D:$(touch x)", "E[a-z]?", "F(touch x)", "ä $(touch x)", "-G",
        "=H",
    ]

    /// Types `statectl get`, how each key begins, and TAB; returns what that then printed.
    private func typed(_ shell: [String], beginnings: [(String, key: String)]) throws -> [String] {
        let client = try daemon.connect()
        for key in Self.sharpKeys { try client.set(Array("<\(key)>".utf8), for: Key(key)) }
        let output = directory.path(of: "output")
        let lines = beginnings.map { "statectl get -- \($0.0)\t" }.joined(separator: "\n")
        let command = ["python3", packageRoot + "/Tests/Completion/terminal.py", output] + shell
        let result = try RunningCommand(
            "env",
            (["-C", directory.path] + command).map { Array($0.utf8) },
            environment: [
                "STATED_SOCKET": daemon.socketPath, "PATH": "\(programs):/usr/bin:/bin",
                "PS1": "READY>", "TERM": "dumb", "LC_ALL": "C.UTF-8", "HOME": directory.path,
                "ROOT": packageRoot,
            ]
        )
        .finish(input: Array((lines + "\n").utf8), within: .seconds(180))
        #expect(result.exitCode == 0, "\(result)")
        let text = String(decoding: try readFile(output), as: UTF8.self)
        return text.split(separator: "\n").map(String.init).filter { $0 != "END" }
    }

    private func expectNames(_ shell: [String], _ quoted: [(String, key: String)]) throws {
        let beginnings = Self.sharpKeys.map { key -> (String, key: String) in
            let first = key.first ?? "?"
            return (["{", "~", "="].contains(first) ? "\\\(first)" : "\(first)", key)
        }
        let all = beginnings.filter { !$0.key.hasPrefix("C/") } + quoted
        let printed = try typed(shell, beginnings: all)
        #expect(printed == all.map { "<\($0.key)>" })
        #expect(access(directory.path(of: "x"), F_OK) != 0, "something was executed")
    }

    @Test func `bash names each key, and executes nothing`() throws {
        let file = try directory.write(
            "source \"$ROOT/Sources/statectl/Completion/Scripts/statectl.bash\"; PS1='READY>'\n",
            to: "rc"
        )
        try expectNames(
            ["bash", "--noprofile", "--rcfile", file, "-i"],
            [
                ("'a", "a$(touch x)"), ("\"b", "b`touch x`"), ("c\\ d", "c d  e"),
                ("'f", "f'g'h"), ("\"i", "i\"j\""), ("\"q", "q!!"), ("v=", "v=w:x@y"),
                ("v=w:", "v=w:x@y"), ("'v=w", "v=w:x@y"), ("D:", "D:$(touch x)"),
                ("a\\$\\(touch", "a$(touch x)"), ("C\t\t", "C/$(touch x)/`touch x`"),
            ]
        )
    }

    @Test(.enabled(if: isInstalled("zsh"), "zsh is not installed"))
    func `zsh names each key, and executes nothing`() throws {
        _ = try directory.write(
            """
            fpath=("$ROOT/Sources/statectl/Completion/Scripts" $fpath)
            autoload -Uz compinit && compinit -u -d "$HOME/.zcompdump"
            unsetopt beep; PS1='READY>'

            """,
            to: ".zshrc"
        )
        try expectNames(
            ["zsh", "-d", "-i"],
            [
                ("'a", "a$(touch x)"), ("c\\ d", "c d  e"), ("'c d", "c d  e"), ("v=w:", "v=w:x@y"),
                ("a\\$\\(touch", "a$(touch x)"), ("C\t\t", "C/$(touch x)/`touch x`"),
            ]
        )
    }

    @Test(.enabled(if: isInstalled("fish"), "fish is not installed"))
    func `fish names each key, and executes nothing`() throws {
        let start =
            "source $ROOT/Sources/statectl/Completion/Scripts/statectl.fish; "
            + "function fish_prompt; printf 'READY>'; end"
        try expectNames(
            ["fish", "--no-config", "--private", "-i", "-C", start],
            [
                ("'a", "a$(touch x)"), ("c\\ d", "c d  e"), ("'c d", "c d  e"), ("v=w:", "v=w:x@y"),
                ("C\t\t", "C/$(touch x)/`touch x`"),
            ]
        )
    }

    @Test(.enabled(if: isInstalled("shellcheck"), "shellcheck is not installed"))
    func `shellcheck finds nothing in the completion of bash`() throws {
        let file = packageRoot + "/Sources/statectl/Completion/Scripts/statectl.bash"
        let result = try runCommand("shellcheck", [file])
        #expect(result.exitCode == 0, "\(result)")
    }
}
