import StateContainers
import StateTestSupport
import Testing

/// What people find in the files of containers.
struct EditedFileTests {
    private struct Server: Codable, Hashable, Sendable {
        var port = 80
        var hosts = ["a", "b"]
        var limits: [String: Int] = [:]
        var owner: String?
    }

    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func opened() throws -> StateDirectory {
        try StateDirectory(path: directory.path(of: "conf"))
    }

    private func text(_ key: String) throws -> String {
        String(decoding: try readFile(directory.path(of: "conf/\(key)")), as: UTF8.self)
    }

    private static let lines = """
        {
          "hosts": [
            "a",
            "b"
          ],
          "limits": {},
          "port": 81
        }

        """

    @Test func `an object is written over several lines, and is read as it was`() throws {
        let files = try opened()
        let server = try FileState(Server(), key: "server", in: files)
        try server ~> { $0.port = 81 }
        #expect(try text("server") == Self.lines)
        let again = try PersistentState(Server(), key: "server", in: files.keyspace)
        #expect(again.value == Server(port: 81))
    }

    @Test func `so it is by a container, a property and a query of the directory`() throws {
        let files = try opened()
        try PersistentState(Server(), key: "server", in: files.keyspace) ~> { $0.port = 81 }
        #expect(try text("server") == Self.lines)
        let query = StateQuery("all/", as: Server.self)
        let rows = try files.keyspace.query(query)
        try rows.insert(Server(), id: "all/x")
        try rows.update(id: "all/x") { $0.port = 81 }
        #expect(try text("all/x") == Self.lines)
    }

    @Test func `an array has a line for each element, and the version a line of its own`() throws {
        let files = try opened()
        try FileState([Int](), key: "list", in: files) ~> [1, 2]
        #expect(try text("list") == "[\n  1,\n  2\n]\n")
        try FileState([1], key: "empty", in: files) ~> []
        #expect(try text("empty") == "[]\n")
        let codec = StateCodec<Int>.versioned(2, migrations: [StateMigration(from: 1) { _ in }])
        try FileState(0, key: "number", in: files, codec: codec) ~> 5
        #expect(try text("number") == "{\n  \"$value\": 5,\n  \"$version\": 2\n}\n")
        #expect(try FileState(0, key: "number", in: files, codec: codec).value == 5)
    }

    @Test func `a scalar is the whole file, without a line break`() throws {
        let files = try opened()
        try FileState(0.5, key: "volume", in: files) ~> 0.7
        try FileState("", key: "theme", in: files) ~> "dark"
        // A string that looks like an object is a string.
        try FileState("", key: "text", in: files) ~> #"{"a":[1]}"#
        try FileState([UInt8](), key: "bytes", in: files) ~> [0x5B, 0x5D]
        try FileState(String??.none, key: "optional", in: files) ~> "x"
        #expect(try text("volume") == "0.7")
        #expect(try text("theme") == "dark")
        #expect(try text("text") == #"{"a":[1]}"#)
        #expect(try text("bytes") == "[]")
        #expect(try text("optional") == #""x""#)
    }

    @Test func `a codec of one's own writes what it writes`() throws {
        let codec = StateCodec<[Int]> { (_) throws(StateError) in
            Array("[1,2]".utf8)
        } decode: { (_) throws(StateError) in
            [1, 2]
        }
        try FileState([], key: "list", in: opened(), codec: codec) ~> [1, 2]
        #expect(try text("list") == "[1,2]")
    }
}
