import Glibc
import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// A daemon whose keys below `app/` live in the files of a directory.
final class FileContainerDaemon {
    let directory: TemporaryDirectory
    let daemon: Daemon

    /// Starts one, with more rules than the one for `app/`.
    init(
        rules: String = "",
        launcher: [String] = [],
        prepare: (TemporaryDirectory) throws -> Void = { _ in }
    ) throws {
        let directory = try TemporaryDirectory()
        self.directory = directory
        mkdir(directory.path(of: "d"), 0o755)
        try prepare(directory)
        try directory.write(
            """
            { rules: [
              { keys: "app/", backing: "file", directory: "\(directory.path(of: "d"))" },
              \(rules)
            ] }
            """,
            to: "stated.json5"
        )
        daemon = try Daemon(
            ["--config", directory.path(of: "stated.json5")],
            directory: directory,
            launcher: launcher
        )
        // It takes connections before it has read anything.
        _ = try daemon.connect().status()
    }

    func path(_ name: String) -> String { directory.path(of: "d/\(name)") }

    /// Runs a line of shell in the directory of the files.
    func shell(_ line: String) throws {
        let result = try runCommand(
            "bash",
            ["-ec", "cd '\(directory.path(of: "d"))'; \(line)"],
            environment: [
                "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@t", "GIT_COMMITTER_NAME": "t",
                "GIT_COMMITTER_EMAIL": "t@t", "GIT_CONFIG_GLOBAL": "/dev/null",
            ]
        )
        try #require(result.exitCode == 0, "\(result)")
    }

    /// What the files hold, by name.
    func files() throws -> [String: [UInt8]] {
        let root = directory.path(of: "d")
        let names = try runCommand(
            "find",
            [
                root, "-name", ".*", "-prune", "-o", "-type", "f", "-not", "-name", "*~",
                "-printf", "%P\\n",
            ]
        )
        .lines
        var found: [String: [UInt8]] = [:]
        for name in names {
            if let bytes = try? readFile("\(root)/\(name)") { found[name] = bytes }
        }
        return found
    }

    /// What the daemon says, by name below `app/`.
    func entries(_ client: Client) throws -> [String: [UInt8]] {
        let rows = try client.call([Array("STATE.LIST".utf8), Array("app/".utf8)]).elements ?? []
        var found: [String: [UInt8]] = [:]
        for row in rows {
            guard let row = row.elements, let key = row[0].byteValue else { continue }
            found[String(decoding: key.dropFirst(4), as: UTF8.self)] = row[1].byteValue
        }
        return found
    }

    /// Starts on the same data a daemon that does not come to serve.
    func startThatFails() throws -> CommandResult {
        try runCommand(
            builtProgram("stated"),
            [
                "--config", directory.path(of: "stated.json5"), "--socket", daemon.socketPath,
                "--data", daemon.dataPath,
            ]
        )
    }

    /// Waits until files and entries are equal.
    ///
    /// - Returns: How long that took; nil where it took too long.
    func becomeEqual(
        within limit: Duration = .seconds(20),
        to expected: [String: [UInt8]]? = nil
    ) throws -> Duration? {
        let client = try daemon.connect()
        let expected = try expected ?? files()
        let start = ContinuousClock.now
        while true {
            let found = try entries(client)
            let time = ContinuousClock.now - start
            if found == expected { return time }
            guard time < limit else { return nil }
            poll(nil, 0, 5)
        }
    }
}
