import StatePlatform
import StateSystem

/// Reads a backup and checks it: each frame by its checksum, their order, and the whole at the end.
///
/// Not safe for concurrent use.
package final class BackupReader {
    /// The file, or `standard input`.
    package let name: String
    private let descriptor: Int32
    /// Bytes that were read.
    private var offset: Int64 = 0
    private var frameCount: UInt32 = 0
    private var rowCount: Int64 = 0
    private var checksum: UInt32 = 0
    private var hasEnded = false
    /// The keys with a value so far; nil if they are not counted.
    private var keys: LiveKeys?

    /// The first frame.
    package let head: BackupFrame

    /// Opens a file and reads its head; `-` is standard input.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - given: What errors call it, if that is not the path.
    ///   - countsKeys: Compares the keys of a whole backup with their number in its head, which takes
    ///     memory for each.
    /// - Throws: ``StateError/Code/storage`` if it cannot be read, ``StateError/Code/corrupt`` if it
    ///   is not a backup, or its head is damaged; ``StateError/Code/newerFormat``.
    package init(
        path: String,
        named given: String? = nil,
        countsKeys: Bool = false
    ) throws(StateError) {
        let isInput = path == "-"
        name = given ?? (isInput ? "standard input" : path)
        do throws(OpenFailure) {
            descriptor = isInput ? STDIN_FILENO : try NamedFile.open(path, O_RDONLY, as: .stream)
        } catch {
            throw StateError(.storage, error.sentence(path))
        }
        let source = Source(descriptor: descriptor, name: name)
        let magic: [UInt8]
        let first: (frame: BackupFrame, bytes: [UInt8])
        do throws(StateError) {
            magic = try source.read(BackupFrame.magic.count) ?? []
            guard magic == BackupFrame.magic else {
                if magic.starts(with: BackupFrame.magic.dropLast(2)) {
                    throw StateError(
                        .newerFormat,
                        "\(name) is a backup in a format that this program does not know"
                    )
                }
                throw StateError(.corrupt, "\(name) is not a backup of stated")
            }
            first = try source.frame(0)
            guard first.frame.kind == .head else {
                throw StateError(.corrupt, "\(name): piece 0 is not the head of a backup")
            }
        } catch {
            if !isInput { close(descriptor) }
            throw error
        }
        head = first.frame
        offset = Int64(magic.count + first.bytes.count)
        checksum = crc32c(first.bytes, after: crc32c(magic))
        frameCount = 1
        let isCounted = countsKeys && head.number("since") == 0 && head.number("keys") != nil
        keys = isCounted ? LiveKeys() : nil
    }

    deinit { if descriptor != STDIN_FILENO { close(descriptor) } }

    /// The next frame; nil after the last, when the whole was checked.
    ///
    /// - Throws: ``StateError/Code/corrupt``, naming the piece and its place; or
    ///   ``StateError/Code/storage``.
    package func next() throws(StateError) -> BackupFrame? {
        guard !hasEnded else { return nil }
        let source = Source(descriptor: descriptor, name: name)
        let (frame, bytes) = try source.frame(frameCount, at: offset)
        offset += Int64(bytes.count)
        if frame.kind == .end {
            try check(frame)
            guard try source.read(1) == nil else {
                throw StateError(
                    .corrupt,
                    "\(name): \(offset) bytes are the backup, and more follow"
                )
            }
            hasEnded = true
            return frame
        }
        guard frame.kind != .head else {
            throw StateError(.corrupt, "\(name): piece \(frame.number) is a second head")
        }
        frameCount += 1
        if frame.kind == .rows {
            rowCount += Int64(frame.itemCount)
            guard keys?.take(frame) ?? true else { throw unreadable(frame) }
        }
        checksum = crc32c(bytes, after: checksum)
        return frame
    }

    private func check(_ end: BackupFrame) throws(StateError) {
        guard end.number("frames") == Int64(frameCount), end.number("rows") == rowCount,
            end.number("checksum") == Int64(checksum)
        else {
            throw StateError(
                .corrupt,
                "\(name): the end does not match the \(frameCount) pieces before it"
            )
        }
        if let keys { try requireKeys(keys.count) }
    }

    /// Compares the number of keys that were found with that of the head, if it has one.
    ///
    /// - Throws: ``StateError/Code/corrupt``.
    package func requireKeys(_ count: Int) throws(StateError) {
        guard let expected = head.number("keys"), expected != Int64(count) else { return }
        throw StateError(
            .corrupt,
            "\(name): the store had \(expected) keys at its revision, but \(count) are found"
        )
    }

    /// A frame whose rows cannot be what the daemon wrote.
    package func unreadable(_ frame: BackupFrame) -> StateError {
        StateError(.corrupt, "\(name): piece \(frame.number) cannot be read")
    }

    /// Bytes so far.
    package var byteCount: Int64 { offset }
}

/// Reads exactly as many bytes as are asked for.
private struct Source {
    let descriptor: Int32
    let name: String

    /// The bytes; nil at the end of the file.
    func read(_ count: Int) throws(StateError) -> [UInt8]? {
        var bytes: [UInt8] = []
        // A damaged length must not take memory that the file does not fill.
        while bytes.count < count {
            let begin = bytes.count
            let room = min(count - begin, 1 << 20)
            bytes.append(contentsOf: repeatElement(0, count: room))
            let found = bytes.withUnsafeMutableBytes { all in
                while true {
                    let found = StatePlatform.read(
                        descriptor,
                        all.baseAddress.map { $0 + begin },
                        room
                    )
                    if found >= 0 || errno != EINTR { return found }
                }
            }
            guard found >= 0 else {
                throw StateError(.storage, "\(name) cannot be read: \(systemError)")
            }
            bytes.removeLast(room - found)
            if found == 0 { return bytes.isEmpty ? nil : bytes }
        }
        return bytes
    }

    /// The next frame, whose number is known, and its bytes.
    func frame(
        _ number: UInt32,
        at offset: Int64 = Int64(BackupFrame.magic.count)
    ) throws(StateError) -> (frame: BackupFrame, bytes: [UInt8]) {
        let start = try read(BackupFrame.headByteCount) ?? []
        guard start.count == BackupFrame.headByteCount else {
            throw damaged(number, offset, "the file ends here: the backup is not complete")
        }
        let kind = BackupFrame.Kind(rawValue: start[0])
        let found = start.number(at: 1)
        let length = Int(start.number(at: 9))
        guard let kind, found == number, length <= BackupFrame.payloadByteLimit else {
            throw damaged(number, offset, "its head is damaged")
        }
        let rest = try read(length + 4) ?? []
        guard rest.count == length + 4 else {
            throw damaged(number, offset, "the file ends within it: the backup is not complete")
        }
        let bytes = start + rest
        guard crc32c(Array(bytes.dropLast(4))) == rest.number(at: length) else {
            throw damaged(number, offset, "it does not match its checksum")
        }
        let frame = BackupFrame(
            kind: kind,
            number: number,
            itemCount: Int(start.number(at: 5)),
            payload: Array(rest.dropLast(4))
        )
        return (frame, bytes)
    }

    private func damaged(_ number: UInt32, _ offset: Int64, _ problem: String) -> StateError {
        StateError(.corrupt, "\(name): piece \(number), from byte \(offset) on: \(problem)")
    }
}

/// The text of the last system call's error.
private var systemError: String { String(cString: strerror(errno)) }
