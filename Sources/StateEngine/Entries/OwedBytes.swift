/// What all watches of one client owe it of latest values.
///
/// Everything is under the keyspace's lock.
package final class OwedBytes {
    /// Beyond it a watch that owes something gives up what it knows, and begins anew once there is room.
    package var limit: Int
    package private(set) var byteCount = 0
    private var reportedByteCount = 0
    private let onGrowth: () -> Void

    /// - Parameters:
    ///   - limit: How much there may be.
    ///   - onGrowth: Called when there is notably more than before, or less.
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
