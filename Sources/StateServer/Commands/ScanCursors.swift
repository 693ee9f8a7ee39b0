/// The positions of scans: a cursor is a number, and any connection of the same user may continue
/// it.
///
/// A scan has one place, however many pages it takes: its newest cursor, and the one before, in case
/// a reply was lost. Each user has a number of places. If there are too many, scans that have ended
/// are dropped first, then those of the connection that has most of them: so no client's scan ends
/// another's. A key that exists from the first call to the last is listed exactly once.
///
/// The numbers begin at random, so that no cursor of an earlier process is taken for one of these.
final class ScanCursors {
    private struct Scan {
        var newest: UInt64
        /// The last listed key; nil at the end.
        var key: [UInt8]?
        var before: (cursor: UInt64, key: [UInt8])?
        /// The connection that used it last.
        var connection: Int
        var lastUse: Int
    }

    private struct User {
        var scans: [Int: Scan] = [:]
        var scanOfCursor: [UInt64: Int] = [:]
        /// The time of the last use, by ``ScanCursors/useCount``.
        var lastUse = 0
    }

    private let capacity: Int
    private var users: [UInt32: User] = [:]
    private var useCount = 0
    /// Clients read a cursor as a number of 64 bits, with or without a sign, or of 53.
    private var next = UInt64.random(in: 1..<1 << 20) << 32

    /// The most users whose scans are remembered; then the least recently used is dropped.
    private static let userCapacity = 256

    /// - Parameter capacity: Scans of one user.
    init(capacity: Int) { self.capacity = capacity }

    /// The cursor after a page.
    ///
    /// - Parameters:
    ///   - key: The last listed key; nil at the end of the scan.
    ///   - cursor: The cursor of the page; 0 for the first.
    ///   - connection: The number of the connection.
    ///   - uid: Its user.
    /// - Returns: 0 at the end.
    func advance(
        to key: [UInt8]?,
        from cursor: UInt64,
        _ connection: Int,
        _ uid: UInt32
    ) -> UInt64 {
        useCount += 1
        if users[uid] == nil {
            guard key != nil else { return 0 }
            makeRoom()
        }
        var user = users.removeValue(forKey: uid) ?? User()
        user.lastUse = useCount
        defer { users[uid] = user }
        next += 1
        if let number = user.scanOfCursor[cursor], var scan = user.scans[number] {
            user.scanOfCursor[scan.newest] = nil
            if cursor == scan.newest, let last = scan.key {
                if let before = scan.before { user.scanOfCursor[before.cursor] = nil }
                scan.before = (cursor, last)
                user.scanOfCursor[cursor] = number
            }
            (scan.newest, scan.key) = (next, key)
            (scan.connection, scan.lastUse) = (connection, useCount)
            user.scans[number] = scan
            user.scanOfCursor[next] = number
        } else if key != nil {
            user.scans[useCount] = Scan(
                newest: next,
                key: key,
                connection: connection,
                lastUse: useCount
            )
            user.scanOfCursor[next] = useCount
            if user.scans.count > capacity { drop(from: &user) }
        }
        return key == nil ? 0 : next
    }

    private func makeRoom() {
        guard users.count >= ScanCursors.userCapacity,
            let oldest = users.min(by: { $0.value.lastUse < $1.value.lastUse })
        else { return }
        users[oldest.key] = nil
    }

    /// Drops an eighth of the scans, or those that are too many.
    private func drop(from user: inout User) {
        var counts: [Int: Int] = [:]
        let newestFirst = user.scans.sorted { $0.value.lastUse > $1.value.lastUse }
        let ranked = newestFirst.map { number, scan in
            counts[scan.connection, default: 0] += 1
            let isOver = scan.key == nil
            return (number: number, rank: isOver ? .max : counts[scan.connection] ?? 0)
        }
        let order = ranked.enumerated().sorted {
            ($0.element.rank, $0.offset) < ($1.element.rank, $1.offset)
        }
        for (_, scan) in order.dropFirst(capacity - capacity / 8) {
            guard let dropped = user.scans.removeValue(forKey: scan.number) else { continue }
            user.scanOfCursor[dropped.newest] = nil
            if let before = dropped.before { user.scanOfCursor[before.cursor] = nil }
        }
    }

    /// The last listed key before the page of `cursor`; nil if the scan is not known any more.
    func key(of cursor: UInt64, _ uid: UInt32) -> [UInt8]? {
        guard let user = users[uid], let number = user.scanOfCursor[cursor],
            let scan = user.scans[number]
        else { return nil }
        return cursor == scan.newest ? scan.key : scan.before?.key
    }
}
