import StateEngine
import StateWire

/// STATE.HISTORY: walks back through the changes of one key, newest first.
///
/// `@unchecked Sendable`: the history thread uses it between submission and finish, the loop thread
/// before and after.
final class KeyHistoryJob: ConnectionJob, @unchecked Sendable {
    let connection: Connection
    let control: JobControl
    private let version: ProtocolVersion
    private let view: Visibility
    private let byteLimit: Int
    private var limit: Int
    /// As memory has it: the history need not have it any more.
    private let newest: PastChange?
    private var next: HistoryPlace?
    /// The place of the change that superseded ``next``.
    private var successor: HistoryPlace?
    /// The reply, with room for the count at its start: it is moved to the output, because copying
    /// many MiB would make all clients wait.
    private var entries = ByteBuffer()
    private var count = 0
    private static let headByteCount = 24

    private let key: [UInt8]
    /// Only changes before this revision; nil once the walk has reached it.
    private var before: Int64?
    private var hasLookedForBefore = false

    /// - Parameters:
    ///   - key: The key.
    ///   - newest: The newest change of the key; nil if none is known.
    ///   - revision: Only changes before this one; nil for all.
    ///   - limit: The most changes.
    ///   - connection: The connection that waits.
    ///   - view: The versions that it may see.
    ///   - byteLimit: The size limit of the reply.
    init(
        of key: [UInt8],
        from newest: PastChange?,
        before revision: Int64?,
        limit: Int,
        for connection: Connection,
        seeing view: Visibility,
        byteLimit: Int
    ) {
        self.key = key
        self.connection = connection
        control = JobControl(for: connection)
        self.limit = limit
        self.view = view
        self.byteLimit = byteLimit
        version = connection.session.version
        self.newest = newest
        next = newest?.place
        before = revision
        for _ in 0..<KeyHistoryJob.headByteCount { entries.append(0) }
    }

    var byteCount: Int { entries.footprint }

    func readSlice(of history: any HistoryReading) throws -> Bool {
        var budget = HistoryBudget(byteCount: 1 << 20)
        return try history.snapshot { _ in
            if !hasLookedForBefore { try lookForBefore(history) }
            while let place = next, count < limit {
                next = nil
                var byteCount = 0
                // If compaction has removed it, the walk ends.
                _ = try history.withChange(
                    at: place,
                    of: key,
                    newest: newest,
                    supersededBy: successor
                ) { change in
                    byteCount = take(change)
                }
                successor = place
                guard entries.count <= byteLimit else {
                    throw StateError(
                        .tooBig,
                        "the reply would have more than \(byteLimit) bytes, the limit; "
                            + "ask for less with LIMIT"
                    )
                }
                guard budget.take(byteCount: byteCount) else { return false }
            }
            return true
        }
    }

    /// Finds the change that ended the previous page, so that the walk continues there.
    private func lookForBefore(_ history: any HistoryReading) throws {
        hasLookedForBefore = true
        guard let revision = before, let newest = next, revision <= newest.revision else { return }
        _ = try history.forEachChange(after: .end(of: revision - 1), through: revision) { change in
            guard key.withUnsafeBytes({ $0.isEqual(to: change.key) }) else { return true }
            before = nil
            (next, successor) = (change.previousPlace, change.place)
            return false
        }
    }

    /// Writes a change, unless the walk has not reached the first requested one.
    ///
    /// - Returns: The approximate number of kept bytes.
    private func take(_ change: borrowing StoredChange) -> Int {
        next = change.previousPlace
        if let before {
            guard change.revision < before else { return 0 }
            self.before = nil
        }
        guard view.mayReveal(.read, about: change) else { return 0 }
        write(change)
        return change.key.count + (change.value?.count ?? 0) + 100
    }

    private func write(_ change: borrowing StoredChange) {
        count += 1
        entries.writeMap(4, version)
        entries.writeField("revision", change.revision)
        entries.writeBulk("value")
        if let value = change.value { entries.writeBulk(value) } else { entries.writeNull(version) }
        entries.writeField("time", change.time)
        entries.writeBulk("by")
        entries.writeBulk(change.cause)
    }

    func writeReply(_ context: inout CommandContext) {
        var head = ByteBuffer()
        head.writeArray(count)
        entries.replaceFirst(KeyHistoryJob.headByteCount, with: head.bytes)
        context.output.append(taking: &entries)
    }
}
