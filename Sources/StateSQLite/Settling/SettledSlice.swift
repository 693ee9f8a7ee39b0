import CLinux
import StateEngine
import StateLog
import StateModel

/// The newest changes of a stretch of the log, with the bytes that they borrow.
///
/// A key that changes often takes the room of one change: the next one is written over it where it
/// fits. So a stretch is as long as its keys take memory, and each is written to the database once.
struct SettledSlice: ~Copyable {
    private let changes: NewestChanges
    private(set) var end: LogPlace

    /// A stretch is at most so many times as long as the bytes that it takes.
    private static let repeatCount = 8

    /// Reads a stretch, until its changes take about so many bytes of `memory`, which is emptied first.
    init(
        _ stretch: LogSnapshot,
        byteCount: Int,
        in memory: NewestChanges
    ) throws(StateError) {
        (changes, end) = (memory, stretch.start)
        changes.removeAll()
        end = try stretch.read(
            while: {
                memory.byteCount < byteCount
                    && memory.readByteCount < SettledSlice.repeatCount * byteCount
            },
            { (frame, time) throws(LogDamage) in
                try memory.take(frame, at: time, comparingRows: false)
                clinux_let_others_run()
            }
        )
    }

    /// The last revision in it; 0 if it has no commits.
    var revision: Int64 { changes.revision }
    var metadata: [String: String?] { changes.metadata }

    /// The newest change of each key, in the order of keys; their bytes are those of the slice.
    borrowing func newest() -> [NewestChange] { changes.sorted() }
}

/// A row of the database, and the checksum that the log has for it.
struct SettledRow {
    var change: StoredChange
    var checksum: UInt32
}
