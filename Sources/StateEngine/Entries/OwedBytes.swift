/// The bytes of latest values that all watches of one client have not delivered yet.
///
/// Everything is under the keyspace's lock.
package final class OwedBytes {
    /// Beyond it, a watch with undelivered values drops its state, and starts again once there is
    /// room.
    package var limit: Int
    package private(set) var byteCount = 0
    private var reportedByteCount = 0
    private let onGrowth: () -> Void

    /// - Parameters:
    ///   - limit: How many bytes there may be.
    ///   - onGrowth: Called when the number of bytes has changed notably.
    package init(limit: Int = .max, onGrowth: @escaping () -> Void = {}) {
        self.limit = limit
        self.onGrowth = onGrowth
    }

    func note(_ byteCount: Int) {
        self.byteCount += byteCount
        guard abs(self.byteCount - reportedByteCount) >= 16 << 10 else { return }
        reportedByteCount = self.byteCount
        onGrowth()
    }
}
