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
                        let opened = try await StateDirectory(path: place)
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

    @Test func `a container keeps a directory of one expression open, and the last one closes it`()
        throws
    {
        let place = directory.path(of: "conf")
        do {
            let state = try PersistentState(0, key: "n", in: StateDirectory(path: place).keyspace)
            try state ~> 1
            #expect(throws: StateError.self) {
                try LocalKeyspace(backing: FileBacking(directory: place))
            }
            #expect(try readFile(place + "/n") == Array("1".utf8))
        }
        let later = try LocalKeyspace(backing: FileBacking(directory: place))
        #expect(later.entry(for: "n")?.value == Array("1".utf8))
    }

    @Test func `a directory that cannot be made is refused by name`() throws {
        let path = directory.path(of: "absent/conf")
        let error = try #require(throws: StateError.self) { try StateDirectory(path: path) }
        #expect(error.code == .storage && error.message.contains(path))
    }

    /// What happens to the directory `outer/conf`.
    enum Loss: CaseIterable {
        case removed, moved, replaced, parentMoved, linkMoved
    }

    @Test(arguments: Loss.allCases)
    func `never silent: a change in a directory that is gone is refused by name`(loss: Loss) throws
    {
        let outer = directory.path(of: "outer")
        let place = outer + "/conf"
        let link = directory.path(of: "link")
        let away = directory.path(of: "away")
        for path in [outer, place, directory.path(of: "new")] { mkdir(path, 0o700) }
        symlink(place, link)
        let opened = try StateDirectory(path: loss == .linkMoved ? link : place)
        let state = try FileState(0, key: "sub/n", in: opened)
        try state ~> 1
        switch loss {
        case .removed: _ = try runCommand("rm", ["-rf", place])
        case .moved: try #require(rename(place, away) == 0)
        case .replaced:
            try #require(rename(place, away) == 0 && rename(directory.path(of: "new"), place) == 0)
        case .parentMoved: try #require(rename(outer, away) == 0)
        case .linkMoved:
            unlink(link)
            symlink(directory.path(of: "new"), link)
        }
        for number in 2...4 {
            let error = #expect(throws: StateError.self) { try state ~> number }
            #expect(error?.code == .readOnly)
            #expect(error?.message.contains(opened.path) == true, "\(error?.message ?? "")")
            #expect(error?.message.contains("restart") == true)
        }
        guard loss == .moved else { return }
        try #require(rename(away, place) == 0)
        try state ~> 5
        #expect(try readFile(place + "/sub/n") == Array("5".utf8))
    }
}
