import StateEngine
import StateWire

/// The format of the pushes of one watch, written by the loop for new commits and by the history
/// thread for earlier ones.
struct WatchFormat: Sendable {
    let number: Int
    let options: Command.WatchOptions

    /// The header of a commit of so many rows; with revision 0, of a piece of a snapshot.
    func writeHead(_ revision: Int64, count: Int, to output: inout ByteBuffer) {
        let includesCause = revision > 0 && options.contains(.by)
        output.writePush(includesCause ? 5 : 4)
        output.writeBulk("state.change")
        output.writeInteger(Int64(number))
        output.writeInteger(revision)
        output.writeArray(count)
    }

    /// A change of a commit; the replaced value follows if the watch has PREVIOUS.
    func writeChange(_ key: Bytes, _ value: Bytes?, to output: inout ByteBuffer) {
        output.writeArray(options.contains(.previous) ? 3 : 2)
        output.writeBulk(key)
        writeValue(value, to: &output)
    }

    func writeValue(_ value: Bytes?, to output: inout ByteBuffer) {
        if let value { output.writeBulk(value) } else { output.writeNull(.resp3) }
    }

    /// A row of a piece of a snapshot.
    func writePiece(_ record: Record, _ core: KeyspaceCore, to output: inout ByteBuffer) {
        let includesCause = options.contains(.by)
        output.writeArray(includesCause ? 4 : 3)
        output.writeBulk(record.key)
        writeValue(record.value, to: &output)
        output.writeInteger(record.revision)
        if includesCause { output.writeBulk(core.causeBytes(of: record)) }
    }

    /// The beginning of a commit, before the bytes of ``EncodedCommit``.
    func beginCommit(to output: inout ByteBuffer) {
        output.writePush(options.contains(.by) ? 5 : 4)
        output.writeBulk("state.change")
        output.writeInteger(Int64(number))
    }

    var form: EncodedCommit.Form {
        EncodedCommit.Form(
            includesPrevious: options.contains(.previous),
            includesCause: options.contains(.by)
        )
    }

    /// The values of a round, grouped by revision.
    func writeLatest(_ latest: Watcher.LatestValues, to output: inout ByteBuffer) {
        let values = latest.values
        var start = 0
        while start < values.count {
            let revision = values[start].revision
            let end =
                latest.isPiece
                ? values.count
                : values[start...].firstIndex { $0.revision != revision } ?? values.count
            writeHead(latest.isPiece ? 0 : revision, count: end - start, to: &output)
            for value in values[start..<end] {
                write(value, isPiece: latest.isPiece, to: &output)
            }
            if !latest.isPiece, options.contains(.by) { output.writeBulk(values[start].cause) }
            start = end
        }
    }

    private func write(_ value: Watcher.LatestValue, isPiece: Bool, to output: inout ByteBuffer) {
        let includesCause = isPiece && options.contains(.by)
        output.writeArray(includesCause ? 4 : isPiece ? 3 : 2)
        output.writeBulk(value.key)
        if let bytes = value.value { output.writeBulk(bytes) } else { output.writeNull(.resp3) }
        if isPiece { output.writeInteger(value.revision) }
        if includesCause { output.writeBulk(value.cause) }
    }

    /// `state.synced`, `state.gap` or `state.progress`.
    func writeNotice(_ kind: StaticString, _ revision: Int64, to output: inout ByteBuffer) {
        output.writePush(3)
        output.writeBulk(kind)
        output.writeInteger(Int64(number))
        output.writeInteger(revision)
    }
}
