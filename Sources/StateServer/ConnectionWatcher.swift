import StateEngine
import StateWire

/// A watch of a connection: writes what it is told as pushes.
final class ConnectionWatcher: WatchReceiver {
    let number: Int
    let watcher: Watcher
    /// It owns this object.
    private unowned(unsafe) let connection: Connection
    private let flushes: FlushList
    private let form: EncodedCommit.Form
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
        form = EncodedCommit.Form(
            tellsPrevious: options.contains(.previous),
            tellsCause: options.contains(.by)
        )
        watcher = Watcher(patterns, snapshot: options.contains(.snapshot), from: revision)
        watcher.receiver = self
    }

    var hasRoom: Bool {
        if connection.output.count < outputByteLimit { return true }
        connection.mayHaveBlockedWatcher = true
        return false
    }

    func receive(_ notice: Watcher.Notice, in core: KeyspaceCore) {
        switch notice {
        case .commit(let revision, let changes):
            writeHead("state.change", form.tellsCause ? 5 : 4)
            flushes.encodedCommit.append(revision, changes, form, in: core, to: &connection.output)
        case .piece(let records):
            writeHead("state.change", 4)
            connection.output.writeInteger(0)
            connection.output.writeArray(records.count)
            for record in records { writePiece(record, core) }
        case .synced(let revision):
            writeMark("state.synced", revision)
        case .gap(let revision):
            writeMark("state.gap", revision)
        }
        flushes.add(connection)
    }

    /// What begins each push: it has so many elements.
    private func writeHead(_ kind: StaticString, _ count: Int) {
        connection.output.writePush(count)
        connection.output.writeBulk(kind)
        connection.output.writeInteger(Int64(number))
    }

    private func writePiece(_ record: Record, _ core: KeyspaceCore) {
        connection.output.writeArray(form.tellsCause ? 4 : 3)
        connection.output.writeBulk(record.key)
        connection.output.writeValue(record.value)
        connection.output.writeInteger(record.revision)
        if form.tellsCause { connection.output.writeBulk(core.causeBytes(of: record)) }
    }

    private func writeMark(_ kind: StaticString, _ revision: Int64) {
        writeHead(kind, 3)
        connection.output.writeInteger(revision)
    }
}

/// The connections that have something to send, each once.
final class FlushList {
    /// What watchers were last told since the list was drained.
    let encodedCommit = EncodedCommit()
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
