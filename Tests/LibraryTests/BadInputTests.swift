import Glibc
import StateClient
import StateContainers
import StateSQLite
import StateTestSupport
import Testing

/// What is stored, or asked for, and is none: an error by name, nothing overwritten, nothing hung.
struct BadInputTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func text(_ name: String) throws -> String {
        String(decoding: try readFile(directory.path(of: name)), as: UTF8.self)
    }

    private struct Settings: Codable, Sendable {
        var name = "none"
        var sizes = [1, 2]
    }

    @Test(
        arguments: [
            ("", StateError.Code.undecodable), ("{\"name\":\"a\",\"si", .undecodable),
            ("five", .undecodable), ("{\"$version\":9,\"name\":\"a\"}", .newerFormat),
        ]
    )
    func `a file that is empty, truncated, something else or newer is an error and stays`(
        content: String,
        code: StateError.Code
    ) throws {
        try directory.write(content, to: "settings")
        let files = try StateDirectory(path: directory.path)
        let found = #expect(throws: StateError.self) {
            try FileState(Settings(), key: "settings", in: files)
        }
        let error = try #require(found)
        #expect(error.code == code)
        #expect(error.message.contains("settings"))
        let state = try FileState(
            Settings(),
            key: "settings",
            in: files,
            acceptsUnreadable: true
        )
        #expect(throws: error) { try state.modify { $0.name = "b" } }
        #expect(throws: error) { try state.modify(Settings()) }
        #expect(throws: error) { try withTransaction { tx in tx[state].name = "b" } }
        #expect(state.value.name == "none")
        #expect(try text("settings") == content)
        try state.replace(Settings(name: "c"))
        #expect(state.status == .current)
        let lines = ["{", #"  "name": "c","#, #"  "sizes": ["#, "    1,", "    2", "  ]", "}", ""]
        #expect(try text("settings") == lines.joined(separator: "\n"))
    }

    @Test func `a directory in the place of a file refuses its writer, and stays`() throws {
        mkdir(directory.path(of: "theme"), 0o700)
        try directory.write("1", to: "theme/.hidden")
        let files = try StateDirectory(path: directory.path)
        let theme = try FileState("blue", key: "theme", in: files)
        #expect(theme.value == "blue")
        #expect(throws: StateError.self) { try theme.modify("red") }
        #expect(theme.value == "blue")
        #expect(try text("theme/.hidden") == "1")
        try FileState("", key: "other", in: files).modify("goes on")
    }

    @Test func `a key that leaves the directory is a file in it`() throws {
        let files = try StateDirectory(path: directory.path(of: "conf"))
        try FileState("", key: "../x", in: files).modify("inside")
        #expect(access(directory.path(of: "x"), F_OK) != 0)
        #expect(try text("conf/%2E%2E/x") == "inside")
    }

    @Test(arguments: [String(repeating: "n", count: 300), "a/below"])
    func `a key that the file system cannot hold is refused by name`(name: String) throws {
        let files = try StateDirectory(path: directory.path)
        try FileState("", key: "a", in: files).modify("file")
        let state = try FileState("blue", key: Key(name), in: files)
        let error = #expect(throws: StateError.self) { try state.modify("red") }
        #expect(error?.code == .rejected)
        #expect(state.value == "blue")
        #expect(try text("a") == "file")
    }

    @Test func `a file that is replaced again and again is never seen in part`() throws {
        try directory.write(String(repeating: "a", count: 50_000), to: "big")
        let files = try StateDirectory(path: directory.path)
        let state = try FileState("", key: "big", in: files)
        let torn = Observed(0)
        let observation = state.observe { change in
            if change.new.utf8.count != 50_000 || Set(change.new.utf8).count != 1 {
                torn.update { $0 += 1 }
            }
        }
        for letter in "bcdefghijklmnopqrstuvwxyz" {
            let content = String(repeating: letter, count: 50_000)
            let new = try directory.write(content, to: ".new")
            #expect(rename(new, directory.path(of: "big")) == 0)
        }
        #expect(state.waits { $0.first == "z" })
        #expect(torn.current == 0)
        observation.cancel()
    }

    @Test func `a value that the daemon refuses leaves the old one`() throws {
        let server = try ServedKeyspace()
        let keyspace = try RemoteKeyspace(socket: server.socketPath)
        let state = try RemoteState("a", key: "k", in: keyspace)
        try state ~> "b"
        let large = String(repeating: "c", count: (8 << 20) + 1)
        let found = #expect(throws: StateError.self) { try state.modify(large) }
        #expect(found?.code == .tooBig)
        let other = #expect(throws: StateError.self) { try withTransaction { $0[state] = large } }
        #expect(other?.code == .tooBig)
        #expect(state.value == "b")
        #expect(state.status == .current)
        try state ~> "d"
        #expect(state.value == "d")
    }
}
