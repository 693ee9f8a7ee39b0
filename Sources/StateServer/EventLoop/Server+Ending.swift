import Glibc
import StateEngine

/// The end of the server, and of a connection.
extension Server {
    /// Commits and answers all accepted commands, for at most 5 seconds, then ends all connections.
    ///
    /// If the next process goes on with some of them, their clients wait for it: then the others have
    /// half a second.
    func finish() {
        // What clients claim again after the next start must not be deleted now.
        services.lifetimes.isStopping = true
        if let cluster = services.gate.cluster { keyspace.withCore { cluster.stop($0) } }
        let milliseconds: Int64 = handOver() ? 500 : 5_000
        let deadline = SystemClock.monotonicMilliseconds() + milliseconds
        for connection in registry.connections { connection.ending.isDue = true }
        keyspace.publish()
        settle()
        releaseKept()
        while SystemClock.monotonicMilliseconds() < deadline {
            services.waitingForChanges.expire(at: .max)
            answerBlocked()
            for connection in Array(registry.connections) { flush(connection) }
            guard registry.count > 0 else { break }
            takeStoppingTurn()
        }
        for connection in Array(registry.connections) { end(connection) }
        // A read may wait for a commit that nobody settles any more.
        keyspace.endWaitsForDeferred()
        history.stop()
        services.configuration.reloader?.stop()
    }

    /// Ends a connection: at once if it leaves little behind, otherwise in a slice of its user.
    ///
    /// 3,000 connections with 500 keys of WATCH take 0.6 s, and they may leave together.
    func leave(_ connection: Connection) {
        guard !connection.isClosed, !connection.ending.isLeaving else { return }
        guard connection.leavesMuch else { return end(connection) }
        connection.ending.isDue = true
        connection.ending.isLeaving = true
        connection.releaseMemory()
        count(connection)
        updateInterest(connection)
        services.leftovers.add(connection)
    }

    /// Takes a part of a connection that leaves away, or ends it.
    ///
    /// - Returns: Whether it has ended.
    func takeApart(_ connection: Connection) -> Bool {
        guard connection.leavesMuch, !connection.isClosed else {
            end(connection)
            return true
        }
        keyspace.withCore { core in
            connection.session.forgetWatchedKeys(core, atMost: 32)
            dispatcher.watches.end(connection, core, atMost: 16)
            services.channels.unsubscribeAll(connection, core, atMost: 16)
        }
        return false
    }

    func end(_ connection: Connection) {
        guard !connection.isClosed else { return }
        connection.isClosed = true
        registry.remove(connection)
        unfinished.frames.end(connection)
        history.endJobs(of: connection)
        if connection.session.backup != nil { services.backups.end(connection) }
        services.endMirror(connection)
        close(connection.descriptor)
        keyspace.withCore { core in
            dispatcher.watches.end(connection, core)
            services.channels.unsubscribeAll(connection, core)
            dispatcher.changes.unblock(connection, core)
            dispatcher.handlers.end(connection)
            services.tracking.end(connection, core)
            services.monitors.end(connection)
            connection.holders?.end(core)
            ListingCommand.end(of: connection, core)
            connection.session.forgetWatchedKeys(core)
            if let cause = connection.session.cause { core.release(cause) }
        }
        connection.releaseMemory()
        if timers.isSet(.acceptance) { acceptAgain() }
    }
}
