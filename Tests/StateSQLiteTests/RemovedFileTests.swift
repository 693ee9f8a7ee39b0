import Glibc
import StateContainers
import StateSQLite
import StateTestSupport
import Testing

/// A database whose files are gone: nothing is acknowledged that the next opening would not find.
struct RemovedFileTests {
    /// What happens to the files of `outer/inner/app.db`.
    enum Loss: CaseIterable {
        case databaseRemoved, allRemoved, databaseReplaced, directoryMoved, parentMoved, linkMoved

        /// The path to open.
        var name: String { self == .linkMoved ? "link/app.db" : "outer/inner/app.db" }

        func happen(in directory: TemporaryDirectory) throws {
            let path = directory.path(of: "outer/inner/app.db")
            switch self {
            case .databaseRemoved: try #require(unlink(path) == 0)
            case .allRemoved:
                for ending in ["", "-wal", "-shm", ".lock"] { unlink(path + ending) }
                for name in names(in: path + "-log") { unlink(path + "-log/" + name) }
            case .databaseReplaced:
                try #require(rename(directory.write("", to: "other"), path) == 0)
            case .directoryMoved:
                try #require(
                    rename(directory.path(of: "outer/inner"), directory.path(of: "moved")) == 0
                )
            case .parentMoved:
                try #require(rename(directory.path(of: "outer"), directory.path(of: "moved")) == 0)
            case .linkMoved:
                symlink(directory.path(of: "outer"), directory.path(of: "new"))
                try #require(rename(directory.path(of: "new"), directory.path(of: "link")) == 0)
            }
        }
    }

    @Test(arguments: Loss.allCases)
    func `a change of a database that is gone is refused by name`(loss: Loss) throws {
        let directory = try TemporaryDirectory()
        for name in ["outer", "outer/inner"] { mkdir(directory.path(of: name), 0o700) }
        symlink(directory.path(of: "outer/inner"), directory.path(of: "link"))
        let path = directory.path(of: loss.name)
        let state = try SQLiteState(0, key: "n", in: SQLiteDatabase(path: path))
        for number in 1...3 { try state ~> number }
        try loss.happen(in: directory)
        for _ in 0..<3 {
            let error = #expect(throws: StateError.self) { try state ~> { $0 += 1 } }
            #expect(error?.code == .readOnly && error?.message.contains("app.db") == true)
            #expect(error?.message.contains("restart") == true, "\(error?.message ?? "")")
        }
        #expect(state.value == 3)
    }
}
