import StateEngine

/// What storage has answered, on its way to clients.
extension Server {
    /// Takes over what storage has answered: events first, then the replies that waited.
    func settle() {
        turn.hasAnsweredLoneWriter = registry.hasLoneHolder
        keyspace.settle { outcome in
            // Order matters: a connection hears of its change in a round of latest values before its reply, too.
            if registry.hasAdvancing { advanceWatchers(core) }
            registry.updateHolding { connection in
                switch outcome {
                case .durable(let revision):
                    reportHidden(connection)
                    release(connection, durable: revision)
                case .failed(let revision, let error):
                    connection.outbound.held.fail(from: revision, error)
                    release(connection, durable: revision - 1)
                // What nothing undid is told now, too.
                case .reopened: release(connection, durable: core.revisions.durable)
                case .unopened, .room, .unchanged: break
                }
                flushes.add(connection)
            }
            note(outcome)
        }
        flushes.encodedCommit.forget()
    }

    /// Answers those who wait for changes where something has come, or their time is over.
    func answerBlocked() {
        keyspace.withCore { dispatcher.changes.answerBlocked($0) }
    }

    /// A writer that may not see what it wrote is told by a bookmark, before its reply, that its watches hear no more of it.
    ///
    /// A client that answers once its watches have told of a write would else wait for the next bookmark. What others write that is
    /// hidden from it hastens none: that it was written would be told.
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

    /// Logs what is out of the ordinary.
    private func note(_ outcome: LocalKeyspace.Outcome) {
        switch outcome {
        case .durable(let revision):
            registry.early.settle(through: revision)
            if registry.watchCount > 0 { scheduleProgress() }
        case .failed(let revision, let error):
            services.access.noteFailure(from: revision)
            let count = registry.early.fail(from: revision)
            if count > 0 {
                let commits = count == 1 ? "1 commit was" : "\(count) commits were"
                options.log(
                    .error,
                    "\(commits) undone though the writer, who asked for no more, had its reply"
                )
            }
            options.log(.error, "commits from revision \(revision) on failed: \(error)")
        case .reopened(let count, _):
            let found = count == 1 ? "1 commit" : "\(count) commits"
            options.log(
                .notice,
                "the store is open again; it held \(found) beyond what was told"
            )
        case .unopened(let error):
            options.log(.error, "the store cannot be opened again yet: \(error)")
        case .room(let shortage?): options.log(.error, shortage.message)
        case .room(nil): options.log(.notice, "the disk has room again: keys can be set")
        case .unchanged: break
        }
    }
}
