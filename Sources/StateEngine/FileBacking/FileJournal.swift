import CLinux

/// The steps of a commit that changes several files, on disk before the first is taken, so that all
/// of them take effect or none.
///
/// ```
/// "stated files 1\n"  number of steps
/// each step: target, 1 and the former stamp or 0, 1 and staged path and stamp or 0
/// CRC-32C of all that
/// ```
///
/// Numbers are little-endian, paths are preceded by their length. No step of a truncated journal
/// was taken.
enum FileJournal {
    static let directory = FilePath(".stated")
    static let path = directory.appending(Array("journal".utf8))
    private static let magic = Array("stated files 1\n".utf8)

    static func encoded(_ steps: [FileStep]) -> [UInt8] {
        var writer = Writer(bytes: magic)
        writer.put(UInt64(steps.count))
        for step in steps {
            writer.put(step.target)
            writer.put(step.before != nil ? 1 : 0)
            if let before = step.before { writer.put(before) }
            writer.put(step.staged != nil ? 1 : 0)
            if let staged = step.staged {
                writer.put(staged.path)
                writer.put(staged.stamp)
            }
        }
        writer.put(UInt64(checksum(writer.bytes[...])))
        return writer.bytes
    }

    /// The steps of a journal; nil if it is incomplete.
    static func decoded(_ bytes: [UInt8]) -> [FileStep]? {
        guard bytes.count >= magic.count + 16, bytes.starts(with: magic) else { return nil }
        let body = bytes[..<(bytes.count - 8)]
        var tail = Reader(bytes: bytes[(bytes.count - 8)...])
        guard tail.number() == UInt64(checksum(body)) else { return nil }
        var reader = Reader(bytes: body.dropFirst(magic.count))
        guard let count = reader.number(), count <= bytes.count else { return nil }
        var steps: [FileStep] = []
        for _ in 0..<count {
            guard let target = reader.path(), let hasBefore = reader.number() else { return nil }
            let before = hasBefore == 1 ? reader.stamp() : nil
            guard let hasStaged = reader.number() else { return nil }
            var staged: FileStep.Staged?
            if hasStaged == 1 {
                guard let path = reader.path(), let stamp = reader.stamp() else { return nil }
                staged = FileStep.Staged(path: path, stamp: stamp)
            }
            steps.append(FileStep(target: target, before: before, staged: staged))
        }
        return reader.bytes.isEmpty ? steps : nil
    }

    private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.withUnsafeBytes { clinux_crc32c(0, $0.baseAddress, $0.count) }
    }

    private struct Writer {
        var bytes: [UInt8]

        mutating func put(_ number: UInt64) {
            for shift in stride(from: 0, to: 64, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(shift)))
            }
        }

        mutating func put(_ path: FilePath) {
            put(UInt64(path.bytes.count))
            bytes += path.bytes
        }

        mutating func put(_ stamp: FileStamp) {
            for number in [stamp.device, stamp.inode] { put(number) }
            for number in [stamp.byteCount, stamp.modified] { put(UInt64(bitPattern: number)) }
        }
    }

    private struct Reader {
        var bytes: ArraySlice<UInt8>

        mutating func number() -> UInt64? {
            guard bytes.count >= 8 else { return nil }
            defer { bytes.removeFirst(8) }
            return bytes.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }

        mutating func path() -> FilePath? {
            guard let count = number(), count <= bytes.count else { return nil }
            defer { bytes.removeFirst(Int(count)) }
            return FilePath(Array(bytes.prefix(Int(count))))
        }

        mutating func stamp() -> FileStamp? {
            guard let device = number(), let inode = number(), let byteCount = number(),
                let modified = number()
            else { return nil }
            return FileStamp(
                device: device,
                inode: inode,
                byteCount: Int64(bitPattern: byteCount),
                modified: Int64(bitPattern: modified)
            )
        }
    }
}
