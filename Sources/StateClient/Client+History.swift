public import StateModel
import StateWire

extension Client {
    /// A change of a key in the history.
    public struct HistoryEntry: Hashable, Sendable {
        /// The revision of the change.
        public let revision: Int64
        /// The new value; nil if the key was deleted.
        public let value: [UInt8]?
        /// Wall time in milliseconds since 1970.
        public let time: Int64
        /// Who made it: `uid:gid:pid:command:client`.
        public let writer: String
    }

    /// The entry of a key at a revision, or the present one if that is nil; nil if the key was
    /// absent.
    ///
    /// - Throws: ``StateError/Code/compacted``, naming the oldest revision that is kept;
    ///   ``StateError/Code/invalidRequest`` for a revision above the current one; any other error of the
    ///   daemon, or ``StateError/Code/unreachable``.
    public func entry(for key: Key, at revision: Int64?) throws(StateError) -> Entry? {
        var arguments = [Array("STATE.GET".utf8), key.bytes]
        if let revision { arguments.add("AT", String(revision)) }
        return try Self.entry(try call(arguments, .needsRESP3))
    }

    /// The changes of a key, newest first.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - limit: The largest number of changes to return.
    ///   - revision: Only changes before this one, such as the last of a page; nil for all.
    /// - Returns: The changes that the history still has.
    /// - Throws: The daemon's error, or ``StateError/Code/unreachable``.
    public func history(
        of key: Key,
        limit: Int,
        before revision: Int64? = nil
    ) throws(StateError) -> [HistoryEntry] {
        var words = ["LIMIT", String(limit)]
        if let revision { words += ["BEFORE", String(revision)] }
        return try ask("STATE.HISTORY", [key.bytes], words: words).rows().map {
            row throws(StateError) in
            HistoryEntry(
                revision: try row.number("revision"),
                value: row["value"]?.byteValue,
                time: try row.number("time"),
                writer: row["by"]?.textValue ?? ""
            )
        }
    }

    /// Restores every key that matches the pattern to its state at a revision, in one commit.
    ///
    /// - Returns: The commit and how many keys it changed, which may be 0.
    /// - Throws: ``StateError/Code/compacted`` and ``StateError/Code/invalidRequest`` as ``entry(for:at:)``;
    ///   ``StateError/Code/tooBig`` if it exceeds the limit of a transaction; else as
    ///   ``set(_:for:if:durability:expiresAfter:livingAs:)``. Nothing has changed then.
    @discardableResult
    public func revert(_ pattern: Pattern, to revision: Int64) throws(StateError) -> Commit {
        let words = ["TO", String(revision)]
        return try Self.commit(
            try ask("STATE.REVERT", [pattern.bytes], .write, words: words),
            count: 0
        )
    }

    /// What ``revert(_:to:)`` would change now.
    ///
    /// - Returns: The newest revision, and the values of the keys before and after, in key order.
    /// - Throws: As ``revert(_:to:)``, whatever would refuse that.
    package func reversion(
        of pattern: Pattern,
        to revision: Int64
    ) throws(StateError) -> (revision: Int64, changes: [Reversion]) {
        let words = ["TO", String(revision), "DRYRUN"]
        let reply = try ask("STATE.REVERT", [pattern.bytes], words: words)
        let changes = try reply.rows("changes").map { row throws(StateError) in
            Reversion(
                key: try row.bytes(0),
                before: row[1]?.byteValue,
                after: row[2]?.byteValue
            )
        }
        return (try reply.number("revision"), changes)
    }

    /// What a revert does to a key.
    package struct Reversion: Hashable, Sendable {
        /// The key.
        package let key: [UInt8]
        /// The present value; nil if the key is absent.
        package let before: [UInt8]?
        /// The value afterwards; nil if the key will be absent.
        package let after: [UInt8]?
    }

    /// The newest revision at a time.
    ///
    /// - Parameter time: Wall time in milliseconds since 1970.
    /// - Returns: The revision; 0 if there was none yet.
    /// - Throws: ``StateError/Code/compacted`` if the history no longer reaches back to that time;
    ///   else the daemon's error, or ``StateError/Code/unreachable``.
    public func revision(at time: Int64) throws(StateError) -> Int64 {
        try ask("STATE.MOMENT", [], words: [String(time)]).number("revision")
    }

    /// The commits since a revision.
    public enum Changes: Hashable, Sendable {
        /// The commits after it, each with its changes; there may be more after `next`.
        case commits([[Change]], next: Int64)
        /// The commits are no longer available, or belong to another epoch: the state at `next`
        /// replaces all that was known.
        case gap([ListedEntry], next: Int64)
    }

    /// The commits after a revision that touch matching keys, as many as fit into one reply.
    ///
    /// - Parameters:
    ///   - revision: The last known revision: 0, or the `next` of the last reply.
    ///   - patterns: At least one.
    ///   - epoch: The epoch of that revision, as in ``status()``; nil for the present one.
    ///   - limit: The largest number of commits; nil for as many as fit.
    ///   - previous: Includes the value that each change replaced.
    /// - Returns: The commits, or the state if they are not available.
    /// - Throws: The daemon's error, or ``StateError/Code/unreachable``.
    public func changes(
        since revision: Int64,
        of patterns: [Pattern],
        epoch: String? = nil,
        limit: Int? = nil,
        previous: Bool = false
    ) throws(StateError) -> Changes {
        var words = ["STATE.CHANGES", "SINCE", String(revision)]
        if let epoch { words += ["EPOCH", epoch] }
        if let limit { words += ["COUNT", String(limit)] }
        if previous { words.append("PREVIOUS") }
        let arguments = words.map { Array($0.utf8) } + patterns.map(\.argument)
        return try Self.changes(try call(arguments, .needsRESP3))
    }

    private static func changes(_ reply: Reply) throws(StateError) -> Changes {
        guard let parts = reply.elements, parts.count >= 3, let word = parts[0].textValue,
            let next = parts[1].integerValue, let rows = parts[2].elements
        else { throw unexpected("STATE.CHANGES") }
        guard word != "gap" else {
            return .gap(try rows.map(stateEntry), next: next)
        }
        let commits = try rows.map { row throws(StateError) in
            guard let commit = row.elements, commit.count >= 2,
                let revision = commit[0].integerValue, let changes = commit[1].elements
            else { throw unexpected("STATE.CHANGES") }
            return try changes.map { change throws(StateError) in
                try Self.change(change, revision, nil)
            }
        }
        return .commits(commits, next: next)
    }

    private static func stateEntry(_ row: Reply) throws(StateError) -> ListedEntry {
        let row = Fields(row, of: "STATE.CHANGES")
        return ListedEntry(
            key: try row.bytes(0),
            value: row[1]?.byteValue,
            revision: try row.number(2)
        )
    }
}
