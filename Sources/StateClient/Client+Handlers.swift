package import StateModel
import StateWire

/// Named handlers: the daemon remembers how far each has come.
extension Client {
    /// Where a handler begins that nobody has had yet.
    package enum HandlerStart: Hashable, Sendable {
        /// With what comes next.
        case now
        /// With what comes after a revision.
        case revision(Int64)
        /// With the state.
        case snapshot
    }

    /// A handler that this connection has, until it ends.
    package struct Attachment: Hashable, Sendable {
        /// The last revision that the handler has handled; nil where it is to begin with the state.
        package let position: Int64?
        /// The store that the position is of.
        package let epoch: String
        /// Whether nobody had it before, or it begins anew.
        package let isNew: Bool
        /// The newest revision.
        package let revision: Int64
        /// The store that is there.
        package let currentEpoch: String
    }

    /// A handler as the daemon lists it.
    package struct Handler: Hashable, Sendable {
        /// Its name; one of its uid.
        package let name: String
        /// Whose it is.
        package let uid: Int64
        /// What it is told of.
        package let patterns: [[UInt8]]
        /// The last revision that it has handled; nil where it is to begin with the state.
        package let position: Int64?
        /// The store that the position is of.
        package let epoch: String
        /// How many revisions it is behind; nil where that cannot be said.
        package let lag: Int64?
        /// The process that has it; nil where none does.
        package let pid: Int64?
        /// When it came to its position, in milliseconds since 1970; nil where it has handled nothing yet.
        package let time: Int64?
    }

    /// Claims a handler for this connection, and makes it where it is absent.
    ///
    /// - Parameters:
    ///   - name: At most 128 bytes of UTF-8 without control characters.
    ///   - patterns: The same as when it was made.
    ///   - start: Where it begins, where it is new.
    ///   - isReset: Whether it is new whatever it was.
    /// - Returns: Where it stands.
    /// - Throws: ``StateError/Code/conflict`` where another connection has it, or its patterns are others; what else the daemon
    ///   refused with; ``StateError/Code/unreachable`` or ``StateError/Code/outcomeUnknown``.
    package func attachHandler(
        _ name: String,
        _ patterns: [Pattern],
        from start: HandlerStart,
        isReset: Bool
    ) throws(StateError) -> Attachment {
        var operands: [[UInt8]] = []
        operands.add("ATTACH", name)
        if isReset { operands.add("RESET") }
        switch start {
        case .now: break
        case .snapshot: operands.add("SNAPSHOT")
        case .revision(let revision): operands.add("FROM", String(revision))
        }
        // What follows is a watch, which needs RESP3 anyway.
        let reply = try ask("STATE.HANDLER", operands + patterns.map(\.argument), .write)
        return Attachment(
            position: reply["position"]?.integerValue,
            epoch: try reply.text("epoch"),
            isNew: try reply.number("new") == 1,
            revision: try reply.number("revision"),
            currentEpoch: try reply.text("current_epoch")
        )
    }

    /// Notes that a handler of this connection has handled everything up to a revision; durable when it returns.
    ///
    /// - Throws: ``StateError/Code/conflict`` where this connection has not attached it, or it is further already; what else the
    ///   daemon refused with; ``StateError/Code/unreachable`` or ``StateError/Code/outcomeUnknown``.
    package func finishHandling(_ name: String, through revision: Int64) throws(StateError) {
        let words = ["STATE.HANDLER", "DONE", name, String(revision)]
        _ = try call(words.map { Array($0.utf8) }, .write)
    }

    /// Forgets a handler of this uid.
    ///
    /// - Returns: Whether there was one.
    /// - Throws: ``StateError/Code/conflict`` where a connection has it; what else the daemon refused with;
    ///   ``StateError/Code/unreachable`` or ``StateError/Code/outcomeUnknown``.
    package func forgetHandler(_ name: String) throws(StateError) -> Bool {
        let reply = try call(["STATE.HANDLER", "FORGET", name].map { Array($0.utf8) }, .write)
        guard let count = reply.integerValue else { throw Self.unexpected("STATE.HANDLER") }
        return count > 0
    }

    /// All handlers, by uid and name.
    ///
    /// - Throws: what the daemon refused with, or ``StateError/Code/unreachable``.
    package func handlers() throws(StateError) -> [Handler] {
        try ask("STATE.HANDLERS").rows().map { row throws(StateError) in
            Handler(
                name: try row.text("name"),
                uid: try row.number("uid"),
                patterns: row["patterns"]?.elements?.compactMap(\.byteValue) ?? [],
                position: row["position"]?.integerValue,
                epoch: try row.text("epoch"),
                lag: row["lag"]?.integerValue,
                pid: row["pid"]?.integerValue,
                time: row["time"]?.integerValue
            )
        }
    }
}
