import CLinux
import StateEngine
import StateWire

/// Commands of Redis about the names of keys, and about how values are kept.
extension KeyspaceCommands {
    func run(_ command: Command.KeyCommand, _ context: inout CommandContext) throws(StateError) {
        switch command {
        case .rename(let source, let target, let onlyIfAbsent):
            try rename(source, to: target, onlyIfAbsent: onlyIfAbsent, &context)
        case .copy(let source, let target, let replaces):
            try copy(source, to: target, replaces: replaces, &context)
        case .randomKey: try findAny(&context)
        case .object(let question, let key): try answer(question, about: key, &context)
        case .memoryUsage(let key):
            guard let record = try context.look(at: key) else {
                return context.output.writeNull(context.version)
            }
            context.output.writeInteger(Int64(record.footprint))
        case .flush: preconditionFailure("FLUSHALL is a command of StateCommands")
        case .dump(let key):
            guard let value = try context.look(at: key)?.value else {
                return context.output.writeNull(context.version)
            }
            // Its checksum takes 56 ms for 8 MiB.
            context.execution?.visitsLeft -= value.count >> 12
            context.output.writeBulk(DumpedValue.write(value))
        case .restore(let key, let dump, let expiry, let replaces):
            try restore(dump, to: key, expiry, replaces: replaces, &context)
        }
    }

    private func rename(
        _ source: Bytes,
        to target: Bytes,
        onlyIfAbsent: Bool,
        _ context: inout CommandContext
    ) throws(StateError) {
        let isDone = try context.write { (transaction) throws(StateError) -> Bool in
            guard let old = try transaction.look(at: source), let value = old.value else {
                throw StateError(.err, "no such key")
            }
            if source.isEqual(to: target) { return !onlyIfAbsent }
            if onlyIfAbsent, try transaction.look(at: target) != nil { return false }
            // The delete frees the value if the same transaction has set it.
            let (copy, expiry) = (Array(value), Expiry(of: old))
            try transaction.delete(source, operation: .renameFrom)
            try copy.withBorrowed { (copy) throws(StateError) in
                try transaction.set(
                    target,
                    to: copy,
                    isConditional: onlyIfAbsent,
                    expiry: expiry,
                    operation: .renameTo
                )
            }
            return true
        }
        if onlyIfAbsent {
            context.output.writeInteger(isDone ? 1 : 0)
        } else {
            context.output.writeOK()
        }
    }

    private func copy(
        _ source: Bytes,
        to target: Bytes,
        replaces: Bool,
        _ context: inout CommandContext
    ) throws(StateError) {
        let isDone = try context.write { (transaction) throws(StateError) -> Bool in
            guard let old = try transaction.look(at: source), let value = old.value else {
                return false
            }
            if !replaces, try transaction.look(at: target) != nil { return false }
            try transaction.set(
                target,
                to: value,
                isConditional: !replaces,
                expiry: Expiry(of: old),
                operation: .copyTo
            )
            return true
        }
        context.output.writeInteger(isDone ? 1 : 0)
    }

    /// The next key after any, among those that the client may see.
    ///
    /// What comes after a random place says something of hidden keys, too.
    private func findAny(_ context: inout CommandContext) throws(StateError) {
        guard context.showsEverything else {
            throw StateError(
                .noPermission,
                "RANDOMKEY would show where keys are that uid \(context.connection.peer.uid) may "
                    + "not read; use STATE.LIST or SCAN"
            )
        }
        var random = SystemRandomNumberGenerator()
        let key = context.core.randomKey(&random)
        try find(after: key, &context)
    }

    private func find(
        after bound: [UInt8]?,
        _ context: inout CommandContext
    ) throws(StateError) {
        let request = Listing.Request(
            patterns: PatternSet([.everything]),
            after: bound,
            limit: 1,
            byteLimit: .max,
            subject: context.restriction,
            form: .key,
            isOneMoment: false
        )
        try listings.list(request, &context) { [self] (listing, context) throws(StateError) in
            if listing.count == 0 {
                // A transaction, or a late reply, cannot list twice in slices.
                guard bound == nil else { return try find(after: nil, &context) }
                return context.output.writeNull(context.version)
            }
            listing.writeRows(to: &context.output)
        }
    }

    private func answer(
        _ question: Command.ObjectQuestion,
        about key: Bytes,
        _ context: inout CommandContext
    ) throws(StateError) {
        guard let record = try context.look(at: key), let value = record.value else {
            return context.output.writeNull(context.version)
        }
        switch question {
        case .encoding:
            let encoding: StaticString =
                value.decimal != nil ? "int" : value.count <= 44 ? "embstr" : "raw"
            context.output.writeBulk(encoding)
        case .idleTime:
            context.output.writeInteger(max(0, (context.time - record.time) / 1_000))
        case .referenceCount: context.output.writeInteger(1)
        }
    }

    private func restore(
        _ dump: Bytes,
        to key: Bytes,
        _ expiry: Expiry,
        replaces: Bool,
        _ context: inout CommandContext
    ) throws(StateError) {
        let (limit, now) = (settings.options.limits.valueByteCount, context.time)
        try context.write { (transaction) throws(StateError) in
            if !replaces, try transaction.look(at: key) != nil {
                throw StateError(StateError.Code("BUSYKEY"), "Target key name already exists.")
            }
            let value = try DumpedValue.read(dump, limit: limit)
            if let time = expiry.time(from: now), time <= now {
                try transaction.delete(key)
                return
            }
            try value.withBorrowed { (value) throws(StateError) in
                try transaction.set(
                    key,
                    to: value,
                    isConditional: !replaces,
                    expiry: expiry,
                    operation: .restore
                )
            }
        }
        context.output.writeOK()
    }
}

extension Expiry {
    /// The time of a version; as ruled if it has none.
    fileprivate init(of record: Record) { self = record.expires.map { .at($0) } ?? .ruled }
}

extension StateCommands {
    /// FLUSHALL: deletes everything in one commit.
    ///
    /// - Throws: ``StateError/Code/noPermission`` without admin rights, or
    ///   ``StateError/Code/tooBig`` above the limits of a transaction; nothing has changed.
    func flush(_ context: inout CommandContext) throws(StateError) {
        try context.requireAdmin("FLUSHALL")
        let everything = PatternSet([.everything])
        let request = Listing.Request(
            patterns: everything,
            limit: settings.options.limits.transactionChangeCount + 1,
            byteLimit: .max,
            subject: context.restriction,
            form: .nothing
        )
        try listings.list(request, &context) { [self] (listing, context) throws(StateError) in
            let limit = settings.options.limits.transactionChangeCount
            guard listing.count <= limit else { throw settings.options.tooManySteps(limit) }
            _ = try context.write { (transaction) throws(StateError) -> Int in
                try delete(listing, everything, &transaction)
            }
            context.output.writeOK()
        }
    }
}
