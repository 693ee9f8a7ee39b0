import CLinux
import StateEngine
import StateWire

/// Named handlers: the store keeps the position of each, so that it continues there after a restart
/// of either side.
///
/// A name belongs to one uid, and one connection at a time claims it.
struct HandlerCommands {
    let settings: Settings
    let registry: Registry

    func handler(
        _ name: Bytes,
        _ step: Command.HandlerStep,
        _ context: inout CommandContext
    ) throws(StateError) {
        try context.connection.requireUser("a handler")
        let recordName = HandlerRecord.name(name, of: context.connection.peer.uid)
        switch step {
        case .attach(let start, let isReset, let patterns):
            try attach(recordName, start, isReset: isReset, patterns, &context)
        case .done(let revision): try advance(recordName, to: revision, &context)
        case .forget: try forget(recordName, &context)
        }
    }

    /// Releases the handlers of the connection; their positions stay.
    func end(_ connection: Connection) {
        for recordName in connection.session.handlers
        where registry.handlers[recordName] === connection {
            registry.handlers[recordName] = nil
        }
        connection.session.handlers = []
    }

    private func attach(
        _ recordName: String,
        _ start: Command.HandlerStart,
        isReset: Bool,
        _ arguments: Arguments,
        _ context: inout CommandContext
    ) throws(StateError) {
        try requireFree(recordName, for: context.connection)
        let patterns = try handlerPatterns(arguments)
        for text in patterns {
            try context.requireSight(.watch, of: [try Pattern(text)])
        }
        let known = isReset ? nil : try handler(recordName, &context)
        if let known, known.patterns != patterns {
            let shown = known.patterns.map { "'\($0)'" }.joined(separator: " ")
            throw StateError(
                .conflict,
                "\(HandlerRecord.shown(recordName)) has the patterns \(shown); use RESET "
                    + "(statectl: --reset) to begin it anew with other patterns"
            )
        }
        let begun = known == nil
        let handler: HandlerRecord
        if let known {
            handler = known
        } else {
            handler = HandlerRecord(
                position: try position(start, context),
                epoch: context.core.epoch,
                time: 0,
                patterns: patterns
            )
            try requireRoom(recordName, context.connection.peer.uid, &context)
            try keep(recordName, handler.text, &context)
        }
        if registry.handlers[recordName] !== context.connection {
            registry.handlers[recordName]?.session.handlers.removeAll { $0 == recordName }
            registry.handlers[recordName] = context.connection
            context.connection.session.handlers.append(recordName)
        }
        context.output.writeMap(5, context.version)
        context.output.writeBulk("position")
        context.writeNumber(handler.position)
        context.output.writeField("epoch", handler.epoch.description)
        context.output.writeField("new", begun ? 1 : 0)
        context.output.writeField("revision", context.core.revisions.durable)
        context.output.writeField("current_epoch", context.core.epoch.description)
    }

    private func advance(
        _ recordName: String,
        to revision: Int64,
        _ context: inout CommandContext
    ) throws(StateError) {
        let shown = HandlerRecord.shown(recordName)
        guard registry.handlers[recordName] === context.connection else {
            throw StateError(
                .conflict,
                "\(shown) is not attached to this connection; use STATE.HANDLER ATTACH first"
            )
        }
        guard var handler = try handler(recordName, &context) else {
            throw StateError(
                .err,
                "\(shown) does not exist any more; use STATE.HANDLER ATTACH again"
            )
        }
        guard revision <= context.core.revisions.durable else {
            throw aboveCurrent(revision, context)
        }
        if handler.epoch == context.core.epoch, let position = handler.position {
            guard revision >= position else {
                throw StateError(
                    .conflict,
                    "\(shown) is at revision \(position) and cannot go back to \(revision)"
                )
            }
            if revision == position {
                context.output.writeOK()
                return
            }
        }
        handler.position = revision
        handler.epoch = context.core.epoch
        handler.time = context.time
        try keep(recordName, handler.text, &context)
        context.output.writeOK()
    }

    private func forget(_ recordName: String, _ context: inout CommandContext) throws(StateError) {
        if let holder = registry.handlers[recordName], !holder.ending.isDue, !holder.isClosed {
            throw StateError(
                .conflict,
                "\(HandlerRecord.shown(recordName)) is attached to process \(holder.peer.pid); "
                    + "end it first"
            )
        }
        guard context.core.metadataText(recordName, &context.receipt) != nil else {
            // A write that removes it may be running.
            context.core.observeAll(&context.receipt)
            context.output.writeInteger(0)
            return
        }
        try keep(recordName, nil, &context)
        context.output.writeInteger(1)
    }

    func list(_ context: inout CommandContext) throws(StateError) {
        var found: [(uid: Int64, name: Substring, recordName: String, text: String)] = []
        var byteCount = 0
        let isAdmin = context.isAdmin
        let subject = context.connection.subject
        let own = subject.isMapped ? Int64(subject.uid) : nil
        context.core.forEachMetadataEntry(&context.receipt) { recordName, text in
            guard let (uid, name) = HandlerRecord.parts(of: recordName),
                isAdmin || uid == own
            else { return }
            found.append((uid, name, recordName, text))
            byteCount += recordName.utf8.count + text.utf8.count + 160
        }
        try settings.options.checkReply(byteCount)
        found.sort { ($0.uid, $0.name) < ($1.uid, $1.name) }
        context.output.writeArray(found.count)
        for (uid, name, recordName, text) in found {
            let handler = try HandlerRecord(text, of: recordName)
            let holder = registry.handlers[recordName].flatMap { $0.isClosed ? nil : $0 }
            context.output.writeMap(8, context.version)
            context.output.writeField("name", String(name))
            context.output.writeField("uid", uid)
            context.output.writeBulk("patterns")
            let patterns = handler.patterns.filter { text in
                guard uid != own else { return true }
                return (try? Pattern(text)).map { context.mayName($0) } ?? false
            }
            context.output.writeArray(patterns.count)
            for pattern in patterns { context.output.writeBulk(pattern) }
            context.output.writeBulk("position")
            context.writeNumber(handler.position)
            context.output.writeField("epoch", handler.epoch.description)
            context.output.writeBulk("lag")
            context.writeNumber(lag(of: handler, context))
            context.output.writeBulk("pid")
            context.writeNumber(holder.map { Int64($0.peer.pid) })
            context.output.writeBulk("time")
            context.writeNumber(handler.time > 0 ? handler.time : nil)
        }
    }

    /// How many revisions it is behind the last change of any key; nil if unknown.
    ///
    /// It is not compared with the last revision, because each DONE takes a revision.
    private func lag(of handler: HandlerRecord, _ context: borrowing CommandContext) -> Int64? {
        guard handler.epoch == context.core.epoch, let position = handler.position else {
            return nil
        }
        return max(0, context.core.revisions.lastChange - position)
    }

    // MARK: Common parts

    private func requireFree(_ recordName: String, for connection: Connection) throws(StateError) {
        // A connection whose client has left may still wait for its last reply.
        guard let holder = registry.handlers[recordName], holder !== connection,
            !holder.ending.isDue,
            !holder.isClosed, !holder.hasHungUp, !holder.hasExited
        else { return }
        throw StateError(
            .conflict,
            "\(HandlerRecord.shown(recordName)) is attached to process \(holder.peer.pid)"
        )
    }

    private func handler(
        _ recordName: String,
        _ context: inout CommandContext
    ) throws(StateError) -> HandlerRecord? {
        guard let text = context.core.metadataText(recordName, &context.receipt) else { return nil }
        return try HandlerRecord(text, of: recordName)
    }

    private func handlerPatterns(_ arguments: Arguments) throws(StateError) -> [String] {
        let limit = settings.options.handlerPatternByteCount
        var byteCount = 0
        var patterns: Set<String> = []
        for index in 0..<arguments.count {
            let pattern = try Pattern(arguments[index])
            byteCount += pattern.bytes.count
            guard byteCount <= limit else {
                throw StateError(
                    .limit,
                    "the patterns of a handler have more than \(limit) bytes, the limit"
                )
            }
            patterns.insert(pattern.description)
        }
        return patterns.sorted()
    }

    private func position(
        _ start: Command.HandlerStart,
        _ context: borrowing CommandContext
    ) throws(StateError) -> Int64? {
        switch start {
        case .snapshot: return nil
        case .now: return context.core.revisions.durable
        case .revision(let revision):
            guard revision <= context.core.revisions.durable else {
                throw aboveCurrent(revision, context)
            }
            return revision
        }
    }

    private func aboveCurrent(_ revision: Int64, _ context: borrowing CommandContext) -> StateError
    {
        StateError(
            .err,
            "revision \(revision) is above the current one, \(context.core.revisions.durable)"
        )
    }

    private func requireRoom(
        _ recordName: String,
        _ uid: UInt32,
        _ context: inout CommandContext
    ) throws(StateError) {
        guard context.core.metadataText(recordName, &context.receipt) == nil else { return }
        let prefix = HandlerRecord.prefix(of: uid)
        var count = 0
        context.core.forEachMetadataEntry(&context.receipt) { name, _ in
            if name.hasPrefix(prefix) { count += 1 }
        }
        guard count < settings.options.handlerCount else {
            throw StateError(
                .limit,
                "uid \(uid) has \(count) handlers, the limit; remove one with STATE.HANDLER FORGET"
            )
        }
    }

    private func keep(
        _ recordName: String,
        _ text: String?,
        _ context: inout CommandContext
    ) throws(StateError) {
        try context.write { (transaction) throws(StateError) in
            try transaction.setMetadata(recordName, to: text)
        }
    }
}

extension CommandContext {
    fileprivate func writeNumber(_ number: Int64?) {
        if let number { output.writeInteger(number) } else { output.writeNull(version) }
    }
}

extension HandlerRecord {
    /// The name of a handler for messages.
    static func shown(_ recordName: String) -> String {
        var name = String(parts(of: recordName)?.name ?? Substring(recordName))
        return "handler \(name.withUTF8 { StateError.quoted(Bytes($0), upTo: 128) })"
    }
}
