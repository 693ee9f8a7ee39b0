#if canImport(Darwin)

import CLinux
import StatePlatform
import StateSystem

/// Edits by others, where there is no inotify: everything is looked at each second.
///
/// A file is looked at by its status, and read if its inode, size or time of modification is another.
/// Rejected: kqueue(2). It needs an open descriptor for each directory, of which a process has 256,
/// and for each file whose contents somebody writes in place.
extension FileWatcher {
    /// How often the complete directory is looked at.
    static var lookNanoseconds: Int64? { 1_000_000_000 }

    /// A descriptor that never becomes readable; -1 with errno.
    static func makeQueue() -> Int32 { clinux_eventfd() }

    /// The error of a directory that cannot be watched.
    static func refusal(_ location: String, _ reason: String) -> StateError {
        StateError(.storage, "\(location) cannot be watched: \(reason)")
    }

    /// Nothing to do for a directory: it is looked at with all others.
    ///
    /// Its subdirectories need no look of their own, either.
    func watch(_ path: FilePath, in round: Int) throws(FileFailure) -> Watched { .known }

    /// There are no watches.
    func removeWatch(_ watch: Int32) {}

    /// There are no events.
    func readQueue() {}
}

#endif
