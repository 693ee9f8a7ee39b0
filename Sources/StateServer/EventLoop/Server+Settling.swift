import StateEngine

/// Results of commits, and the events and replies that wait for them.
extension Server {
    /// Handles results of storage: first sends events, then releases held replies.
    func settle() {
        turn.hasAnsweredLoneWriter = registry.hasLoneHolder
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

    private func release(_ connection: Connection, durable revision: Int64) {
        connection.outbound.held.release(
            durable: revision,
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
