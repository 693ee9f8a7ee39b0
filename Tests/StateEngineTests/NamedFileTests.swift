import Glibc
import StateEngine
import StateSystem
import StateTestSupport
import Testing

/// Files that are opened by a name.
struct NamedFileTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    @Test func `a pipe whose writer is silent is opened, and its reads wait`() throws {
        let path = directory.path(of: "f")
        try #require(mkfifo(path, 0o600) == 0)
        let writer = open(path, O_RDWR | O_CLOEXEC)
        let file = try NamedFile.open(path, O_RDONLY, as: .stream)
        defer { close(file) }
        #expect(fcntl(file, F_GETFL) & O_NONBLOCK == 0)
        #expect(write(writer, [1] as [UInt8], 1) == 1 && close(writer) == 0)
        #expect(NamedFile.contents(of: file, limit: 10) == [1])
    }

    @Test func `what a writer left in a pipe is not lost by a look at it`() throws {
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        #expect(write(ends[1], [1, 2] as [UInt8], 2) == 2 && close(ends[1]) == 0)
        let file = try NamedFile.open("/dev/fd/\(ends[0])", O_RDONLY, as: .stream)
        defer { for end in [file, ends[0]] { close(end) } }
        #expect(NamedFile.contents(of: file, limit: 10) == [1, 2])
    }

    @Test func `only the device that is empty stands for a file`() throws {
        close(try NamedFile.open("/dev/null", O_RDONLY, as: .fileOrNull))
        for path in ["/dev/zero", "/dev/null"] {
            let kind = path == "/dev/null" ? NamedFile.Kind.file : .fileOrNull
            let failure = #expect(throws: OpenFailure.self) {
                try NamedFile.open(path, O_RDONLY, as: kind)
            }
            #expect(failure?.sentence(path) == "\(path) is a device, not a file")
        }
    }

    @Test func `no more is read of a file than of interest`() throws {
        let path = try directory.write([UInt8](repeating: 7, count: 1 << 20), to: "f")
        let file = try NamedFile.open(path, O_RDONLY)
        defer { close(file) }
        let count = try #require(NamedFile.contents(of: file, limit: 100)).count
        #expect(count > 100 && count <= 64 << 10)
    }
}
