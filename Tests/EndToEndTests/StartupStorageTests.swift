import Glibc
import StateTestSupport
import Testing

/// A data directory that cannot be used, and one that can.
struct StartupStorageTests {
    let scratch: TemporaryDirectory
    let socket: String
    let data: String

    init() throws {
        scratch = try TemporaryDirectory()
        socket = scratch.path(of: "s.sock")
        data = scratch.path(of: "data")
    }

    private func serving() throws -> Program {
        let program = try Program([builtProgram("stated"), "--socket", socket, "--data", data])
        try program.waitForErrors(containing: " serves ")
        return program
    }

    @Test func `values outlive a stop`() throws {
        let first = try serving()
        try RawSocket.connected(to: socket).ask("SET audio/volume 0.7", awaiting: "+OK\r\n")
        first.send(SIGTERM)
        #expect(try first.end() == 0)
        let second = try serving()
        #expect(second.errors.contains(": 1 keys at revision 1 from \(data), loaded in "))
        try RawSocket.connected(to: socket).ask("GET audio/volume", awaiting: "\r\n0.7\r\n")
    }

    @Test func `a missing data directory is made for the owner only`() throws {
        let daemon = try serving()
        defer { _ = daemon }
        #expect(fileStatus(data)?.st_mode == S_IFDIR | 0o700)
    }

    // Root may write anywhere but where the kernel has no files to give: /sys, /proc.
    @Test(arguments: ["/sys/kernel", "/sys/stated", "/proc/self/stated/data"])
    func `a data directory that is not writable is refused by name`(directory: String) throws {
        let program = try Program([builtProgram("stated"), "--socket", socket, "--data", directory])
        #expect(try program.end() == 5)
        #expect(program.errors.hasPrefix("stated: error: "))
        #expect(program.errors.contains(directory))
        #expect(fileStatus(socket) == nil)
    }

    @Test func `a data directory that is a file is refused by name`() throws {
        try write([1, 2, 3], to: data)
        let program = try Program([builtProgram("stated"), "--socket", socket, "--data", data])
        #expect(try program.end() == 5)
        #expect(program.errors.contains("\(data) failed: Not a directory"))
        #expect(try readFile(data) == [1, 2, 3])
    }

    @Test func `data that a running daemon owns is refused with its pid`() throws {
        let owner = try serving()
        let other = scratch.path(of: "other.sock")
        let program = try Program([builtProgram("stated"), "--socket", other, "--data", data])
        #expect(try program.end() == 3)
        #expect(program.errors.contains(data))
        #expect(program.errors.contains("process \(owner.pid)\n"))
        #expect(fileStatus(other) == nil)
        try RawSocket.connected(to: socket).ask("SET a 1", awaiting: "+OK\r\n")
    }

    @Test func `data of a newer format is refused by name and left as it is`() throws {
        let writer = try serving()
        try RawSocket.connected(to: socket).ask("SET a 1", awaiting: "+OK\r\n")
        writer.send(SIGTERM)
        #expect(try writer.end() == 0)
        // The format is SQLite's user_version: https://www.sqlite.org/fileformat2.html#user_version_number
        let database = data + "/stated.db"
        var bytes = try readFile(database)
        bytes.replaceSubrange(60..<64, with: [0, 0, 0, 99])
        try write(bytes, to: database)
        let program = try Program([builtProgram("stated"), "--socket", socket, "--data", data])
        #expect(try program.end() == 5)
        #expect(program.errors.contains("\(database) has format 99"))
        #expect(try readFile(database) == bytes)
        #expect(fileStatus(socket) == nil)
    }
}
