/// Commits that a watch was not told of, to be read from the history.
struct MissedCommits {
    let watcher: ConnectionWatcher
    /// Whose watch it is.
    let connection: Connection
    /// The commit before the first of them.
    let position: Int64
    /// The last of them.
    let through: Int64
}
