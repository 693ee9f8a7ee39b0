import CLinux
import StateEngine

/// Commits, their results, and the events and replies that wait for them.
extension Server {
    /// Passes new commits to storage, or makes them.
    func publish() {
        if turn.commitsHere.isEstablished, registry.holderCount > 0, unfinished.items.isEmpty,
            unfinished.events.isEmpty, !registry.hasAdvancing
        {
            let now = clinux_monotonic_nanoseconds()
            // What somebody may see is not kept back for a group.
            let isSeen = keyspace.withCore { $0.pending.filling.hasPublished }
            if isSeen || !turn.commitsHere.waitsForGroup(registry.holderCount, at: now) {
                commitHere()
            }
        } else {
            turn.commitsHere.endWait()
            if keyspace.withCore({ $0.pending.filling.isBriefAndDeferrable }) {
                deferHere()
            } else if keyspace.publish(keeps: false) {
                settle()
            }
        }
        if keyspace.addedRevision > turn.shownRevision { keepHere() }
    }

    /// Releases the replies that wait until what they show is kept.
    func releaseKept() {
        guard keyspace.addedRevision > turn.shownRevision else { return }
        keyspace.withCore { core in
            registry.updateHolding { connection in
                release(connection, durable: core.revisions.durable)
                flushes.add(connection)
            }
            turn.shownRevision = max(core.revisions.durable, core.revisions.kept)
        }
    }

    /// Handles results of storage: first sends events, then releases held replies.
    func settle() {
        keyspace.settle { outcome in
            // Order matters: a connection gets its change before its reply, also in a round of
            // latest values.
            if registry.hasAdvancing { advanceWatchers(core) }
            // Before replies: that of one such connection would precede what another must be sent.
            flushes.sendFirst()
            registry.updateHolding { connection in
                switch outcome {
                case .durable(let revision):
                    reportHidden(connection)
                    release(connection, durable: revision)
                case .failed(let revision, let error):
                    connection.outbound.held.fail(from: revision, error)
                    release(connection, durable: revision - 1)
                // Release also what was not undone.
                case .reopened: release(connection, durable: core.revisions.durable)
                case .unopened, .room, .deferral, .unchanged: break
                }
                flushes.add(connection)
            }
            note(outcome)
        }
        if !flushes.encodedCommit.changes.isEmpty { flushes.encodedCommit.forget() }
    }

    /// Answers waiting STATE.CHANGES that have a commit, or whose time has passed.
    func answerBlocked() {
        keyspace.withCore { dispatcher.changes.answerBlocked($0) }
    }

    /// Sends a bookmark to a writer that may not see its own write, before its reply: its watches
    /// will not deliver that write.
    ///
    /// A client that waits until its watches are past a write would otherwise wait for the next
    /// regular bookmark. Hidden writes of others cause no bookmark, because it would reveal them.
    private func reportHidden(_ connection: Connection) {
        for watcher in connection.watches.all.values where watcher.watcher.hasHidden {
            _ = watcher.sendProgress(core)
        }
    }

    func release(_ connection: Connection, durable revision: Int64) {
        connection.outbound.held.release(
            durable: revision,
            kept: core.revisions.kept,
            into: &connection.outbound.bytes,
            early: &registry.early
        )
    }

    /// Logs unusual results.
    private func note(_ outcome: LocalKeyspace.Outcome) {
        switch outcome {
        case .durable(let revision):
            registry.early.settle(through: revision)
            if let mirror = services.mirror, mirror.settle(through: revision) {
                services.noteMirror(mirror, core)
            }
            registry.store.hasReportedFull = false
            services.access.recordAgain(at: turn.time)
            if registry.counts.watches > 0 { scheduleProgress() }
        case .failed(let revision, let error):
            services.access.noteFailure(from: revision)
            services.mirror?.forgetProof(from: revision)
            let count = registry.early.fail(from: revision)
            if count > 0 {
                let commits = count == 1 ? "1 commit was" : "\(count) commits were"
                options.log(
                    .error,
                    .replyUndone,
                    "\(commits) undone although its writer had a reply (durability memory)"
                )
            }
            logFailure(error, from: revision)
        case .reopened(let count, _):
            services.access.recordAgain(at: turn.time)
            services.mirror?.forgetProof(from: 0)
            let found = count == 1 ? "1 commit" : "\(count) commits"
            options.log(
                .notice,
                .storeReopened,
                "the store was reopened; it has \(found) that had not been acknowledged"
            )
        case .unopened(let error):
            options.log(
                .error,
                .storeNotReopened,
                "the store cannot be reopened yet; will retry: \(error)"
            )
        case .room(let shortage?): options.log(.error, .diskFull, shortage.message)
        case .room(nil):
            registry.store.hasReportedFull = false
            services.access.recordAgain(at: turn.time)
            options.log(.notice, .diskFree, "the disk has room again: writes are accepted")
        case .deferral(let failure?):
            options.log(
                .error,
                .deferralFailed,
                "changes with durability interval cannot be stored; will retry: \(failure)"
            )
        case .deferral(nil):
            options.log(
                .notice,
                .deferralRestored,
                "changes with durability interval are stored again"
            )
        case .unchanged: break
        }
    }

    /// Logs that the disk was full before clients are served.
    func reportFullDisk() {
        guard let full = core.admission.refusals.diskShortage else { return }
        options.log(.error, .diskFull, full.message)
    }

    /// A full disk fails each write: that is one line until a write succeeds.
    private func logFailure(_ error: StateError, from revision: Int64) {
        let isFull = error.code == .noSpace
        if isFull, registry.store.hasReportedFull { return }
        registry.store.hasReportedFull = isFull
        let advice = isFull ? "; writes fail until there is room" : ""
        options.log(
            .error,
            .commitFailed,
            "writes from revision \(revision) on failed: \(error)\(advice)",
            [.revision(revision)]
        )
    }
}

/// Whether commits are made on the loop's own thread, because all whom it has served for some time wait
/// for their commits.
///
/// Waking the commit thread, and being woken by it, takes longer than what the loop could do meanwhile.
/// On a virtual machine with 2 processors 1 client makes 5,200 SETs a second, not 4,800, and 50 clients
/// 93,900, not 73,800. With pipelines there is enough to do meanwhile.
package struct CommitsHere {
    /// How many turns in a row served nobody else, up to ``needed``.
    private var turnCount = 0
    /// Others are rare after so many turns, and wait for one commit then.
    private var needed = CommitsHere.fewest
    /// How many commits came since one that was too long.
    private var commitCount = 0
    /// On a slow disk, what this saves is not worth that others wait.
    private var averageNanoseconds: Int64 = 0
    private var token: UInt64 = 0
    private var isOfSameClient = false
    private var eventCount = 0
    /// How many clients the last commit was for.
    private var groupCount = 1
    /// Until when the loop waits for as many; nil if it does not.
    private var groupEnd: Int64?
    private let takesGroups: Bool
    /// After so many nanoseconds a substitute takes the loop over.
    static let longest: Int64 = 5_000_000
    private static let fewest = 32
    /// So many commits back the last one that was too long matters.
    private static let memory = 256
    /// The largest group; it would wait 0.2 ms for the last of its commands to be read.
    private static let largestGroup = 128
    private static let longestWait: Int64 = 500_000

    /// - Parameter processorCount: With more than two, the commit thread works beside many clients: these
    ///   have all of that.
    package init(processorCount: Int32) { takesGroups = processorCount <= 2 }

    package var isEstablished: Bool { turnCount >= needed }

    /// Records the events of a turn.
    ///
    /// - Parameters:
    ///   - eventCount: How many they are.
    ///   - token: That of the first; nil without events.
    ///   - isBusy: Whether there was more to do than these events.
    package mutating func note(eventCount: Int, first token: UInt64?, isBusy: Bool) {
        self.eventCount = eventCount
        guard let token else { return }
        isOfSameClient = eventCount == 1 && token == self.token
        self.token = token
        if isBusy { turnCount = 0 }
    }

    /// Records how many clients wait for a commit after these events, and how many did before.
    package mutating func note(waitingCount: Int, before: Int) {
        guard eventCount > 0 else { return }
        let isGroup =
            takesGroups && waitingCount - before >= eventCount
            && waitingCount <= CommitsHere.largestGroup
        turnCount = isOfSameClient || isGroup ? min(turnCount + 1, needed) : 0
    }

    /// Records that many clients have sent several commands each: the commit thread works meanwhile.
    package mutating func beginAnew() { turnCount = 0 }

    /// Whether the loop waits for more clients before it commits: those that the last commit was for
    /// will send something again.
    ///
    /// Otherwise they fall into two groups that take turns, and each waits for two commits.
    package mutating func waitsForGroup(_ waitingCount: Int, at now: Int64) -> Bool {
        guard waitingCount < groupCount else { return false }
        let end = groupEnd ?? now + min(averageNanoseconds / 2, CommitsHere.longestWait)
        groupEnd = end
        return now < end
    }

    /// Ends the wait.
    ///
    /// - Parameter count: How many clients the next commit answers; 0 if the loop makes no commit now.
    package mutating func endWait(count: Int = 0) {
        groupEnd = nil
        if count > 0 { groupCount = count }
    }

    /// How long the loop waits at most, in nanoseconds; -1 if it does not.
    package func nanosecondsToGroup(at now: @autoclosure () -> Int64) -> Int64 {
        groupEnd.map { max(0, $0 - now()) } ?? -1
    }

    /// Records how long a commit took on the loop's thread.
    ///
    /// After one of 5 ms, unless the 256 before it were faster, and if they take 2 ms on average, twice as
    /// many turns must pass before the next; half as many again after 256 faster ones. A rare slow one
    /// does not matter: a substitute has the loop meanwhile.
    package mutating func noteCommit(nanoseconds: Int64) {
        averageNanoseconds += (min(nanoseconds, CommitsHere.longest) - averageNanoseconds) / 16
        let isTooLong = nanoseconds >= CommitsHere.longest
        let areOften =
            averageNanoseconds > 2_000_000 || isTooLong && commitCount < CommitsHere.memory
        if areOften { (needed, averageNanoseconds) = (min(needed * 2, 1 << 16), 0) }
        guard !areOften, !isTooLong else {
            (turnCount, commitCount) = (0, 0)
            return
        }
        commitCount += 1
        if commitCount % CommitsHere.memory == 0 { needed = max(needed / 2, CommitsHere.fewest) }
    }
}
