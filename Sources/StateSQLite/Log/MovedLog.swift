import StateEngine
import StatePlatform
import StateSystem

/// A log whose header is damaged, beside the database.
///
/// SQLite reuses a log by writing a new header once all of its frames are in the database. If that
/// write is incomplete, the log cannot be read, but nothing is lost. If a header is damaged
/// earlier, the commits that only the log has are lost.
struct MovedLog {
    private let location: StoreLocation
    private let stamp: StoreStamp

    init(_ location: StoreLocation, _ stamp: StoreStamp) {
        (self.location, self.stamp) = (location, stamp)
    }

    /// Whether the database has each page as its last acknowledged frame has it.
    ///
    /// - Complexity: O(1) if the header is intact, else O(*n*) in the bytes of the frames.
    var isMoved: Bool {
        guard let position = stamp.acknowledged.log?.position else { return false }
        let log = (try? NamedFile.open(location.log, O_RDONLY | O_NOFOLLOW)) ?? -1
        guard log >= 0 else { return false }
        defer { close(log) }
        let database = (try? NamedFile.open(location.database, O_RDONLY | O_NOFOLLOW)) ?? -1
        guard database >= 0 else { return false }
        defer { close(database) }
        let likely = LogHeader.pageByteCount(ofDatabase: database)
        guard let header = LogHeader(log, likely: likely), !header.isWhole else { return false }
        guard let frames = lastFrames(log, header, position) else { return false }
        return frames.allSatisfy { page, offset in
            let size = header.pageByteCount
            let moved = readBytes(database, count: size, at: (page - 1) * size)
            let start = offset + LogPosition.frameHeaderByteCount
            return moved != nil && moved == readBytes(log, count: size, at: start)
        }
    }

    /// The offset of the last frame of each page; nil if a frame does not belong to this log.
    private func lastFrames(
        _ log: Int32,
        _ header: LogHeader,
        _ position: LogPosition
    ) -> [Int: Int]? {
        var frames: [Int: Int] = [:]
        for number in 1...position.frameCount {
            guard let frame = header.frame(number, in: log), frame.salts == position.salts,
                frame.page > 0
            else { return nil }
            frames[frame.page] = header.offset(ofFrame: number)
        }
        return frames
    }
}
