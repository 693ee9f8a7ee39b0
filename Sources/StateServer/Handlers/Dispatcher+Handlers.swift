import CLinux
import StateEngine
import StateWire

/// Named handlers: how far each has come is noted in the store, so that it goes on there after a restart of either side.
///
/// A name is of one uid, and one connection at a time has it.
extension Dispatcher {
    func stateHandler(
        _ name: Bytes,
        _ step: Command.HandlerStep,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        let note = HandlerNote.name(name, of: connection.peer.uid)
        switch step {
        case .attach(let start, let isReset, let patterns):
            try attach(note, start, isReset: isReset, patterns, connection, core, &receipt)
        case .done(let revision): try advance(note, to: revision, connection, core, &receipt)
        case .forget: try forget(note, connection, core, &receipt)
        }
    }

    /// Ends what the connection has of handlers; they stay where they are.
    func endHandlers(_ connection: Connection) {
        for note in connection.handlers where registry.handlers[note] === connection {
            registry.handlers[note] = nil
        }
        connection.handlers = []
    }

    private func attach(
        _ note: String,
        _ start: Command.HandlerStart,
        isReset: Bool,
        _ arguments: Arguments,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        try requireFree(note, for: connection)
        let patterns = try handlerPatterns(arguments)
        for text in patterns {
            try requireSight(.watch, of: [try Pattern(text)], connection, core)
        }
        let known = isReset ? nil : try handler(note, core, &receipt)
        if let known, known.patterns != patterns {
            let shown = known.patterns.map { "'\($0)'" }.joined(separator: " ")
            throw StateError(
                .conflict,
                "\(HandlerNote.shown(note)) is for \(shown); RESET (statectl: --reset) begins it anew with "
                    + "other patterns"
            )
        }
        let begun = known == nil
        let handler: HandlerNote
        if let known {
            handler = known
        } else {
            handler = HandlerNote(
                position: try position(start, core),
                epoch: core.epoch,
                time: 0,
                patterns: patterns
            )
            try requireRoom(note, connection.peer.uid, core, &receipt)
            try keep(note, handler.text, connection, core, &receipt)
        }
        if registry.handlers[note] !== connection {
            registry.handlers[note] = connection
            connection.handlers.append(note)
        }
        connection.output.writeMap(5, connection.version)
        connection.output.writeBulk("position")
        writeNumber(handler.position, connection)
        connection.output.writeField("epoch", handler.epoch.description)
        connection.output.writeField("new", begun ? 1 : 0)
        connection.output.writeField("revision", core.revisions.durable)
        connection.output.writeField("current_epoch", core.epoch.description)
    }

    private func advance(
        _ note: String,
        to revision: Int64,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        let shown = HandlerNote.shown(note)
        guard registry.handlers[note] === connection else {
            throw StateError(
                .conflict,
                "\(shown) is not attached to this connection; STATE.HANDLER ATTACH it first"
            )
        }
        guard var handler = try handler(note, core, &receipt) else {
            throw StateError(.err, "\(shown) is not there; STATE.HANDLER ATTACH it anew")
        }
        guard revision <= core.revisions.durable else { throw aboveCurrent(revision, core) }
        if handler.epoch == core.epoch, let position = handler.position {
            guard revision >= position else {
                throw StateError(
                    .conflict,
                    "\(shown) is at revision \(position) and does not go back to \(revision)"
                )
            }
            if revision == position {
                connection.output.writeOK()
                return
            }
        }
        handler.position = revision
        handler.epoch = core.epoch
        handler.time = now
        try keep(note, handler.text, connection, core, &receipt)
        connection.output.writeOK()
    }

    private func forget(
        _ note: String,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        if let holder = registry.handlers[note], !holder.isEnding, !holder.isClosed {
            throw StateError(
                .conflict,
                "\(HandlerNote.shown(note)) is attached to process \(holder.peer.pid); end that first"
            )
        }
        guard core.note(note, &receipt) != nil else {
            // A write that takes it away may be under way.
            core.observeAll(&receipt)
            connection.output.writeInteger(0)
            return
        }
        try keep(note, nil, connection, core, &receipt)
        connection.output.writeInteger(1)
    }

    func stateHandlers(
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        var found: [(uid: Int64, name: Substring, note: String, text: String)] = []
        var byteCount = 0
        let isAdmin = isAdmin(connection, core)
        core.forEachNote(&receipt) { note, text in
            guard let (uid, name) = HandlerNote.parts(of: note),
                isAdmin || uid == Int64(connection.peer.uid)
            else { return }
            found.append((uid, name, note, text))
            byteCount += note.utf8.count + text.utf8.count + 160
        }
        try checkReply(byteCount)
        found.sort { ($0.uid, $0.name) < ($1.uid, $1.name) }
        connection.output.writeArray(found.count)
        for (uid, name, note, text) in found {
            let handler = try HandlerNote(text, of: note)
            let holder = registry.handlers[note].flatMap { $0.isClosed ? nil : $0 }
            connection.output.writeMap(8, connection.version)
            connection.output.writeField("name", String(name))
            connection.output.writeField("uid", uid)
            connection.output.writeBulk("patterns")
            connection.output.writeArray(handler.patterns.count)
            for pattern in handler.patterns { connection.output.writeBulk(pattern) }
            connection.output.writeBulk("position")
            writeNumber(handler.position, connection)
            connection.output.writeField("epoch", handler.epoch.description)
            connection.output.writeBulk("lag")
            writeNumber(lag(of: handler, core), connection)
            connection.output.writeBulk("pid")
            writeNumber(holder.map { Int64($0.peer.pid) }, connection)
            connection.output.writeBulk("time")
            writeNumber(handler.time > 0 ? handler.time : nil, connection)
        }
    }

    /// How many revisions it is behind the last change of all; nil where that cannot be said.
    ///
    /// Not behind the last revision: each DONE takes one.
    private func lag(of handler: HandlerNote, _ core: KeyspaceCore) -> Int64? {
        guard handler.epoch == core.epoch, let position = handler.position else { return nil }
        return max(0, core.revisions.lastChange - position)
    }

    // MARK: What they have in common

    private func requireFree(_ note: String, for connection: Connection) throws(StateError) {
        // One that has left may still wait for its last reply.
        guard let holder = registry.handlers[note], holder !== connection, !holder.isEnding,
            !holder.isClosed, !holder.hasHungUp
        else { return }
        throw StateError(
            .conflict,
            "\(HandlerNote.shown(note)) is attached to process \(holder.peer.pid)"
        )
    }

    private func handler(
        _ note: String,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) -> HandlerNote? {
        guard let text = core.note(note, &receipt) else { return nil }
        return try HandlerNote(text, of: note)
    }

    private func handlerPatterns(_ arguments: Arguments) throws(StateError) -> [String] {
        let limit = options.handlerPatternByteCount
        var byteCount = 0
        var patterns: Set<String> = []
        for index in 0..<arguments.count {
            let pattern = try Pattern(arguments[index])
            byteCount += pattern.bytes.count
            guard byteCount <= limit else {
                throw StateError(.limit, "the patterns of a handler have more than \(limit) bytes")
            }
            patterns.insert(pattern.description)
        }
        return patterns.sorted()
    }

    private func position(
        _ start: Command.HandlerStart,
        _ core: KeyspaceCore
    ) throws(StateError) -> Int64? {
        switch start {
        case .snapshot: return nil
        case .now: return core.revisions.durable
        case .revision(let revision):
            guard revision <= core.revisions.durable else { throw aboveCurrent(revision, core) }
            return revision
        }
    }

    private func aboveCurrent(_ revision: Int64, _ core: KeyspaceCore) -> StateError {
        StateError(.err, "revision \(revision) is above the current one, \(core.revisions.durable)")
    }

    private func requireRoom(
        _ note: String,
        _ uid: UInt32,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        guard core.note(note, &receipt) == nil else { return }
        let prefix = HandlerNote.prefix(of: uid)
        var count = 0
        core.forEachNote(&receipt) { name, _ in if name.hasPrefix(prefix) { count += 1 } }
        guard count < options.handlerCount else {
            throw StateError(
                .limit,
                "uid \(uid) has \(count) handlers, the limit; forget one that nobody needs (STATE.HANDLERS)"
            )
        }
    }

    private func keep(
        _ note: String,
        _ text: String?,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        try write(connection, core, &receipt) { (receipt) throws(StateError) in
            try core.setNote(note, to: text)
        }
    }

    private func writeNumber(_ number: Int64?, _ connection: Connection) {
        if let number {
            connection.output.writeInteger(number)
        } else {
            connection.output.writeNull(connection.version)
        }
    }
}

extension HandlerNote {
    /// The handler of a note as a message names it.
    static func shown(_ note: String) -> String {
        var name = String(parts(of: note)?.name ?? Substring(note))
        return "handler \(name.withUTF8 { StateError.quoted(Bytes($0), upTo: 128) })"
    }
}
