import StateEngine
import StateWire

/// The rows of commits that were read from the history: complete commits, and at the end possibly
/// an open one.
///
/// Rows and replaced values are in the order of the commits; each commit has their end indices.
struct CommitRows: ~Copyable {
    struct Commit {
        fileprivate(set) var revision: Int64 = 0
        fileprivate(set) var count = 0
        fileprivate(set) var rowsEnd = 0
        fileprivate(set) var replacedEnd = 0
        fileprivate(set) var cause: [UInt8] = []
    }

    /// The value that a change replaced, to look up once the changes are read.
    struct Replaced {
        var rowEnd: Int
        /// Nil if there was none.
        var place: HistoryPlace?
        /// That of the change that replaced it.
        var successor: HistoryPlace
    }

    private(set) var rows = ByteBuffer()
    private(set) var commits: [Commit] = []
    private(set) var replaced: [Replaced] = []
    private var open = Commit()

    /// Adds the row that `write` appends to the open commit; `cause` is nil if it is not requested.
    ///
    /// - Returns: The bytes of the row.
    mutating func add(_ cause: Bytes?, _ write: (inout ByteBuffer) -> Void) -> Int {
        let before = rows.count
        if open.count == 0, let cause { open.cause = Array(cause) }
        open.count += 1
        write(&rows)
        return rows.count - before
    }

    /// Adds the place of the value that the last row replaced.
    mutating func addReplaced(at place: HistoryPlace?, by successor: HistoryPlace) {
        replaced.append(Replaced(rowEnd: rows.count, place: place, successor: successor))
    }

    /// Ends the open commit; one without rows is dropped.
    mutating func endCommit(at revision: Int64) {
        guard open.count > 0 else { return }
        (open.revision, open.rowsEnd, open.replacedEnd) = (revision, rows.count, replaced.count)
        commits.append(open)
        open = Commit()
    }

    /// Removes the rows of the open commit.
    mutating func dropOpen() {
        rows.truncate(to: commits.last?.rowsEnd ?? 0)
        replaced.removeSubrange((commits.last?.replacedEnd ?? 0)...)
        open = Commit()
    }

    /// Frees the memory of written rows.
    mutating func dropRows() { rows = ByteBuffer() }
}
