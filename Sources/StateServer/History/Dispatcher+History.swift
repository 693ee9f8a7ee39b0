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
        try requireSight(.read, of: [Pattern(Key(verified: key))], connection, core)
        guard registry.hasHistory else { throw Dispatcher.noHistory }
        read(
            KeyHistoryJob(
                of: Array(key),
                from: core.durablePlace(of: key),
                before: revision,
                limit: limit,
                for: connection,
                seeing: historyRules.visibility(of: connection),
                byteLimit: options.replyByteCount
            )
        )
    }

    func stateGet(
        _ key: Bytes,
        at revision: Int64,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        try requireSight(.read, of: [Pattern(Key(verified: key))], connection, core)
        let job = PastEntryJob(
            from: core.durablePlace(of: key),
            at: revision,
            for: connection,
            seeing: historyRules.visibility(of: connection)
        )
        if try isPresent(revision, core) {
            let subject = restriction(connection, core)
            job.version = core.readDurable(key).flatMap { record in
                core.mayRead(record, subject) ? PastVersion(record, in: core) : nil
            }
            job.writeReply(core, &receipt)
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
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        var request = try pastState(pattern, revision, "ask for parts with LIMIT and AFTER")
        request.after = after.map { Array($0) }
        request.limit = limit
        request.needsValues = form == .entries || form == .long
        try requireSight(.read, of: request.patterns.patterns, connection, core)
        request.subject = restriction(connection, core)
        request.view = historyRules.visibility(of: connection)
        let isPresent = try isPresent(revision, core)
        let past = PastState(request, in: core)
        let job = PastListJob(past, form, for: connection, self)
        if isPresent { try job.writeReply(core, &receipt) } else { read(job) }
    }

    func stateRevert(
        _ pattern: Bytes,
        to revision: Int64,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        let request = try pastState(pattern, revision, "revert it pattern by pattern")
        try requireRevert(request.patterns, connection, core)
        let isPresent = try isPresent(revision, core)
        let past = PastState(request, in: core)
        if isPresent {
            try revert(past, connection, core, &receipt)
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
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        let entries = try past.allThatMayDiffer(in: core)
        let (count, revision) = try write(connection, core, &receipt) {
            (receipt) throws(StateError) -> (Int, Int64) in
            let count = try bring(entries, connection, core, &receipt)
            return (count, self.revision(of: core))
        }
        // That there is nothing to change is told of the newest, too.
        if count == 0 { core.observeAll(&receipt) }
        writeCount(count, revision, connection)
    }

    /// Sets and deletes keys as they were; returns how many were anything else before.
    ///
    /// An administrator of a key need not be allowed to write it. One that he may not read stays as it is, and what he may not read
    /// is not brought back.
    private func bring(
        _ entries: [PastState.Changed],
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) -> Int {
        let subject = restriction(connection, core)
        let visibility = core.visibility(of: connection.subject)
        var count = 0
        for entry in entries {
            let value = try entry.key.withBorrowed { (key) throws(StateError) in
                entry.version.flatMap { version -> [UInt8]? in
                    // What has expired since stays away.
                    guard version.fields.expires.map({ $0 > now }) ?? true else { return nil }
                    let isSeen = visibility?.mayTell(.read, about: key, owner: version.fields.owner)
                    return isSeen ?? true ? version.value : nil
                }
            }
            let isOther = try entry.key.withBorrowed { (key) throws(StateError) in
                // What is in memory has no past to go back to.
                if core.isInMemory(core.rules?.rule(for: key)) { return false }
                let newest = core.read(key, for: subject, &receipt)
                if newest == nil, subject != nil, core.read(key, &receipt) != nil { return false }
                guard let value else { return newest != nil }
                return !value.withUnsafeBytes { newest?.value?.isEqual(to: $0) ?? false }
            }
            guard isOther else { continue }
            count += 1
            if let subject { try requireRevert(entry.key, subject, core) }
            try core.asDaemon { () throws(StateError) in
                try bring(entry.key, to: value, core, &receipt)
            }
        }
        return count
    }

    private func bring(
        _ key: [UInt8],
        to value: [UInt8]?,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        try key.withBorrowed { (key) throws(StateError) in
            guard let value else {
                try core.delete(key, &receipt)
                return
            }
            try value.withBorrowed { (value) throws(StateError) in try core.set(key, to: value) }
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
        guard revision <= core.revisions.durable else {
            throw .notYet(revision, current: core.revisions.durable)
        }
        guard registry.hasHistory || revision == core.revisions.durable else {
            throw Dispatcher.noHistory
        }
        return revision == core.revisions.durable
    }

    private static let noHistory = StateError(.compacted, "values in memory have no history")
}
