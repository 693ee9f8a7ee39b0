public import StateContainers
import StateEngine

extension StateStorage {
    /// A database file of the program, opened at the first use; see ``SQLiteDatabase``.
    ///
    /// - Parameters:
    ///   - path: The file, in an existing directory.
    ///   - history: How many past changes it keeps.
    /// - Returns: The storage; nothing is opened yet.
    public static func database(
        _ path: String,
        history: HistoryLimits = HistoryLimits()
    ) -> StateStorage {
        StateStorage("database \(path)") { () throws(StateError) in
            try SQLiteDatabase(path: path, history: history).keyspace
        }
    }
}
