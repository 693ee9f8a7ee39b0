import StateEngine
import StateWire

/// Our own verbs.
extension Dispatcher {
    func stateGet(
        _ key: Bytes,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    )
        throws(StateError)
    {
        let seen = try core.look(at: key, for: restriction(connection, core), &receipt)
        guard let record = seen, let value = record.value else {
            return writeDefault(of: key, connection, core)
        }
        let isStored = core.isPersistent && !record.isVolatile
        connection.output.writeEntry(
            EntryFields(record),
            value,
            by: core.causeBytes(of: record),
            (isStored ? Durability.synced : .memory).description,
            connection.version
        )
    }

    /// What a rule says that a key is which nobody has set, marked as that.
    private func writeDefault(of key: Bytes, _ connection: Connection, _ core: KeyspaceCore) {
        guard let standard = core.rules?.rule(for: key)?.settings.standard else {
            connection.output.writeNull(connection.version)
            return
        }
        standard.value.withUnsafeBytes { value in
            connection.output.writeDefault(value, connection.version)
        }
    }

    func stateSet(
        _ key: Bytes,
        _ value: Bytes,
        _ conditions: Command.Conditions,
        _ durability: Durability?,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        let rule = core.rules?.rule(for: key)
        let isInMemory = !core.isPersistent || core.isInMemory(rule)
        let named = [conditions.presence, conditions.revision, conditions.value].compactMap { $0 }
        // A transaction is one commit, whose reply waits for storage.
        let wanted = durability ?? rule?.durability ?? .synced
        let isEarly = wanted == .memory && !isInMemory && !isExecuting
        let wait = isEarly ? Receipt.Wait.nothing : .storage
        let revision = try write(connection, core, &receipt, waitingFor: wait) {
            (receipt) throws(StateError) -> Int64 in
            for condition in named { try core.check(condition, of: key, &receipt) }
            if isEarly, receipt.revision > 0, isOwn(key, connection, core) {
                receipt.waiveReads()
            }
            try core.set(key, to: value, isConditional: !named.isEmpty)
            return core.transaction.revision
        }
        connection.output.writeMap(2, connection.version)
        connection.output.writeField("revision", revision)
        let reached = isEarly || isInMemory ? Durability.memory : .synced
        connection.output.writeField("durability", reached.description)
    }

    /// Whether a connection has itself written what a key is.
    private func isOwn(_ key: Bytes, _ connection: Connection, _ core: KeyspaceCore) -> Bool {
        core.newestCause(of: key) == cause(of: connection, core).cause
    }

    func stateApply(
        _ steps: [Command.ApplyStep],
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    )
        throws(StateError)
    {
        let (count, revision) = try write(connection, core, &receipt, waitingFor: .storage) {
            (receipt) throws(StateError) -> (Int, Int64) in
            var count = 0
            for step in steps where try apply(step, core, &receipt) { count += 1 }
            return (count, self.revision(of: core))
        }
        writeCount(count, revision, connection)
    }

    private func apply(
        _ step: Command.ApplyStep,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) -> Bool {
        switch step {
        case .set(let key, let value, let revision):
            if let revision { try core.check(.revision(revision), of: key, &receipt) }
            try core.set(key, to: value, isConditional: revision != nil)
            return true
        case .delete(let key, let revision):
            if let revision { try core.check(.revision(revision), of: key, &receipt) }
            return try core.delete(key, &receipt)
        case .check(let key, let revision):
            try core.check(.revision(revision), of: key, &receipt)
            return false
        }
    }

    func stateDelete(
        _ patterns: Arguments,
        isDryRun: Bool,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        let set = try patternSet(patterns)
        var request = Listing.Request(
            patterns: set,
            byteLimit: .max,
            subject: restriction(connection, core),
            form: .nothing
        )
        if isDryRun {
            try list(request, for: connection, core, &receipt) { [unowned self] listing, core, _ in
                let revision = max(core.revisions.provisional, core.revisions.durable)
                writeCount(listing.listedCount, revision, connection)
            }
            return
        }
        if set.patterns.contains(where: \.meansEverything) {
            try requireAdmin(connection, "STATE.DELETE of everything", core)
        }
        let stepCount = stepLimit(connection, core)
        request.limit = stepCount + 1
        try list(request, for: connection, core, &receipt) {
            [unowned self] (listing, core, receipt) throws(StateError) in
            guard listing.count <= stepCount else { throw tooManySteps(stepCount) }
            let (count, revision) = try write(connection, core, &receipt) {
                (receipt) throws(StateError) -> (Int, Int64) in
                (try delete(listing, set, core, &receipt), self.revision(of: core))
            }
            writeCount(count, revision, connection)
        }
    }

    /// Deletes what a listing has found, and the keys that are named.
    ///
    /// Entries that may not be read are as if they were not there: only who names a key is refused because of it.
    private func delete(
        _ listing: Listing,
        _ set: PatternSet,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) -> Int {
        var count = 0
        var failure: StateError?
        func delete(_ key: Bytes) {
            guard failure == nil else { return }
            do throws(StateError) {
                if try core.delete(key, &receipt) { count += 1 }
            } catch {
                failure = error
            }
        }
        listing.withRows { key, _ in delete(key) }
        for pattern in set.patterns where pattern.kind == .key {
            pattern.literal.withUnsafeBytes { delete($0) }
        }
        if let failure { throw failure }
        return count
    }

    /// The revision that the open transaction will have, or the newest where it has changed nothing.
    func revision(of core: KeyspaceCore) -> Int64 {
        core.transaction.hasChanges
            ? core.transaction.revision : max(core.revisions.provisional, core.revisions.durable)
    }

    func writeCount(_ count: Int, _ revision: Int64, _ connection: Connection) {
        connection.output.writeMap(2, connection.version)
        connection.output.writeField("revision", revision)
        connection.output.writeField("count", Int64(count))
    }

    func stateList(
        _ pattern: Bytes,
        _ after: Bytes?,
        _ limit: Int,
        _ form: Command.ListForm,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        let patterns = PatternSet([try Pattern(pattern)])
        try requireSight(.read, of: patterns.patterns, connection, core)
        let request = Listing.Request(
            patterns: patterns,
            after: after.map { Array($0) },
            limit: limit,
            byteLimit: options.replyByteCount,
            subject: restriction(connection, core),
            form: form == .count ? .nothing : .row(form)
        )
        try list(request, for: connection, core, &receipt) { listing, _, _ in
            guard form != .count else {
                connection.output.writeInteger(Int64(listing.listedCount))
                return
            }
            connection.output.writeArray(listing.listedCount)
            listing.writeRows(to: &connection.output)
        }
    }

    func patternSet(_ patterns: Arguments) throws(StateError) -> PatternSet {
        guard patterns.count <= options.watchCount else {
            throw StateError(.limit, "more than \(options.watchCount) patterns")
        }
        var read: [Pattern] = []
        for index in 0..<patterns.count { read.append(try Pattern(patterns[index])) }
        return PatternSet(read)
    }
}

extension ByteBuffer {
    mutating func writeField(_ name: StaticString, _ number: Int64) {
        writeBulk(name)
        writeInteger(number)
    }

    mutating func writeField(_ name: StaticString, _ text: String) {
        writeBulk(name)
        writeBulk(text)
    }
}
