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
        StateStorage(name: "database \(path)") { () throws(StateError) in
            let database = try SQLiteDatabase(path: path, history: history)
            return Opened(database.keyspace, keptOpenBy: database)
        }
    }
}
