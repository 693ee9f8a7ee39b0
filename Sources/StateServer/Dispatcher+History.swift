import StateEngine
import StateWire

/// Verbs that look back, and the one that goes back.
extension Dispatcher {
    /// Whether the verb tells of what is durable: what the connection wrote before it is part of that.
    func looksBack(_ verb: Verb, _ arguments: Arguments) -> Bool {
        switch verb.name {
        case .stateHistory, .stateRevert, .stateChanges: true
        case .stateGet, .stateList:
            (2..<max(2, arguments.count)).contains { arguments.isWord($0, "AT") }
        default: false
        }
    }

    func stateHistory(
        _ key: Bytes,
        _ limit: Int,
        before revision: Int64?,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) throws(StateError) {
        guard registry.hasHistory else { throw Dispatcher.noHistory }
        read(
            KeyHistoryJob(
                of: Array(key),
                from: core.durablePlace(of: key),
                before: revision,
                limit: limit,
                for: connection,
                byteLimit: options.replyByteCount
            )
        )
    }

    func stateGet(
        _ key: Bytes,
        at revision: Int64,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) throws(StateError) {
        let place = core.durablePlace(of: key)
        let job = PastEntryJob(from: place, at: revision, for: connection)
        if try isPresent(revision, core) {
            job.version = core.readDurable(key).flatMap { PastVersion($0, in: core) }
            job.writeReply(core)
        } else {
            read(job)
        }
    }

    func stateList(
        _ pattern: Bytes,
        _ after: Bytes?,
        _ limit: Int,
        _ form: Command.ListForm,
        at revision: Int64,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) throws(StateError) {
        var request = try pastState(pattern, revision, "ask for parts with LIMIT and AFTER")
        request.after = after.map { Array($0) }
        request.limit = limit
        request.needsValues = form == .entries || form == .long
        let isPresent = try isPresent(revision, core)
        let past = PastState(request, in: core)
        let job = PastListJob(past, form, for: connection)
        if isPresent { try job.writeReply(core) } else { read(job) }
    }

    func stateRevert(
        _ pattern: Bytes,
        to revision: Int64,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) throws(StateError) {
        let request = try pastState(pattern, revision, "revert it pattern by pattern")
        let isPresent = try isPresent(revision, core)
        let past = PastState(request, in: core)
        if isPresent {
            try revert(past, connection, core)
        } else {
            read(RevertJob(past, for: connection), for: connection)
        }
    }

    /// Sets and deletes, in one commit, the keys whose newest value is another than what it was.
    ///
    /// - Throws: ``StateError/Code/tooBig``, where it is more than a transaction may be; nothing has changed.
    func revert(
        _ past: PastState,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) throws(StateError) {
        let entries = try past.allThatMayDiffer(in: core)
        let (count, revision) = try write(connection, core) {
            () throws(StateError) -> (Int, Int64) in
            var count = 0
            for entry in entries {
                // What has expired since stays away.
                let expires = entry.version?.fields.expires ?? .max
                let value = expires <= now ? nil : entry.version?.value
                if try bring(entry.key, to: value, core) { count += 1 }
            }
            return (count, self.revision(of: core))
        }
        // That there is nothing to change is told of the newest, too.
        if count == 0 { core.observeAll() }
        writeCount(count, revision, connection)
    }

    /// Sets or deletes a key; returns whether it was anything else before.
    private func bring(
        _ key: [UInt8],
        to value: [UInt8]?,
        _ core: KeyspaceCore
    ) throws(StateError) -> Bool {
        try key.withBorrowed { (key) throws(StateError) in
            // What is in memory has no past to go back to.
            if core.isInMemory(core.rules?.rule(for: key)) { return false }
            guard let value else { return try core.delete(key) }
            return try value.withBorrowed { (value) throws(StateError) in
                if let newest = core.read(key)?.value, newest.isEqual(to: value) { return false }
                try core.set(key, to: value)
                return true
            }
        }
    }

    /// Asks for the keys of a pattern as they were; `advice` is what to do where that is more than a reply may be.
    private func pastState(
        _ pattern: Bytes,
        _ revision: Int64,
        _ advice: StaticString
    ) throws(StateError) -> PastState.Request {
        PastState.Request(
            PatternSet([try Pattern(pattern)]),
            at: revision,
            byteLimit: options.replyByteCount,
            advice: advice
        )
    }

    /// Whether a revision is the current one, of which memory knows everything; if not, the history knows of it.
    private func isPresent(_ revision: Int64, _ core: KeyspaceCore) throws(StateError) -> Bool {
        guard revision <= core.durableRevision else {
            throw .notYet(revision, current: core.durableRevision)
        }
        guard registry.hasHistory || revision == core.durableRevision else {
            throw Dispatcher.noHistory
        }
        return revision == core.durableRevision
    }

    private static let noHistory = StateError(.compacted, "values in memory have no history")
}
