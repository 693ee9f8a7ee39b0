/// Where scans stand: a cursor is the number of a slot, and any connection may continue it.
///
/// The oldest slot goes when there are too many. A key that is there from the first call to the last is told exactly once.
struct ScanCursors {
    private let capacity: Int
    private var keys: [UInt64: [UInt8]] = [:]
    private var next: UInt64 = 1
    private var oldest: UInt64 = 1

    init(capacity: Int) { self.capacity = capacity }

    /// A cursor for what comes after `key`.
    mutating func make(after key: [UInt8]) -> UInt64 {
        defer { next += 1 }
        keys[next] = key
        while keys.count > capacity {
            keys[oldest] = nil
            oldest += 1
        }
        return next
    }

    /// The last key that was told under `cursor`; nil where the slot is gone.
    func key(of cursor: UInt64) -> [UInt8]? { keys[cursor] }
}
