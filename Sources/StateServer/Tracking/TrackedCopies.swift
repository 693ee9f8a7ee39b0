import StateEngine

/// The keys of which a client keeps copies.
///
/// They are replaced as a whole when the client ends or all its copies are void, so that this costs
/// nothing at that moment: those that it had leave the common table in slices. Used only by the loop
/// thread.
final class TrackedCopies {
    /// Nil once they are void.
    unowned var client: TrackedClient? { didSet { isVoid = client == nil } }
    /// The same as having no client, without retaining it.
    private(set) var isVoid = true

    /// When a key was read.
    struct Reads {
        /// Its place in ``order``.
        var place: Int
        /// The place of these copies among those of the key, in ``Tracking/table``.
        var seat: Int
        /// The revision of the first read since the last invalidation: a later commit makes that
        /// copy void.
        var first: Int64
        /// The same of the last read.
        var last: Int64
    }

    private var reads: [[UInt8]: Reads] = [:]
    /// The keys in any order, so that any can be evicted.
    private var order: [[UInt8]] = []
    private(set) var byteCount = 0

    var count: Int { order.count }

    /// The keys, and when they were read.
    var all: some Collection<(key: [UInt8], value: Reads)> { reads }

    /// Approximate memory of a key: it is kept in the client's table and in the common one.
    static func byteCount(of key: [UInt8]) -> Int { 2 * key.count + 200 }

    /// Records a read.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - revision: The newest revision before it.
    ///   - seat: Where a new key gets its place in the table.
    /// - Returns: Whether the key is new.
    func note(_ key: [UInt8], at revision: Int64, seat: @autoclosure () -> Int) -> Bool {
        if let place = reads.index(forKey: key) {
            reads.values[place].last = revision
            return false
        }
        reads[key] = Reads(place: order.count, seat: seat(), first: revision, last: revision)
        order.append(key)
        byteCount += TrackedCopies.byteCount(of: key)
        client?.user.itemCount += 1
        return true
    }

    /// Moves in the table.
    func move(_ key: [UInt8], to seat: Int) { reads[key]?.seat = seat }

    /// What a commit of a key means for the copies of the client.
    enum Effect {
        /// All were read after it.
        case none
        /// One is void, another was read after the commit.
        case someVoid
        /// All are void, and the key is forgotten.
        case allVoid
    }

    func invalidate(_ key: [UInt8], by revision: Int64) -> Effect {
        guard let place = reads.index(forKey: key), reads.values[place].first < revision else {
            return .none
        }
        guard reads.values[place].last >= revision else {
            forget(key)
            return .allVoid
        }
        reads.values[place].first = reads.values[place].last
        return .someVoid
    }

    /// - Returns: Its seat in the table.
    @discardableResult
    func forget(_ key: [UInt8]) -> Int? {
        guard let forgotten = reads.removeValue(forKey: key), let last = order.popLast() else {
            return nil
        }
        byteCount -= TrackedCopies.byteCount(of: key)
        client?.user.itemCount -= 1
        guard last != key else { return forgotten.seat }
        order[forgotten.place] = last
        reads[last]?.place = forgotten.place
        return forgotten.seat
    }

    /// A key that can be forgotten; nil if there is none.
    var anyKey: [UInt8]? { order.randomElement() }
    /// The key that is forgotten at the least cost.
    var lastKey: [UInt8]? { order.last }
}
