public import StateEngine
import StatePlatform

/// A directory with one file for each key: `FileState(…, in: StateDirectory(path: "conf"))`.
///
/// All `StateDirectory` objects of a directory in a process share one keyspace, which closes when
/// nobody holds it any more: no such object, container, query or watch. While it is open, no other process can open it.
///
/// A file is the value itself. Edits by editors and scripts arrive as changes whose cause is
/// `file`. A file keeps its mode and owner when its value changes; a new file has mode 0600.
public final class StateDirectory: Sendable {
    /// The path of the directory, as it was given.
    public let path: String
    /// The entries.
    public let keyspace: LocalKeyspace

    /// Opens a directory; creates it with mode 0700 if it is missing.
    ///
    /// - Parameters:
    ///   - path: The directory of the files.
    ///   - isShared: Whether users other than root and this process's user may write the directory.
    ///     The first object that opens it decides.
    /// - Throws: ``StateError/Code/locked``, naming the process that has it open;
    ///   ``StateError/Code/storage`` if it cannot be created, read or watched, or if others may
    ///   write it. No file of a key has changed then.
    /// - Complexity: O(*n*) in the bytes of the files, unless it was open.
    public init(path: String, isShared: Bool = false) throws(StateError) {
        self.path = path
        keyspace = try StateDirectory.open(path, isShared: isShared)
    }

    /// The same in a task, which waits without blocking its thread.
    public init(path: String, isShared: Bool = false) async throws(StateError) {
        self.path = path
        keyspace = try await SharedKeyspace.opening { () throws(StateError) in
            try StateDirectory.open(path, isShared: isShared)
        }
    }

    private static func open(
        _ path: String,
        isShared: Bool
    ) throws(StateError) -> LocalKeyspace {
        if mkdir(path, 0o700) != 0, errno != EEXIST {
            throw StateError(.storage, "\(path) cannot be created: \(lastSystemError())")
        }
        let identity = try SharedKeyspace.Identity(kind: "files", directory: path)
        return try SharedKeyspace.open(identity) {
            FileBacking(directory: path, isShared: isShared)
        }
    }
}
