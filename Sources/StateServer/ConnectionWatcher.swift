import StateEngine
import StateWire

/// A watch of a connection: writes what it is told as pushes.
final class ConnectionWatcher: WatchReceiver {
    let number: Int
    let watcher: Watcher
    private unowned let connection: Connection
    private let flushes: FlushList
    private let wantsPrevious: Bool
    private let outputByteLimit: Int

    init(
        _ patterns: PatternSet,
        number: Int,
        connection: Connection,
        flushes: FlushList,
        snapshot: Bool,
        previous: Bool,
        from revision: Int64,
        outputByteLimit: Int
    ) {
        self.number = number
        self.connection = connection
        self.flushes = flushes
        self.outputByteLimit = outputByteLimit
        wantsPrevious = previous
        watcher = Watcher(patterns, snapshot: snapshot, from: revision)
        watcher.receiver = self
    }

    var hasRoom: Bool { connection.output.count < outputByteLimit }

    func receive(_ notice: Watcher.Notice, in core: KeyspaceCore) {
        switch notice {
        case .commit(let revision, let changes):
            writeChange(revision, changes.count)
            for change in changes { write(change) }
        case .piece(let records):
            writeChange(0, records.count)
            for record in records { writePiece(record) }
        case .synced(let revision):
            writeMark("state.synced", revision)
        case .gap(let revision):
            writeMark("state.gap", revision)
        }
        flushes.add(connection)
    }

    private func writeChange(_ revision: Int64, _ count: Int) {
        connection.output.writePush(4)
        connection.output.writeBulk("state.change")
        connection.output.writeInteger(Int64(number))
        connection.output.writeInteger(revision)
        connection.output.writeArray(count)
    }

    private func write(_ change: Record) {
        connection.output.writeArray(wantsPrevious ? 3 : 2)
        connection.output.writeBulk(change.key)
        write(change.value)
        if wantsPrevious { write(change.older?.value) }
    }

    private func writePiece(_ record: Record) {
        connection.output.writeArray(3)
        connection.output.writeBulk(record.key)
        write(record.value)
        connection.output.writeInteger(record.revision)
    }

    private func write(_ value: Bytes?) {
        if let value {
            connection.output.writeBulk(value)
        } else {
            connection.output.writeNull(.resp3)
        }
    }

    private func writeMark(_ kind: StaticString, _ revision: Int64) {
        connection.output.writePush(3)
        connection.output.writeBulk(kind)
        connection.output.writeInteger(Int64(number))
        connection.output.writeInteger(revision)
    }
}

/// The connections that have something to send, each once.
final class FlushList {
    private var connections: [Connection] = []

    func add(_ connection: Connection) {
        guard !connection.isListedForFlush else { return }
        connection.isListedForFlush = true
        connections.append(connection)
    }

    /// Calls `body` for each connection and forgets them.
    func drain(_ body: (Connection) -> Void) {
        var index = 0
        while index < connections.count {
            let connection = connections[index]
            connection.isListedForFlush = false
            if !connection.isClosed { body(connection) }
            index += 1
        }
        connections.removeAll(keepingCapacity: true)
    }
}
