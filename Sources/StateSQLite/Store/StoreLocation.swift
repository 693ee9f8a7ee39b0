import CLinux
import StateEngine
import StateLog
import StatePlatform
import StateSystem

/// The files of one store.
package struct StoreLocation: Sendable {
    /// The directory of the files.
    package let directory: String
    /// The database; SQLite puts `-wal` and `-shm` beside it.
    package let database: String
    /// The owner's lock.
    package let lock: String
    /// Whether the directory belongs to the store and is created with it.
    let ownsDirectory: Bool

    /// The store of a data directory.
    package init(directory: String) {
        // The process may go to another directory.
        let directory = absolutePath(directory)
        self.directory = directory
        database = directory + "/stated.db"
        lock = directory + "/lock"
        ownsDirectory = true
    }

    /// A store in its own file.
    package init(path: String) {
        let path = path == SQLiteDatabase.memoryPath ? path : absolutePath(path)
        let parent = path.lastIndex(of: "/").map { path[..<$0] }
        directory = parent.map { $0.isEmpty ? "/" : String($0) } ?? "."
        database = path
        lock = path + ".lock"
        ownsDirectory = false
    }

    /// An existing store: that of a data directory, or one in its own file.
    package init(existing path: String) {
        var status = stat()
        let isFile = stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        self = isFile ? StoreLocation(path: path) : StoreLocation(directory: path)
    }

    /// SQLite's own log.
    package var log: String { database + "-wal" }
    /// What a restore or a salvage writes until it has all values.
    package var unfinished: String { database + ".salvage" }
    /// The same, or what it is made of.
    var unfinishedFiles: [String] { [unfinished, unfinished + ".new"] }
    /// The file of the ``BootMark``.
    package var bootMark: String { database + "-boot" }
    /// The index of SQLite's own log, which processes share.
    package var logIndex: String { database + "-shm" }

    /// The directory of the store's log.
    package var logDirectory: String {
        ownsDirectory ? directory + "/log" : database + "-log"
    }

    /// The same while a restore or a salvage writes it.
    package var unfinishedLog: String {
        ownsDirectory ? directory + "/log.salvage" : database + "-log.salvage"
    }

    /// Checks that the database has at least the size of a page if SQLite's own log exists: SQLite
    /// deletes that of an empty database.
    ///
    /// - Throws: ``StateError/Code/corrupt``, naming the database.
    func requirePage() throws(StateError) {
        guard let byteCount = fileByteCount(database), byteCount < StoreHeader.pageByteCount,
            fileByteCount(log) ?? 0 > 0
        else { return }
        throw StateError.damaged(
            database,
            "it is not an SQLite database: it has \(byteCount) bytes"
        )
    }

    /// Creates the directory if it belongs to the store and is missing, and checks that it is
    /// suitable for a store.
    ///
    /// - Throws: ``StateError/Code/storage``, naming the directory and the problem.
    package func prepare() throws(StateError) {
        guard database != SQLiteDatabase.memoryPath else {
            throw StateError(
                .storage,
                "'\(database)' is not a file; for a database in memory, use SQLiteDatabase.inMemory"
            )
        }
        if ownsDirectory, mkdir(directory, 0o700) != 0, errno != EEXIST {
            throw StateError(.storage, "\(directory) cannot be created: \(lastSystemError())")
        }
        let place = clinux_open_place(directory)
        guard place >= 0 else {
            throw StateError(.storage, "\(directory) cannot be opened: \(lastSystemError())")
        }
        defer { close(place) }
        var status = stat()
        guard fstat(place, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw StateError(.storage, "\(directory) is not a directory")
        }
        try requireFiles()
        if let name = NetworkFileSystem.name(of: place, device: status.st_dev) {
            throw StateError(
                .storage,
                "\(directory) is on a network file system (\(name)): its locks are unreliable"
            )
        }
        guard faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) == 0 else {
            throw StateError(.storage, "\(directory) is not writable: \(lastSystemError())")
        }
    }

    /// Checks that what has the name of a file of the store is one: SQLite opens its files by their
    /// names, and would wait for the other end of a FIFO.
    ///
    /// - Throws: ``StateError/Code/storage``, naming what is not a file.
    package func requireFiles() throws(StateError) {
        let names = [
            database, log, logIndex, database + "-journal", bootMark, lock,
        ]
        for name in names + logFiles {
            do throws(OpenFailure) { try NamedFile.require(name) } catch {
                throw StateError(.storage, error.sentence(name))
            }
        }
    }

    /// What is in the directory of the log.
    private var logFiles: [String] {
        guard let names = try? LogDirectory(reading: logDirectory).names() else { return [] }
        return names.map { logDirectory + "/" + $0 }
    }

    /// Opens a file of the store for reading.
    ///
    /// - Returns: Its descriptor; nil if it is missing.
    /// - Throws: ``StateError/Code/storage``, naming the file.
    static func open(_ path: String) throws(StateError) -> Int32? {
        do throws(OpenFailure) { return try NamedFile.open(path, O_RDONLY | O_NOFOLLOW) } catch {
            if error.isAbsence { return nil }
            throw StateError(.storage, error.sentence(path))
        }
    }
}
