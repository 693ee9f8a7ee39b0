import Glibc
public import StateEngine

/// A directory with one file for each key: `FileState(…, in: StateDirectory(path: "conf"))`.
///
/// However often a directory is opened in a process, it has one keyspace, which is closed when the last `StateDirectory` of it
/// goes; while it is open no other process can open it.
///
/// A file is the value as it is; what editors and scripts do to it arrives as a change whose cause is `file`. Its mode and owner
/// stay when its value changes; a new file has mode 0600.
public final class StateDirectory: Sendable {
    /// The directory, as it was given.
    public let path: String
    private let shared: SharedKeyspace

    /// The entries; good as long as this object lives.
    public var keyspace: LocalKeyspace { shared.keyspace }

    /// Opens a directory, which is made where it is absent, with mode 0700.
    ///
    /// - Parameters:
    ///   - path: Where the files are.
    ///   - isShared: Whether others than root and this process's user may write the directory; the first to open it decides.
    /// - Throws: ``StateError/Code/locked``, naming the process that has it open; ``StateError/Code/storage``, where it cannot
    ///   be made, read or watched, or others may write it. No file of a key was touched then.
    /// - Complexity: O(*n*) in the bytes of the files, where it was not open.
    public init(path: String, isShared: Bool = false) throws(StateError) {
        if mkdir(path, 0o700) != 0, errno != EEXIST {
            throw StateError(.storage, "\(path) cannot be made: \(lastSystemError())")
        }
        let identity = try SharedKeyspace.Identity(kind: "files", directory: path)
        self.path = path
        shared = try SharedKeyspace.open(identity) {
            FileBacking(directory: path, isShared: isShared)
        }
    }
}
