public import StateModel
import StateWire

extension Client {
    /// A watch that the daemon has started.
    public struct Watch: Hashable, Sendable {
        /// Its number on this connection.
        public let number: Int64
        /// The revision that was current; later events concern later ones.
        public let revision: Int64
        /// The epoch of the daemon's store.
        public let epoch: String
    }

    /// What happened to one key.
    public struct Change: Hashable, Sendable {
        /// The key.
        public let key: [UInt8]
        /// The new value; nil if the key was deleted.
        public let value: [UInt8]?
        /// The value before it, if the watch requested it and there was one.
        public let previous: [UInt8]?
        /// The revision of the change.
        public let revision: Int64
        /// Who made it, if the watch requested it.
        public let cause: Cause?
    }

    /// An event of a watch.
    public enum Event: Hashable, Sendable {
        /// A commit, with all its changes that match the watch.
        case commit(watch: Int64, revision: Int64, changes: [Change])
        /// A part of the state, before ``synced(watch:revision:)``; each change has its own
        /// revision.
        case piece(watch: Int64, changes: [Change])
        /// The parts so far are exactly the state at this revision.
        case synced(watch: Int64, revision: Int64)
        /// Everything delivered before is void; the state follows in parts.
        case gap(watch: Int64, revision: Int64)
        /// All changes up to this revision have been delivered.
        case progress(watch: Int64, revision: Int64)
        /// Keys of the watch are a copy of a cluster, and from now on may be behind it.
        case away(watch: Int64, revision: Int64)
        /// The copy is known to be complete again.
        case current(watch: Int64, revision: Int64)

        /// The watch of the event.
        public var watch: Int64 {
            switch self {
            case .commit(let watch, _, _), .piece(let watch, _), .synced(let watch, _),
                .gap(let watch, _), .progress(let watch, _), .away(let watch, _),
                .current(let watch, _):
                watch
            }
        }
    }

    /// Starts a watch of everything that matches the patterns.
    ///
    /// - Parameters:
    ///   - patterns: At least one.
    ///   - snapshot: Delivers the state first, in parts.
    ///   - revision: Delivers the commits after it first; if they are not available, a gap and the
    ///     state.
    ///   - epoch: The epoch of that revision, as ``Watch/epoch``; nil for the present one.
    ///   - latest: Delivers the latest value of each key, in rounds that end with
    ///     ``Event/synced(watch:revision:)``; cannot be combined with `previous`.
    ///   - previous: Includes the value that each change replaced.
    ///   - by: Includes who made each change.
    /// - Returns: The watch, as its events name it.
    /// - Throws: The daemon's error, or ``StateError/Code/unreachable``.
    public func watch(
        _ patterns: [Pattern],
        snapshot: Bool = false,
        from revision: Int64? = nil,
        epoch: String? = nil,
        latest: Bool = false,
        previous: Bool = false,
        by: Bool = false
    ) throws(StateError) -> Watch {
        var words: [String] = []
        if snapshot { words.append("SNAPSHOT") }
        if let revision { words += ["FROM", String(revision)] }
        if let epoch { words += ["EPOCH", epoch] }
        if latest { words.append("LATEST") }
        if previous { words.append("PREVIOUS") }
        if by { words.append("BY") }
        return try Self.watch(try ask("STATE.WATCH", patterns.map(\.argument), words: words))
    }

    /// The watch in a reply.
    static func watch(_ reply: Fields) throws(StateError) -> Watch {
        Watch(
            number: try reply.number("watch"),
            revision: try reply.number("revision"),
            epoch: reply["epoch"]?.textValue ?? ""
        )
    }

    /// Ends a watch; its events that have already arrived are still returned.
    ///
    /// - Throws: The daemon's error, or ``StateError/Code/unreachable``.
    public func unwatch(_ watch: Watch) throws(StateError) {
        _ = try ask("STATE.UNWATCH", words: [String(watch.number)])
    }

    /// Waits for the next event of any watch of this client.
    ///
    /// - Parameter timeout: How long to wait; nil waits forever.
    /// - Returns: The event; nil if none came in time.
    /// - Throws: ``StateError/Code/unreachable`` if the connection is lost.
    public func nextEvent(timeout: Duration? = nil) throws(StateError) -> Event? {
        try nextEvent(until: timeout.map { Deadline(after: $0) })
    }

    /// The next event; nil after the deadline, or if `other` happens.
    package func nextEvent(
        until deadline: Deadline?,
        unless other: Interruption? = nil
    ) throws(StateError) -> Event? {
        while let push = try nextPush(until: deadline, unless: other) {
            // Unknown kinds, which a later daemon may send, are skipped.
            if let event = try Self.event(push) { return event }
        }
        return nil
    }

    private static let watchKinds: Set = [
        "state.change", "state.synced", "state.gap", "state.progress", "state.away",
        "state.current",
    ]

    static func event(_ push: Reply) throws(StateError) -> Event? {
        guard let parts = push.elements, let kind = parts.first?.textValue,
            watchKinds.contains(kind)
        else { return nil }
        guard parts.count >= 3, let watch = parts[1].integerValue,
            let revision = parts[2].integerValue
        else { throw unexpected(kind) }
        switch kind {
        case "state.synced": return .synced(watch: watch, revision: revision)
        case "state.gap": return .gap(watch: watch, revision: revision)
        case "state.progress": return .progress(watch: watch, revision: revision)
        case "state.away": return .away(watch: watch, revision: revision)
        case "state.current": return .current(watch: watch, revision: revision)
        default:
            guard parts.count >= 4, let rows = parts[3].elements else { throw unexpected(kind) }
            let cause = parts.count > 4 ? parts[4].textValue.flatMap { Cause($0) } : nil
            let changes = try rows.map { row throws(StateError) in
                try change(row, revision, cause)
            }
            return revision == 0
                ? .piece(watch: watch, changes: changes)
                : .commit(watch: watch, revision: revision, changes: changes)
        }
    }

    /// A change of a commit, or if `revision` is 0 a part of the state, whose third element is its
    /// revision.
    static func change(
        _ row: Reply,
        _ revision: Int64,
        _ cause: Cause?
    ) throws(StateError) -> Change {
        guard let parts = row.elements, parts.count >= 2, let key = parts[0].byteValue else {
            throw unexpected("state.change")
        }
        let third = parts.count > 2 ? parts[2] : .null
        return Change(
            key: key,
            value: parts[1].byteValue,
            previous: revision == 0 ? nil : third.byteValue,
            revision: revision == 0 ? third.integerValue ?? 0 : revision,
            cause: revision == 0 && parts.count > 3
                ? parts[3].textValue.flatMap { Cause($0) } : cause
        )
    }
}
