import StateEngine
import StateWire

/// STATE.HISTORY: walks the changes of one key back, newest first.
///
/// Before it is submitted and after it is finished it belongs to the loop thread, else to the history thread: the proof of
/// `@unchecked Sendable`.
final class KeyHistoryJob: ConnectionJob, @unchecked Sendable {
    let connection: Connection
    private let version: ProtocolVersion
    private let byteLimit: Int
    private var limit: Int
    private var next: HistoryPlace?
    private var entries = ByteBuffer()
    private var count = 0

    /// - Parameters:
    ///   - place: The newest change of the key; nil where none is known.
    ///   - limit: How many changes at most.
    init(from place: HistoryPlace?, limit: Int, for connection: Connection, byteLimit: Int) {
        self.connection = connection
        self.limit = limit
        self.byteLimit = byteLimit
        version = connection.version
        next = place
    }

    func readSlice(of history: any HistoryReading) throws -> Bool {
        var budget = HistoryBudget(byteCount: 1 << 20)
        return try history.snapshot { _ in
            while let place = next, count < limit {
                next = nil
                var byteCount = 0
                // Where compaction has taken it away, the walk ends.
                _ = try history.withChange(at: place) { change in
                    byteCount = change.key.count + (change.value?.count ?? 0) + 100
                    write(change)
                }
                guard entries.count <= byteLimit else {
                    throw StateError(
                        .tooBig,
                        "a reply of more than \(byteLimit) bytes; ask for less with LIMIT"
                    )
                }
                guard budget.take(byteCount: byteCount) else { return false }
            }
            return true
        }
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
        if change.previousRevision > 0 {
            next = HistoryPlace(revision: change.previousRevision, ordinal: change.previousOrdinal)
        }
    }

    func writeReply(_ core: KeyspaceCore) {
        connection.output.writeArray(count)
        connection.output.append(entries.bytes)
    }
}
