import Glibc
import StateContainers
import StateTestSupport
import Testing

/// One keyspace for each directory of the process.
struct StateDirectoryTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    @Test func `a directory has one keyspace, however it is spelled`() throws {
        let place = directory.path(of: "conf")
        let first = try StateDirectory(path: place)
        symlink(place, directory.path(of: "link"))
        for path in [place, place + "/", directory.path + "/./conf", directory.path(of: "link")] {
            #expect(try StateDirectory(path: path).keyspace === first.keyspace)
        }
        let other = try StateDirectory(path: directory.path(of: "other"))
        #expect(other.keyspace !== first.keyspace)
    }

    @Test func `it is closed when the last reference goes, and can be opened again`() throws {
        let place = directory.path(of: "conf")
        var epochs: Set<Epoch> = []
        for number in 0..<5 {
            let opened = try StateDirectory(path: place)
            try opened.keyspace.apply([.set("k", Array("\(number)".utf8))])
            epochs.insert(opened.keyspace.epoch)
        }
        #expect(epochs.count == 5)
        #expect(try readFile(place + "/k") == Array("4".utf8))
    }

    @Test func `threads that open and let go at once never meet a lock`() async throws {
        let place = directory.path(of: "conf")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<25 {
                        let opened = try StateDirectory(path: place)
                        #expect(opened.keyspace.keyCount == 0)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    @Test func `its last reference may go in an answer`() throws {
        let place = directory.path(of: "conf")
        let held = Observed<StateDirectory?>(try StateDirectory(path: place))
        held.current?.keyspace.submit([.set("k", [49])]) { _ in held.update { $0 = nil } }
        #expect(held.wait { $0 == nil })
        #expect(try StateDirectory(path: place).keyspace.entry(for: "k")?.value == [49])
    }

    @Test func `a directory that cannot be made is refused by name`() throws {
        let path = directory.path(of: "absent/conf")
        let error = try #require(throws: StateError.self) { try StateDirectory(path: path) }
        #expect(error.code == .storage && error.message.contains(path))
    }
}
