import StateEngine
import StateWire

/// The `STATE.*` verbs about entries.
struct StateCommands {
    let settings: Settings
    let listings: Listings
    let mirror: MirrorCommands

    init(_ services: Services) {
        (settings, listings) = (services.settings, services.listings)
        mirror = MirrorCommands(services)
    }

    func get(_ key: Bytes, _ context: inout CommandContext) throws(StateError) {
        let seen = try context.look(at: key)
        guard let record = seen, let value = record.value else {
            return writeDefault(of: key, context)
        }
        context.output.writeEntry(
            EntryFields(record),
            value,
            by: context.core.causeBytes(of: record),
            context.core.durability(of: record).description,
            context.version,
            mirror.currency(of: key)
        )
    }

    /// The default of an absent key, with the fields `default` and `origin`.
    private func writeDefault(of key: Bytes, _ context: borrowing CommandContext) {
        guard let standard = context.core.rules?.standards[key] else {
            context.output.writeNull(context.version)
            return
        }
        standard.value.withUnsafeBytes { value in
            context.output.writeDefault(value, from: standard.origin, context.version)
        }
    }

    func set(
        _ key: Bytes,
        _ value: Bytes,
        _ conditions: Command.Conditions,
        _ options: Command.SetOptions,
        _ context: inout CommandContext
    ) throws(StateError) {
        let core = context.core
        let rule = core.rules?.rule(for: key)
        let isInMemory = !core.isPersistent || core.isInMemory(key, rule)
        let named = [conditions.presence, conditions.revision, conditions.value].compactMap { $0 }
        // A transaction is one commit, whose reply waits for storage.
        let isOfCluster = core.mirrored?.holds(key) ?? false
        let isDeferrable = !isOfCluster && core.isDeferrable(key, rule)
        let level =
            options.durability ?? (isDeferrable ? .interval : rule?.durability ?? .synced)
        let isEarly = level < .synced && !isDeferrable && !isInMemory && !context.isExecuting
        let cause = context.cause
        let revision = try context.write(waitingFor: isEarly ? .nothing : .storage) {
            (transaction) throws(StateError) -> Int64 in
            for condition in named { try transaction.check(condition, of: key) }
            // The connection need not wait for its own writes.
            if isEarly, transaction.receipt.revision > 0, core.newestCause(of: key) == cause.cause {
                transaction.receipt.waiveReads()
            }
            if options.durability == .synced { transaction.storeAtOnce() }
            try transaction.set(
                key,
                to: value,
                isConditional: !named.isEmpty || options.expiry == .kept,
                expiry: options.expiry
            )
            return transaction.revision
        }
        context.output.writeMap(2, context.version)
        context.output.writeField("revision", revision)
        let isDeferred = isDeferrable && level < .synced
        let reached: Durability =
            isInMemory ? .memory : isDeferred ? .interval : isEarly ? level : .synced
        context.output.writeField("durability", reached.description)
    }

    /// Replies once storage has everything written so far, by anybody.
    ///
    /// If there is a cluster, also once everything that it had is here.
    func sync(isLocal: Bool, _ context: inout CommandContext) throws(StateError) {
        if !isLocal, try context.mustConfirm() { return }
        try context.storeEverything()
        context.output.writeMap(1, context.version)
        context.output.writeField("revision", context.reachedRevision)
    }

    func apply(
        _ steps: [Command.ApplyStep],
        _ context: inout CommandContext
    ) throws(StateError) {
        if case .undo? = steps.last { return try rehearse(steps.dropLast(), &context) }
        let (count, revision) = try context.write(waitingFor: .storage) {
            (transaction) throws(StateError) -> (Int, Int64) in
            var count = 0
            for step in steps where try apply(step, &transaction) { count += 1 }
            return (count, transaction.reachedRevision)
        }
        context.writeCount(count, revision)
    }

    /// Makes the steps and undoes them: a dry run is refused by what would refuse the real one.
    private func rehearse(
        _ steps: ArraySlice<Command.ApplyStep>,
        _ context: inout CommandContext
    ) throws(StateError) {
        guard !context.isExecuting else {
            throw StateError(.err, "STATE.APPLY with DRYRUN is not allowed inside MULTI")
        }
        var done: (count: Int, revision: Int64)?
        do throws(StateError) {
            try context.write { (transaction) throws(StateError) -> Void in
                let revision = transaction.reachedRevision
                var count = 0
                for step in steps where try apply(step, &transaction) { count += 1 }
                done = (count, revision)
                throw StateError(.err, "")
            }
        } catch {
            guard let done else { throw error }
            context.writeCount(done.count, done.revision)
        }
    }

    private func apply(
        _ step: Command.ApplyStep,
        _ transaction: inout Transaction
    ) throws(StateError) -> Bool {
        switch step {
        case .set(let key, let value, let revision, let expiry):
            if let revision { try transaction.check(.revision(revision), of: key) }
            try transaction.set(
                key,
                to: value,
                isConditional: revision != nil || expiry == .kept,
                expiry: expiry
            )
            return true
        case .delete(let key, let revision):
            if let revision { try transaction.check(.revision(revision), of: key) }
            return try transaction.delete(key)
        case .check(let key, let revision):
            try transaction.check(.revision(revision), of: key)
            return false
        case .undo: return false
        }
    }

    func delete(
        _ patterns: Arguments,
        isDryRun: Bool,
        _ context: inout CommandContext
    ) throws(StateError) {
        let set = try settings.options.patternSet(patterns)
        var request = Listing.Request(
            patterns: set,
            byteLimit: .max,
            subject: context.restriction,
            form: .nothing
        )
        if isDryRun {
            try listings.list(request, &context) { listing, context in
                let revisions = (context.core.revisions.provisional, context.core.revisions.durable)
                context.writeCount(listing.listedCount, max(revisions.0, revisions.1))
            }
            return
        }
        if set.patterns.contains(where: \.meansEverything) {
            try context.requireAdmin("STATE.DELETE of everything")
        }
        let stepCount = settings.options.stepLimit(context)
        request.limit = stepCount + 1
        try listings.list(request, &context) { (listing, context) throws(StateError) in
            guard listing.count <= stepCount else { throw settings.options.tooManySteps(stepCount) }
            let (count, revision) = try context.write {
                (transaction) throws(StateError) -> (Int, Int64) in
                (try delete(listing, set, &transaction), transaction.reachedRevision)
            }
            context.writeCount(count, revision)
        }
    }

    /// Deletes the keys that a listing found, and the named keys.
    ///
    /// Entries that the user may not read are skipped; only a command that names such a key is
    /// refused.
    func delete(
        _ listing: Listing,
        _ set: PatternSet,
        _ transaction: inout Transaction
    ) throws(StateError) -> Int {
        var count = 0
        var failure: StateError?
        transaction.noteRead(of: set)
        func delete(_ key: Bytes) {
            guard failure == nil else { return }
            do throws(StateError) {
                if try transaction.delete(key) { count += 1 }
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

    func list(
        _ pattern: Bytes,
        _ after: Bytes?,
        _ limit: Int,
        _ form: Command.ListForm,
        _ context: inout CommandContext
    ) throws(StateError) {
        let patterns = PatternSet([try Pattern(pattern)])
        try context.requireSight(.read, of: patterns.patterns)
        let request = Listing.Request(
            patterns: patterns,
            after: after.map { Array($0) },
            limit: limit,
            byteLimit: settings.options.replyByteCount,
            subject: context.restriction,
            form: form == .count ? .nothing : .row(form)
        )
        try listings.list(request, &context) { listing, context in
            guard form != .count else {
                context.output.writeInteger(Int64(listing.listedCount))
                return
            }
            context.output.writeArray(listing.listedCount)
            listing.writeRows(to: &context.output)
        }
    }
}

extension CommandContext {
    func writeCount(_ count: Int, _ revision: Int64) {
        output.writeMap(2, version)
        output.writeField("revision", revision)
        output.writeField("count", Int64(count))
    }
}
