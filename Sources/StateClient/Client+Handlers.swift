package import StateModel
import StateWire

/// Named handlers: the daemon stores the position of each.
extension Client {
    /// Where a new handler begins.
    package enum HandlerStart: Hashable, Sendable {
        /// With the next change.
        case now
        /// With the changes after a revision.
        case revision(Int64)
        /// With the state.
        case snapshot
    }

    /// A handler that this connection has attached, until the connection ends.
    package struct Attachment: Hashable, Sendable {
        /// The last revision that the handler has handled; nil if it begins with the state.
        package let position: Int64?
        /// The epoch of the position.
        package let epoch: String
        /// Whether the handler is new or was reset.
        package let isNew: Bool
        /// The newest revision.
        package let revision: Int64
        /// The present epoch of the store.
        package let currentEpoch: String
    }

    /// A handler in the daemon's listing.
    package struct Handler: Hashable, Sendable {
        /// Its name, unique for its uid.
        package let name: String
        /// Its owner.
        package let uid: Int64
        /// The patterns that it watches.
        package let patterns: [[UInt8]]
        /// The last revision that it has handled; nil if it begins with the state.
        package let position: Int64?
        /// The epoch of the position.
        package let epoch: String
        /// How many revisions it is behind; nil if unknown.
        package let lag: Int64?
        /// The process that has attached it; nil if none has.
        package let pid: Int64?
        /// When it reached its position, in milliseconds since 1970; nil if it has handled nothing
        /// yet.
        package let time: Int64?
    }

    /// Attaches a handler to this connection; makes it if it does not exist.
    ///
    /// - Parameters:
    ///   - name: At most 128 bytes of UTF-8 without control characters.
    ///   - patterns: The same as when it was made.
    ///   - start: Where it begins, if it is new.
    ///   - isReset: Makes it anew, even if it exists.
    /// - Returns: Its position.
    /// - Throws: ``StateError/Code/conflict`` if another connection has attached it, or its
    ///   patterns differ; any other error of the daemon; ``StateError/Code/unreachable`` or
    ///   ``StateError/Code/outcomeUnknown``.
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
        // The watch that follows needs RESP3 anyway.
        let reply = try ask("STATE.HANDLER", operands + patterns.map(\.argument), .write)
        return Attachment(
            position: reply["position"]?.integerValue,
            epoch: try reply.text("epoch"),
            isNew: try reply.number("new") == 1,
            revision: try reply.number("revision"),
            currentEpoch: try reply.text("current_epoch")
        )
    }

    /// Records that a handler of this connection has handled everything up to a revision; durable
    /// when it returns.
    ///
    /// - Throws: ``StateError/Code/conflict`` if this connection has not attached it, or its
    ///   position is already later; any other error of the daemon; ``StateError/Code/unreachable``
    ///   or ``StateError/Code/outcomeUnknown``.
    package func finishHandling(_ name: String, through revision: Int64) throws(StateError) {
        let words = ["STATE.HANDLER", "DONE", name, String(revision)]
        _ = try call(words.map { Array($0.utf8) }, .write)
    }

    /// Removes a handler of this uid.
    ///
    /// - Returns: Whether it existed.
    /// - Throws: ``StateError/Code/conflict`` if a connection has attached it; any other error of
    ///   the daemon; ``StateError/Code/unreachable`` or ``StateError/Code/outcomeUnknown``.
    package func forgetHandler(_ name: String) throws(StateError) -> Bool {
        let reply = try call(["STATE.HANDLER", "FORGET", name].map { Array($0.utf8) }, .write)
        guard let count = reply.integerValue else { throw Self.unexpected("STATE.HANDLER") }
        return count > 0
    }

    /// All handlers, by uid and name.
    ///
    /// - Throws: The daemon's error, or ``StateError/Code/unreachable``.
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
