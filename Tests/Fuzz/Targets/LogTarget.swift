import StateEngine
import StateLog
import StateModel
import StateTestSupport

/// A log whose bytes were altered, and the contents of a frame.
///
/// ```
/// 0  bit 0: the rest is the contents of a frame; otherwise the rest are edits of a log, each 5 bytes:
///    which file, 3 bytes of where, and what is there then
/// ```
enum LogTarget {
    static func run(_ bytes: Bytes) throws {
        guard let first = bytes.first else { return }
        let rest = bytes.slice(1, bytes.count)
        if first & 1 == 1 { read(rest) } else { try edit(rest) }
    }

    /// Whatever the bytes are, each part that is read of them has the row that its checksum says.
    private static func read(_ contents: Bytes) {
        var partCount = 0
        do throws(LogDamage) {
            try CommitCoder.read(contents, at: 1_000) { _, _ in
                partCount += 1
            }
        } catch {
            require(!error.reason.isEmpty, "damage without a reason")
        }
        require(partCount <= contents.count, "more parts than bytes")
    }

    private static var options: StateLog.Options {
        var options = StateLog.Options()
        options.segmentByteCount = 16 << 10
        return options
    }

    private static func edit(_ edits: Bytes) throws {
        let files = SimulatedFiles(sectorByteCount: 512, seed: 1)
        var written: [[UInt8]] = []
        let log = try StateLog(files, options) { _, _ in }
        for number in 0..<60 {
            let value = [UInt8](repeating: 1, count: number * 13)
            let contents = CodedCommits(Int64(number + 1), value: value)
            try log.append(contents, at: 0)
            try log.sync()
            written.append(contents.bytes)
        }
        let names = try files.names().sorted()
        for start in stride(from: 0, to: edits.count - 4, by: 5) {
            let name = names[Int(edits[start]) % names.count]
            let place = (1...3).reduce(0) { $0 << 8 | Int(edits[start + $1]) }
            files.put(edits[start + 4], in: name, at: place % files.byteCount(of: name))
        }
        var found: [[UInt8]] = []
        do {
            _ = try StateLog(files, options) { contents, _ in found.append(Array(contents)) }
        } catch {
            require(!error.message.isEmpty, "an error without a message")
        }
        // A frame that was not written has no checksum of this log.
        require(found == Array(written.prefix(found.count)), "frames that were not written")
    }
}
