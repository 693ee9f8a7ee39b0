import StateEngine
import StateWire

/// STATE.CHANGES: reads as many commits from the history as fit into one reply.
///
/// `@unchecked Sendable`: the history thread uses it between submission and finish, the loop thread
/// before and after.
final class ChangesJob: HistoryJob, @unchecked Sendable {
    // Immutable, or used only by the loop.
    private let connection: Connection
    let control: JobControl
    private let request: ChangesRequest
    /// The durable revision at the start.
    private let through: Int64

    // Used only by the history thread.
    private var reply: ChangesReply
    private var place: HistoryPlace
    /// Rows that are read and not in the reply yet.
    private var rows: [Row] = []
    private var rowByteCount = 0
    /// The commit of the last row in the reply.
    private var openRevision: Int64 = 0
    /// The last visited commit.
    private var seenRevision: Int64 = 0
    private var isCompacted = false

    private struct Row {
        var place: HistoryPlace
        var key: [UInt8]
        var value: [UInt8]?
        var previous: HistoryPlace?
    }

    init(_ request: ChangesRequest, through revision: Int64, for connection: Connection) {
        self.request = request
        self.connection = connection
        control = JobControl(for: connection)
        through = revision
        reply = request.makeReply()
        place = .end(of: request.options.since)
    }

    // MARK: On the history thread

    var byteCount: Int { reply.footprint + rowByteCount }

    func readSlice(of history: any HistoryReading) throws -> Bool {
        try history.snapshot { compacted in
            // The commits that were read before are complete nevertheless.
            guard reply.next >= (try history.oldestRevision(of: request.patterns, compacted)) else {
                isCompacted = true
                return true
            }
            var budget = HistoryBudget(byteCount: 1 << 20)
            let isWhole = try readRows(history, &budget)
            let isTaken = try takeRows(history, &budget)
            if isTaken, openRevision < seenRevision || isWhole { reply.endCommit(openRevision) }
            guard !reply.isFull else { return true }
            guard isTaken, isWhole else {
                reply.advance(to: place.revision - 1)
                return false
            }
            reply.advance(to: through)
            return true
        }
    }

    /// Reads the requested changes, and at most one commit more than fits into the reply.
    private func readRows(
        _ history: any HistoryReading,
        _ budget: inout HistoryBudget
    ) throws -> Bool {
        rows.removeAll(keepingCapacity: true)
        rowByteCount = 0
        var last = openRevision
        var left = request.options.count - reply.commitCount - (reply.isOpen ? 1 : 0)
        return try history.forEachChange(after: place, through: through) { change in
            seenRevision = change.revision
            var byteCount = 0
            if request.patterns.matches(change.key), request.view.mayReveal(.watch, about: change) {
                if change.revision != last {
                    last = change.revision
                    left -= 1
                    // The first change of the extra commit shows that the commit before it is
                    // complete.
                    if left < 0 { return false }
                }
                rows.append(row(change))
                byteCount = change.key.count + (change.value?.count ?? 0)
                rowByteCount += byteCount
            }
            place = change.place
            return budget.take(byteCount: byteCount)
        }
    }

    private func row(_ change: borrowing StoredChange) -> Row {
        Row(
            place: change.place,
            key: Array(change.key),
            value: change.value.map { Array($0) },
            previous: request.options.includesPrevious ? change.previousPlace : nil
        )
    }

    /// Writes the rows, with the replaced values if requested.
    ///
    /// - Returns: Whether all fit; if not, the rest is read again later.
    private func takeRows(
        _ history: any HistoryReading,
        _ budget: inout HistoryBudget
    ) throws -> Bool {
        for (index, row) in rows.enumerated() {
            if row.place.revision != openRevision { reply.endCommit(openRevision) }
            guard !reply.isFull else { return true }
            openRevision = row.place.revision
            var previous: [UInt8]?
            if let place = row.previous {
                _ = try history.withChange(at: place, supersededBy: row.place) { change in
                    guard request.view.mayReveal(.watch, about: change) else { return }
                    previous = change.value.map { Array($0) }
                }
            }
            try add(row, previous)
            guard row.previous != nil, index + 1 < rows.count,
                !budget.take(byteCount: previous?.count ?? 0)
            else { continue }
            place = row.place
            return false
        }
        return true
    }

    private func add(_ row: Row, _ previous: [UInt8]?) throws(StateError) {
        try row.key.withBorrowed { (key) throws(StateError) in
            try row.value.withBorrowed { (value) throws(StateError) in
                try previous.withBorrowed { (previous) throws(StateError) in
                    try reply.add(key, value, previous: previous, at: row.place.revision)
                }
            }
        }
    }

    // MARK: On the loop thread

    func finish(_ failure: StateError?, in server: Server) {
        server.keyspace.withCore { core in
            guard !connection.isClosed else { return }
            let changes = server.dispatcher.changes
            // Reply at once if there are commits; else with those that came meanwhile, or wait.
            let isStale = server.services.access.isStale(request.accessCount, connection)
            if failure == nil, !isCompacted, !isStale, reply.isEmpty,
                let blocked = connection.inbound.blocked
            {
                return changes.beginWaiting(blocked)
            }
            changes.unblock(connection, core)
            connection.inbound.awaitsLateReply = false
            server.services.gate.answer(connection, core) { (context) throws(StateError) in
                try server.requireMemory(control)
                if let failure { throw failure }
                if isCompacted && reply.isEmpty || isStale {
                    try changes.writeGap(request, &context)
                } else {
                    reply.write(
                        to: &connection.outbound.bytes,
                        epoch: request.includesEpoch ? core.epoch : nil
                    )
                }
            }
        }
    }
}

extension [UInt8]? {
    /// Calls `body` with the bytes, or with nil.
    fileprivate func withBorrowed<R>(
        _ body: (Bytes?) throws(StateError) -> R
    ) throws(StateError) -> R {
        guard let self else { return try body(nil) }
        return try self.withBorrowed { (bytes) throws(StateError) in try body(bytes) }
    }
}
