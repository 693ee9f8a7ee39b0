public import StateEngine

/// A program's own database file: `SQLiteState(0.5, key: "audio/volume", in: SQLiteDatabase(path: "app.db"))`.
///
/// However often a file is opened in a process, it has one keyspace, which is closed when the last `SQLiteDatabase` of it goes;
/// while it is open no other process can open it. The format is the one that `stated` serves.
public final class SQLiteDatabase: Sendable {
    /// The file, as it was given.
    public let path: String
    private let shared: SharedKeyspace

    /// The entries; good as long as this object lives.
    public var keyspace: LocalKeyspace { shared.keyspace }

    /// Opens a database, which is made where it is absent, in a directory that is there; `<path>.lock` is its owner's lock.
    ///
    /// - Throws: ``StateError/Code/locked``, naming the process that has it open; ``StateError/Code/corrupt``,
    ///   ``StateError/Code/newerFormat`` or ``StateError/Code/storage``. It is left as it is.
    /// - Complexity: O(*n*) in the bytes of the history, where it was not open.
    public init(path: String) throws(StateError) {
        let identity = try SharedKeyspace.Identity(kind: "sqlite", file: path)
        self.path = path
        shared = try SharedKeyspace.open(identity) { SQLiteBacking(path: path) }
    }
}
