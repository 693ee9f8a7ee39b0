import StateEngine

/// The backups that connections read, and the pause of compaction while there is one.
///
/// Used only by the loop thread.
final class Backups {
    private let keyspace: LocalKeyspace
    /// The numbers of the connections.
    private var readers: Set<Int> = []

    init(_ keyspace: LocalKeyspace) { self.keyspace = keyspace }

    /// Pauses compaction for a backup that a connection reads from now on.
    func begin(_ reading: BackupReading, for connection: Connection) {
        connection.session.backup = reading
        readers.insert(connection.number)
    }

    /// Ends the backup of a connection, if it reads one; with the last backup the pause ends.
    ///
    /// Called after the last piece, and for END, RESET, an error and the end of the connection.
    func end(_ connection: Connection) {
        guard readers.remove(connection.number) != nil else { return }
        connection.session.backup = nil
        if readers.isEmpty { keyspace.compaction?.resumeCompaction() }
    }
}
