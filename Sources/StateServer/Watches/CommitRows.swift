import StateEngine
import StateWire

/// The rows of commits that were read from the history: whole commits, and at the end one that is still open.
///
/// Rows and what they replaced are in the order of the commits; each commit says where its own end.
struct CommitRows: ~Copyable {
    struct Commit {
        var revision: Int64
        var count: Int
        var rowsEnd: Int
        var replacedEnd: Int
        var cause: [UInt8]
    }

    /// What a change replaced, to be looked up once the changes are read.
    struct Replaced {
        var rowEnd: Int
        /// Nil for nothing.
        var place: HistoryPlace?
    }

    private(set) var rows = ByteBuffer()
    private(set) var commits: [Commit] = []
    private(set) var replaced: [Replaced] = []
    // The open commit.
    private var openCount = 0
    private var openCause: [UInt8] = []

    /// Adds a row to the open commit.
    ///
    /// - Parameters:
    ///   - cause: Who made the commit; nil if nobody asks for it.
    ///   - write: Appends the row.
    /// - Returns: The bytes of the row.
    mutating func add(_ cause: Bytes?, _ write: (inout ByteBuffer) -> Void) -> Int {
        let before = rows.count
        if openCount == 0 { openCause = cause.map { Array($0) } ?? [] }
        openCount += 1
        write(&rows)
        return rows.count - before
    }

    /// Notes where the value is that the last row replaced.
    mutating func addReplaced(at place: HistoryPlace?) {
        replaced.append(Replaced(rowEnd: rows.count, place: place))
    }

    /// Ends the open commit; one without rows is left out.
    mutating func endCommit(at revision: Int64) {
        guard openCount > 0 else { return }
        commits.append(
            Commit(
                revision: revision,
                count: openCount,
                rowsEnd: rows.count,
                replacedEnd: replaced.count,
                cause: openCause
            )
        )
        openCount = 0
    }

    /// Removes the rows of the open commit.
    mutating func dropOpen() {
        rows.truncate(to: commits.last?.rowsEnd ?? 0)
        replaced.removeSubrange((commits.last?.replacedEnd ?? 0)...)
        openCount = 0
    }

    /// Releases the memory of rows that are written.
    mutating func dropRows() { rows = ByteBuffer() }
}
