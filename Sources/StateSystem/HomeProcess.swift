import CLinux

/// The process that made something: a child that was forked has a copy of it, and the same open files, but
/// not its threads.
package struct HomeProcess: Hashable, Sendable {
    private let forkCount = clinux_fork_count()

    package init() {}

    /// Whether the calling process is that one.
    package var isCurrent: Bool { clinux_fork_count() == forkCount }
}
