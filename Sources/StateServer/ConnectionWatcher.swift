import StateEngine
import StateWire

/// A watch of a connection: writes what it is told as pushes.
final class ConnectionWatcher: WatchReceiver {
    let number: Int
    let watcher: Watcher
    private unowned let connection: Connection
    private let flushes: FlushList
    private let options: Command.WatchOptions
    private let outputByteLimit: Int

    init(
        _ patterns: PatternSet,
        number: Int,
        connection: Connection,
        flushes: FlushList,
        options: Command.WatchOptions,
        from revision: Int64,
        outputByteLimit: Int
    ) {
        self.number = number
        self.connection = connection
        self.flushes = flushes
        self.outputByteLimit = outputByteLimit
        self.options = options
        watcher = Watcher(patterns, snapshot: options.contains(.snapshot), from: revision)
        watcher.receiver = self
    }

    var hasRoom: Bool { connection.output.count < outputByteLimit }

    func receive(_ notice: Watcher.Notice, in core: KeyspaceCore) {
        switch notice {
        case .commit(let revision, let changes):
            let tellsCause = options.contains(.by)
            writeChange(revision, changes.count, extra: tellsCause ? 1 : 0)
            for change in changes { write(change) }
            if tellsCause { connection.output.writeBulk(core.causeBytes(of: changes[0])) }
        case .piece(let records):
            writeChange(0, records.count)
            for record in records { writePiece(record, core) }
        case .synced(let revision):
            writeMark("state.synced", revision)
        case .gap(let revision):
            writeMark("state.gap", revision)
        }
        flushes.add(connection)
    }

    private func writeChange(_ revision: Int64, _ count: Int, extra: Int = 0) {
        connection.output.writePush(4 + extra)
        connection.output.writeBulk("state.change")
        connection.output.writeInteger(Int64(number))
        connection.output.writeInteger(revision)
        connection.output.writeArray(count)
    }

    private func write(_ change: Record) {
        let tellsPrevious = options.contains(.previous)
        connection.output.writeArray(tellsPrevious ? 3 : 2)
        connection.output.writeBulk(change.key)
        write(change.value)
        if tellsPrevious { write(change.older?.value) }
    }

    private func writePiece(_ record: Record, _ core: KeyspaceCore) {
        let tellsCause = options.contains(.by)
        connection.output.writeArray(tellsCause ? 4 : 3)
        connection.output.writeBulk(record.key)
        write(record.value)
        connection.output.writeInteger(record.revision)
        if tellsCause { connection.output.writeBulk(core.causeBytes(of: record)) }
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
