/// How much of the files that others have changed is read at once: then others may commit, then
/// comes the rest.
///
/// Whoever may write to a directory can put large files there that take no disk space.
struct ReadingRoom {
    /// The bytes of what was read and will be adopted.
    private var byteCount = 0
    /// The bytes of everything that was read.
    private var readByteCount = 0
    private let limit: Int

    /// A commit of so many bytes takes about 0.1 s, which is how long others wait for it.
    private static let standard = 16 << 20
    /// At a start so much is compared before clients are served, and the rest afterwards.
    private static let readLimit = 1 << 30

    /// - Parameters:
    ///   - limits: Those of the keyspace.
    ///   - memory: The memory of the process; nil if it is not limited.
    init(_ limits: Limits, _ memory: MemoryBound?) {
        let wanted = max(limits.valueByteCount, ReadingRoom.standard)
        // What is adopted is in memory twice, until the edits are read.
        let room = memory.map { max(0, $0.freeByteCount - $0.reservedByteCount) / 2 } ?? .max
        limit = min(wanted, limits.transactionByteCount, room)
    }

    /// Whether the rest has to wait; the first file is always read, to say what is wrong with it.
    var isFull: Bool { byteCount > limit }

    /// The same for a start.
    var isFullAtStart: Bool { isFull || readByteCount > ReadingRoom.readLimit }

    mutating func noteRead(_ value: [UInt8]?) { readByteCount += value?.count ?? 0 }

    mutating func noteFound(_ value: [UInt8]?) { byteCount += value?.count ?? 0 }
}
