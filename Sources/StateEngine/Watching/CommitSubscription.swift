/// Receives each commit that touches some patterns, in order of revision, from now on until it is
/// ended.
///
/// Every call, to it and by it, is under the keyspace's lock.
package final class CommitSubscription: WatchReceiver {
    private let watcher: Watcher
    private let body: (_ revision: Int64, _ changes: [Record], KeyspaceCore) -> Void
    private let onFallingBehind: (_ revision: Int64) -> Void
    private var hasEnded = false

    /// Begins with the first commit that is not durable yet.
    ///
    /// - Parameters:
    ///   - patterns: The keys.
    ///   - subject: The receiver, if rules may hide keys from it; nil receives all.
    ///   - core: The keyspace, whose lock is held.
    ///   - fallBehind: Called when nothing after `revision` is received any more, because comparing
    ///     the globs of `subject` takes too long; only if there are globs, and a subject.
    ///   - receive: Takes a commit that has become durable; its records are borrowed, and each
    ///     still has the version that it supersedes as `older`.
    package init(
        _ patterns: PatternSet,
        for subject: Subject? = nil,
        in core: KeyspaceCore,
        fallBehind: @escaping (_ revision: Int64) -> Void = { _ in },
        _ receive: @escaping (_ revision: Int64, _ changes: [Record], KeyspaceCore) -> Void
    ) {
        watcher = Watcher(patterns, .now, for: subject, in: core)
        (body, onFallingBehind) = (receive, fallBehind)
        watcher.receiver = self
        core.hub.add(watcher)
    }

    package var hasRoom: Bool { true }

    package func receive(_ notice: Watcher.Notice, in core: KeyspaceCore) {
        guard case .commit(let revision, let changes) = notice, !hasEnded else { return }
        body(revision, changes, core)
    }

    package func fellBehind(after revision: Int64) { onFallingBehind(revision) }

    /// Receives nothing more; may be called again.
    package func end(in core: KeyspaceCore) {
        guard !hasEnded else { return }
        hasEnded = true
        core.hub.remove(watcher)
    }
}
