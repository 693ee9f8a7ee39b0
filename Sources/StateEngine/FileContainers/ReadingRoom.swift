import CLinux

/// How much of the files that others have changed is read at once: then others may commit, then
/// comes the rest.
///
/// Whoever may write to a directory can put any number of files there, and large ones that take no
/// disk space.
struct ReadingRoom {
    /// The bytes of what was read and will be adopted.
    private var byteCount = 0
    /// The number of files that will be adopted.
    private var foundCount = 0
    /// The bytes of everything that was read.
    private var readByteCount = 0
    /// The number of places that were looked at.
    private var placeCount = 0
    private let limit: Int
    /// When it began, on the monotonic clock.
    private let start = clinux_monotonic_nanoseconds()

    /// A commit of so many bytes takes about 0.05 s, which is how long others wait for it, and memory for
    /// them three more times.
    private static let standard = 8 << 20
    /// So many places are taken at once.
    static let placeCount = 16
    /// Looking takes so long, unless few places were looked at.
    private static let nanoseconds: Int64 = 3_000_000
    /// Looking and syncing take so long at most, and the time for one file more: the disk may be
    /// slow.
    private static let longestNanoseconds: Int64 = 20_000_000
    /// At a start so much is compared before clients are served, and the rest afterwards.
    private static let readLimit = 1 << 30
    private static let startCount = 1_024

    /// - Parameters:
    ///   - limits: Those of the keyspace.
    ///   - memory: The memory of the process; nil if it is not limited.
    init(_ limits: Limits, _ memory: MemoryBound?) {
        let wanted = max(limits.valueByteCount, ReadingRoom.standard)
        // What is adopted is in memory twice, until the edits are read.
        let room = memory.map { max(0, $0.freeByteCount - $0.reservedByteCount) / 2 } ?? .max
        limit = min(wanted, limits.transactionByteCount, room)
    }

    /// Whether the rest has to wait; the first place is always looked at, to say what is wrong
    /// with it.
    var isFull: Bool {
        byteCount > limit || isOver
    }

    /// Whether the time is over, and something was done in it.
    var isOver: Bool {
        guard placeCount > 0 else { return false }
        return isLate
            || placeCount >= ReadingRoom.placeCount && elapsed >= ReadingRoom.nanoseconds
    }

    /// Whether no other file is synced.
    var isLate: Bool { elapsed >= ReadingRoom.longestNanoseconds }

    /// How long it has been open, in nanoseconds.
    var elapsed: Int64 { clinux_monotonic_nanoseconds() - start }

    /// The same as ``isFull`` for a start, when nobody else can commit.
    var isFullAtStart: Bool {
        byteCount > limit || foundCount >= ReadingRoom.startCount
            || readByteCount > ReadingRoom.readLimit
    }

    mutating func noteRead(_ value: [UInt8]?) { readByteCount += value?.count ?? 0 }

    mutating func notePlace() { placeCount += 1 }

    mutating func noteFound(_ value: [UInt8]?) {
        byteCount += value?.count ?? 0
        foundCount += 1
    }
}
