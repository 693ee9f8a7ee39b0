import StateEngine
import StateWire

/// STATE.LIST … AT.
///
/// Before it is submitted and after it is finished it belongs to the loop thread, else to the history thread: the proof of
/// `@unchecked Sendable`.
final class PastListJob: ConnectionJob, @unchecked Sendable {
    let connection: Connection
    let control: JobControl
    private let past: PastState
    private let form: Command.ListForm

    init(_ past: PastState, _ form: Command.ListForm, for connection: Connection) {
        self.connection = connection
        control = JobControl(for: connection)
        self.past = past
        self.form = form
    }

    var byteCount: Int { past.readByteCount }

    var meanwhileByteCount: Int { past.meanwhileByteCount }

    func readSlice(of history: any HistoryReading) throws -> Bool {
        try past.readSlice(of: history)
    }

    func release(_ core: KeyspaceCore) { past.endTracking(in: core) }

    func writeReply(_ core: KeyspaceCore) throws(StateError) {
        var rows = ByteBuffer()
        var count = 0
        let byteLimit = past.request.byteLimit
        try past.forEach(in: core) { key, version in
            count += 1
            if form != .count { write(key, version, &rows, core) }
            return rows.count <= byteLimit
        }
        guard rows.count <= byteLimit else {
            throw StateError(
                .tooBig,
                "a reply of more than \(byteLimit) bytes; \(past.request.advice)"
            )
        }
        guard form != .count else {
            connection.output.writeInteger(Int64(count))
            return
        }
        connection.output.writeArray(count)
        connection.output.append(rows.bytes)
    }

    private func write(
        _ key: Bytes,
        _ version: PastState.Version,
        _ rows: inout ByteBuffer,
        _ core: KeyspaceCore
    ) {
        switch version {
        case .present(let record):
            rows.writeRow(record, form, in: core)
        case .past(let version):
            version.value.withUnsafeBytes { value in
                rows.writeRow(
                    key,
                    value,
                    version.fields,
                    by: version.cause,
                    form,
                    form == .long ? EntryHome(of: key, in: core) : EntryHome()
                )
            }
        }
    }
}
