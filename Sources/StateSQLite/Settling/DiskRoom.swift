import CLinux
import StateEngine
import StateLog
import StateModel
import StatePlatform
import StateSystem

/// The room that a store has on its disks, and what of it is in reserve.
///
/// In reserve is what deletes and settling take until segments of the log can go: the next segment, a
/// transaction of SQLite with the largest value, and what the database grows by until all is settled;
/// and what the configuration adds. Once only that is left, sets are refused. Before that, when less
/// than twice as much is left, the settler makes room.
///
/// Rejected: a file that holds the reserve. A store that is nearly empty took 10 MiB for it, and what
/// takes part in making room, the prepared segment and SQLite's own log, keeps its room by itself.
///
/// Any thread may use it.
final class DiskRoom: Sendable {
    /// What a store needs room for, in bytes.
    struct Need: Hashable {
        /// What is not settled.
        var unsettled = 0
        /// The largest value that is not settled.
        var largestValue = 0
        /// What a commit takes that the present segment has no room for.
        var segment = 0

        /// What settling takes: rows may take more than what the log has of them.
        var settling: Int { SettledDatabase.logByteCount + largestValue + unsettled / 2 * 3 }
    }

    /// How much there is.
    enum Level: Int, Comparable {
        /// Only the reserve: sets are refused.
        case short
        /// So little that the settler makes room.
        case tight
        case ample

        static func < (one: Level, other: Level) -> Bool { one.rawValue < other.rawValue }
    }

    struct Settings {
        var history: HistoryLimits
        /// What a full disk leaves of the history; nil: half.
        var leastHistory: HistoryLimits?
        var reserveByteCount: Int64
    }

    private struct State {
        var settings: Settings
        var level = Level.ample
        var shortage: StateError?
        /// Whether a write was refused although the file systems say that they have room: a quota of a
        /// user, or a thin volume, which statvfs(2) does not know.
        var isDenied = false
        /// Whether the history is as short as a full disk makes it, and somebody was told.
        var (isHistoryShort, isHistoryTold) = (false, false)
        /// The bytes beyond the reserve, and the bytes of the reserve.
        var (margin, reserve) = (Int64.max, Int64(0))
        /// The bytes that the database's file system has.
        var available = Int64.max
        /// When somebody looked last, and what was committed since then.
        var (lookedAt, committedByteCount) = (Int64(0), 0)

        init(_ settings: Settings) { self.settings = settings }
    }

    private let directory: String
    private let logDirectory: String
    private let state: StateLock<State>

    init(_ directory: String, log logDirectory: String, _ settings: Settings) {
        (self.directory, self.logDirectory) = (directory, logDirectory)
        state = StateLock(State(settings))
    }

    var settings: Settings {
        get { state.withLock { $0.settings } }
        set { state.withLock { $0.settings = newValue } }
    }

    var level: Level { state.withLock { $0.level } }
    /// Why sets are refused; nil if they are not.
    var shortage: StateError? { state.withLock { $0.shortage } }
    /// The bytes beyond the reserve, less than 0 if it is used.
    var margin: Int64 { state.withLock { $0.margin } }

    /// How much of the past is kept now.
    var retention: LogRetention {
        state.withLock { state in
            let whole = LogRetention(state.settings.history)
            guard state.isHistoryShort else { return whole }
            let least = state.settings.leastHistory.map { LogRetention($0) }
            return least?.shared(with: whole) ?? whole.halved
        }
    }

    /// Keeps only what a full disk leaves of the history, until there is room again.
    func shortenHistory() { state.withLock { $0.isHistoryShort = true } }

    /// Whether nobody was told yet that it is short.
    func tellsOfHistory() -> Bool {
        state.withLock { state in
            defer { state.isHistoryTold = true }
            return !state.isHistoryTold
        }
    }

    /// How many bytes of pages a transaction may put into SQLite's own log, which keeps the room for some,
    /// if the database does not grow by it.
    var transactionByteCount: Int {
        Int(clamping: max(Int64(SettledDatabase.logByteCount), available / 4))
    }

    /// The same of a transaction by which it may grow.
    var growthByteCount: Int { Int(clamping: available / 4) }

    private var available: Int64 { state.withLock { $0.available } }

    /// Files for later segments may be as long: they take a small part of what is left, and nothing that
    /// settling may need.
    var spareByteLimit: Int {
        state.withLock { state in
            let left = state.level < .ample ? 0 : state.margin - state.reserve
            return Int(clamping: max(0, left / 4))
        }
    }

    /// At most so many bytes of earlier versions are carried in a frame: of the reserve not more than what
    /// dropping segments gives back soon.
    var carriedByteLimit: Int {
        Int(clamping: min(Int64(CommitCoder.carriedByteCount), max(64 << 10, margin / 2)))
    }

    /// Whether the file systems have room for hardly anything.
    var isExhausted: Bool { available < DiskRoom.leastByteCount }

    /// A start, and what makes room, takes about as much.
    static let leastByteCount = Int64(1 << 20)

    /// Counts what was committed.
    ///
    /// - Returns: Whether to look now: others may have taken room, or the store has.
    func isDue(after byteCount: Int) -> Bool {
        let now = clinux_monotonic_nanoseconds()
        return state.withLock { state in
            state.committedByteCount += byteCount
            return state.committedByteCount >= CommitValues.leastByteCount
                || now - state.lookedAt >= 250_000_000
        }
    }

    /// Looks how much room there is.
    ///
    /// - Parameters:
    ///   - need: What the store needs.
    ///   - files: The directory of the log.
    ///   - tries: Whether to try if the file systems give again what they refused.
    /// - Returns: How much there is.
    /// - Complexity: A few calls of the system, 3 µs.
    @discardableResult
    func look(_ need: Need, _ files: any LogFiles, trying tries: Bool = false) -> Level {
        let space = space(files)
        let isDenied = state.withLock { $0.isDenied }
        let isGranted = isDenied && tries && files.hasRoom(for: DiskRoom.reserve(need))
        return state.withLock { state in
            if isGranted { state.isDenied = false }
            let reserveByteCount = state.settings.reserveByteCount
            state.available = space.database
            state.margin = space.margin(need, reserveByteCount)
            state.reserve = reserveByteCount + DiskRoom.reserve(need)
            (state.lookedAt, state.committedByteCount) = (clinux_monotonic_nanoseconds(), 0)
            // So that what is refused and accepted by turns is not reported all the time.
            let regained = max(DiskRoom.leastByteCount, reserveByteCount / 4)
            let isShort =
                state.isDenied || state.margin < (state.level == .short ? regained : 0)
            state.level = isShort ? .short : state.margin < state.reserve ? .tight : .ample
            state.shortage = isShort ? state.shortage ?? refusal : nil
            if state.level == .ample {
                (state.isHistoryShort, state.isHistoryTold) = (false, false)
            }
            return state.level
        }
    }

    /// A write was refused for lack of room.
    func noteFull(_ need: Need, _ files: any LogFiles) {
        // It may be what statvfs(2) says, too.
        guard look(need, files) != .short else { return }
        let reserve = DiskRoom.reserve(need)
        guard space(files).margin(need, 0) >= 0, !files.hasRoom(for: reserve) else { return }
        state.withLock { $0.isDenied = true }
        look(need, files)
    }

    /// - Throws: ``StateError/Code/noSpace`` if values of a commit would use what is in reserve.
    func admit(_ values: CommitValues, _ need: Need, _ files: any LogFiles) throws(StateError) {
        var need = need
        need.largestValue = max(need.largestValue, values.largestByteCount)
        // In the log, and in the database.
        let taken = Int64(values.byteCount) + Int64(values.byteCount) / 2 * 3
        let reserveByteCount = settings.reserveByteCount
        let margin = space(files).margin(need, reserveByteCount)
        guard margin < taken else { return }
        throw StateError(
            .noSpace,
            "disk full: what is written at once takes more room than \(directory) has beyond its "
                + "reserve, and nothing was committed; write less at once, or free some of the disk"
        )
    }

    /// - Throws: ``StateError/Code/noSpace`` if the database's file system has less.
    func require(_ byteCount: Int64) throws(StateError) {
        let available = available
        guard byteCount > available else { return }
        throw StateError(
            .noSpace,
            "\(directory) has \(available) bytes, and settling may take \(byteCount)"
        )
    }

    private var refusal: StateError {
        StateError(
            .noSpace,
            "disk full: writes to \(directory) are refused until there is room, deletes are not; "
                + "free some of the disk, or keep less history (statectl compact --to now)"
        )
    }

    // MARK: What is in reserve

    /// The reserve without what the configuration adds.
    private static func reserve(_ need: Need) -> Int64 { Int64(need.settling + need.segment) }

    /// The bytes that file systems have.
    private struct Space {
        var database: Int64
        var log: Int64
        /// Whether that is one file system.
        var isShared: Bool

        /// The bytes beyond the reserve.
        func margin(_ need: Need, _ reserveByteCount: Int64) -> Int64 {
            guard !isShared else {
                return min(database, log) - reserveByteCount - DiskRoom.reserve(need)
            }
            return min(database - Int64(need.settling), log - Int64(need.segment))
                - reserveByteCount
        }
    }

    private func space(_ files: any LogFiles) -> Space {
        // One that does not say is taken to have room.
        let unknown = Int64.max / 4
        var (one, other) = (stat(), stat())
        let isShared =
            stat(directory, &one) == 0 && stat(logDirectory, &other) == 0
            && one.st_dev == other.st_dev
        return Space(
            database: LogDirectory.availableByteCount(of: directory) ?? unknown,
            log: files.availableByteCount() ?? unknown,
            isShared: isShared
        )
    }
}

/// The values of a commit that are long together; nothing of others.
struct CommitValues {
    private(set) var byteCount = 0
    private(set) var largestByteCount = 0

    /// Shorter ones are counted once they are in the log: to look at each change of a commit takes a
    /// while.
    static let leastByteCount = 256 << 10

    init(_ batch: borrowing CommitBatch) {
        guard batch.byteCount >= CommitValues.leastByteCount else { return }
        batch.forEachChange { change in note(change.value?.count ?? 0) }
    }

    init() {}

    mutating func note(_ count: Int) {
        byteCount += count
        largestByteCount = max(largestByteCount, count)
    }

    var areLong: Bool { byteCount >= CommitValues.leastByteCount }
}

/// The rows of a slice, piece by piece, each of them as large as there is room for.
///
/// Where that is little, deletes come first: what they free, the others take. The order does not matter,
/// as the log keeps all of them until the last one is settled.
struct SettledPieces {
    private let rows: [NewestChange]
    /// The rows up to there only remove something.
    private let deleteEnd: Int
    private var start = 0
    private let room: DiskRoom

    init(_ rows: [NewestChange], _ room: DiskRoom) {
        self.room = room
        guard room.level < .ample else {
            (self.rows, deleteEnd) = (rows, 0)
            return
        }
        let deletes = rows.filter(\.isDelete)
        self.rows = deletes + rows.filter { !$0.isDelete }
        deleteEnd = deletes.count
    }

    var isEmpty: Bool { start == rows.count }

    /// The next piece; the first one is empty if all are.
    ///
    /// - Parameter freeByteCount: Called if the room is little: what the database has free.
    /// - Returns: Rows, in order.
    /// - Throws: ``StateError/Code/noSpace`` if the database may grow by more than there is.
    mutating func next(
        free freeByteCount: () -> Int64
    ) throws(StateError) -> ArraySlice<NewestChange> {
        let isOfDeletes = start < deleteEnd
        let limit = isOfDeletes ? room.transactionByteCount : room.growthByteCount
        let rest = rows[start..<(isOfDeletes ? deleteEnd : rows.count)]
        let piece = rest.prefix(SettledDatabase.count(of: rest, upTo: limit))
        if !isOfDeletes, room.level < .ample {
            // Less than half of what is left goes to SQLite's own log, and the rest to the database.
            let growth = piece.reduce(Int64(0)) { $0 + Int64($1.byteCount) } * 2
            try room.require(growth - freeByteCount())
        }
        start += piece.count
        return piece
    }
}
