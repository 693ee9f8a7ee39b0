public import StateEngine

/// A program's own database file: `SQLiteState(0.5, key: "audio/volume", in: SQLiteDatabase(path:
/// "app.db"))`.
///
/// All `SQLiteDatabase` objects of a file in a process share one keyspace, which closes when the
/// last of them is released. While it is open, no other process can open it. The format is the one
/// that `stated` serves.
public final class SQLiteDatabase: Sendable {
    /// The path of the file, as it was given.
    public let path: String
    private let shared: SharedKeyspace

    /// The entries; valid as long as this object lives.
    public var keyspace: LocalKeyspace { shared.keyspace }

    /// Opens a database in an existing directory; creates it if it is missing.
    ///
    /// `<path>.lock` is its owner's lock.
    ///
    /// - Throws: ``StateError/Code/locked``, naming the process that has it open;
    ///   ``StateError/Code/corrupt``, ``StateError/Code/newerFormat`` or
    ///   ``StateError/Code/storage``. The file is unchanged.
    /// - Complexity: O(*n*) in the bytes of the history, unless it was open.
    public init(path: String) throws(StateError) {
        let identity = try SharedKeyspace.Identity(kind: "sqlite", file: path)
        self.path = path
        shared = try SharedKeyspace.open(identity) { SQLiteBacking(path: path) }
    }
}
