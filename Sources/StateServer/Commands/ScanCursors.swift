/// The positions of scans: a cursor is the number of a slot, and any connection of the same user
/// may continue it.
///
/// Each user has its own slots, and the oldest is dropped if there are too many: no user's scans
/// end another's. A key that exists from the first call to the last is listed exactly once.
final class ScanCursors {
    private struct Slots {
        var keys: [UInt64: [UInt8]] = [:]
        var next: UInt64 = 1
        var oldest: UInt64 = 1
        /// The time of the last use, by ``ScanCursors/useCount``.
        var lastUse = 0
    }

    private let capacity: Int
    private var slots: [UInt32: Slots] = [:]
    private var useCount = 0

    /// The most users whose scans are remembered; then the least recently used is dropped.
    private static let userCapacity = 256

    /// - Parameter capacity: Slots of one user.
    init(capacity: Int) { self.capacity = capacity }

    /// A cursor for the keys after `key`.
    func make(after key: [UInt8], _ uid: UInt32) -> UInt64 {
        useCount += 1
        if slots[uid] == nil { makeRoom() }
        var mine = slots.removeValue(forKey: uid) ?? Slots()
        mine.lastUse = useCount
        defer { slots[uid] = mine }
        let cursor = mine.next
        mine.next += 1
        mine.keys[cursor] = key
        while mine.keys.count > capacity {
            mine.keys[mine.oldest] = nil
            mine.oldest += 1
        }
        return cursor
    }

    private func makeRoom() {
        guard slots.count >= ScanCursors.userCapacity,
            let oldest = slots.min(by: { $0.value.lastUse < $1.value.lastUse })
        else { return }
        slots[oldest.key] = nil
    }

    /// The last visited key of `cursor`; nil if the slot is gone.
    func key(of cursor: UInt64, _ uid: UInt32) -> [UInt8]? { slots[uid]?.keys[cursor] }
}
