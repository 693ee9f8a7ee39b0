/// Commits that a watch has not received, to read from the history.
struct MissedCommits {
    let watcher: ConnectionWatcher
    /// The connection of the watch.
    let connection: Connection
    /// The commit before the first of them.
    let position: Int64
    /// The last of them.
    let through: Int64
}
