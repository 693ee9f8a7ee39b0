import Glibc

/// How often names were changed: in all, and lately.
///
/// Each change weighs half as much for each second that has passed since. Instead of all sums
/// becoming smaller, the weights of later changes become larger: a change costs one addition, and
/// sums can be compared at any time. Times are on the monotonic clock, in milliseconds.
package struct ActivityCounts {
    /// The changes of one name.
    package struct Count: Sendable {
        /// Since the name was kept.
        package fileprivate(set) var changes: Int64 = 0
        package fileprivate(set) var bytes: Int64 = 0
        fileprivate var weight = 0.0
        fileprivate var byteWeight = 0.0
    }

    /// A name with its changes, and those of a second lately.
    package struct Row {
        package let name: [UInt8]
        package let count: Count
        package let changesPerSecond: Double
        package let bytesPerSecond: Double
    }

    /// The most names that are kept when there are twice as many: the busiest.
    package static let limit = 1_000
    /// After how long a change weighs half as much.
    private static let halfLife = 1_000.0
    /// How far weights grow, as a power of two, before all are divided; a double goes to 1023.
    private static let mostDoublings = 500.0

    private let beganAt: Int64
    /// When a change weighs 1.
    private var origin: Int64
    private var counts: [[UInt8]: Count] = [:]

    /// Begins to count at `time`.
    package init(at time: Int64) { (beganAt, origin) = (time, time) }

    private func doublings(at time: Int64) -> Double {
        Double(time - origin) / ActivityCounts.halfLife
    }

    /// What a change at `time` weighs; to be asked before ``add(_:_:weighing:)``.
    ///
    /// - Complexity: O(1); O(*n*) for *n* names once in 500 s.
    package mutating func weight(at time: Int64) -> Double {
        if doublings(at: time) > ActivityCounts.mostDoublings {
            let factor = exp2(-doublings(at: time))
            for name in counts.keys {
                counts[name]?.weight *= factor
                counts[name]?.byteWeight *= factor
            }
            origin = time
        }
        return exp2(doublings(at: time))
    }

    /// Counts one change.
    ///
    /// - Complexity: O(1) on average, plus O(*n*) to hash the *n* bytes of the name.
    package mutating func add(_ name: [UInt8], _ byteCount: Int64, weighing weight: Double) {
        if counts.count >= 2 * ActivityCounts.limit, counts[name] == nil {
            let kept = busiest(ActivityCounts.limit).map { ($0.key, $0.value) }
            counts = Dictionary(uniqueKeysWithValues: kept)
        }
        var count = counts[name] ?? Count()
        count.changes += 1
        count.bytes += byteCount
        count.weight += weight
        count.byteWeight += weight * Double(byteCount)
        counts[name] = count
    }

    private func busiest(_ number: Int) -> ArraySlice<(key: [UInt8], value: Count)> {
        counts.sorted { $0.value.weight > $1.value.weight }.prefix(number)
    }

    /// The names that changed most lately, the busiest first.
    package func rows(_ number: Int, at time: Int64) -> [Row] {
        // A name that changes r times a second weighs r / ln 2 after a while, and before that the
        // part of it that the time since the beginning makes.
        let passed = max(1, Double(time - beganAt)) / ActivityCounts.halfLife
        let rate = exp2(-doublings(at: time)) * M_LN2 / (1 - exp2(-passed))
        let perSecond = rate * 1_000 / ActivityCounts.halfLife
        return busiest(number).map { name, count in
            Row(
                name: name,
                count: count,
                changesPerSecond: count.weight * perSecond,
                bytesPerSecond: count.byteWeight * perSecond
            )
        }
    }
}
