/// What a watch with LATEST has to deliver: the latest value of each key, in rounds.
///
/// Between rounds, a key that changed is only recorded as pending. A round takes the pending keys at a durable
/// revision and delivers their values at that revision, in the order of their changes; later
/// changes are pending for the next round. A value that is superseded before it was delivered is
/// saved first: the versions themselves stay with the keyspace.
package struct LatestKeys {
    /// How far behind the client is.
    package struct Waiting: Hashable, Sendable {
        /// Keys that changed and are not in a round yet.
        package var pendingCount = 0
        /// Values of the round that are not delivered yet.
        package var valueCount = 0
        /// Bytes of pending keys, round and saved values.
        package var byteCount = 0
    }

    /// A key that changed.
    package struct Pending {
        package var place: HistoryPlace
        /// ``Cause/description`` of that change; empty if the watch does not report causes.
        package var cause: [UInt8]

        package init(at place: HistoryPlace, cause: [UInt8]) {
            self.place = place
            self.cause = cause
        }

        /// The bytes that a key takes besides its own, while it is pending and in a round.
        package var byteCount: Int { 96 + cause.count }
    }

    private struct Round {
        var revision: Int64
        /// Whether its values are pieces of a state: those of keys that have changed since their
        /// piece was delivered.
        var isPiece: Bool
        var keys: [(key: [UInt8], pending: Pending)]
        var next = 0
        /// The values of keys that are not delivered yet, saved if they are superseded meanwhile.
        var unsent: [[UInt8]: Value]
    }

    private enum Value {
        /// As in the keyspace.
        case current
        /// As it was when the round began.
        case saved([UInt8]?)
    }

    private var pending: [[UInt8]: Pending] = [:]
    private var round: Round?
    private let includesCause: Bool
    private let owed: OwedBytes
    private(set) var byteCount = 0 {
        didSet { owed.note(byteCount - oldValue) }
    }

    init(includesCause: Bool, _ owed: OwedBytes) {
        self.includesCause = includesCause
        self.owed = owed
    }

    /// Whether this watch and others have more undelivered bytes than allowed.
    var isBeyondLimit: Bool { byteCount > 0 && owed.byteCount > owed.limit }

    var isIdle: Bool { pending.isEmpty && round == nil }
    var hasRound: Bool { round != nil }
    /// Whether the round is the end of a snapshot.
    var owesPieces: Bool { round?.isPiece ?? false }

    var waiting: Waiting {
        Waiting(
            pendingCount: pending.count,
            valueCount: round.map { $0.keys.count - $0.next } ?? 0,
            byteCount: byteCount
        )
    }

    /// Records a key for a change that is being published, while the superseded version still exists.
    ///
    /// - Complexity: O(*n*) in the bytes of the key, and of the superseded value if the round needs
    ///   that.
    mutating func add(_ record: Record, in core: KeyspaceCore) {
        let key = Array(record.key)
        if case .current? = round?.unsent[key] {
            let value = record.older?.value.map { Array($0) }
            round?.unsent[key] = .saved(value)
            byteCount += value?.count ?? 0
        }
        add(key, Pending(at: record.place, cause: includesCause ? core.causeBytes(of: record) : []))
    }

    /// Records a key as changed, unless it is pending for a later change.
    mutating func add(_ key: [UInt8], _ added: Pending) {
        guard let known = pending.updateValue(added, forKey: key) else {
            byteCount += key.count + added.byteCount
            return
        }
        if known.place > added.place {
            pending[key] = known
        } else {
            byteCount += added.byteCount - known.byteCount
        }
    }

    /// Begins a round of all pending keys, with the values of now.
    ///
    /// - Complexity: O(*n* log *n*) in the pending keys.
    mutating func beginRound(at revision: Int64, isPiece: Bool) {
        precondition(round == nil, "a round begins while another is under way")
        let keys = pending.sorted { $0.value.place < $1.value.place }
        round = Round(
            revision: revision,
            isPiece: isPiece,
            keys: keys.map { (key: $0.key, pending: $0.value) },
            unsent: pending.mapValues { _ in .current }
        )
        pending = [:]
    }

    /// The next values of the round, of about `byteLimit` bytes; a key that became hidden from
    /// `watcher` counts as absent.
    mutating func takeValues(
        byteLimit: Int,
        for watcher: Watcher,
        in core: KeyspaceCore
    ) -> Watcher.LatestValues {
        var values = Watcher.LatestValues(isPiece: round?.isPiece ?? false, values: [])
        var taken = 0
        while taken < byteLimit, let (key, change) = takeKey() {
            let value: [UInt8]?
            switch round?.unsent.removeValue(forKey: key) {
            case .saved(let saved)?:
                value = saved
                byteCount -= saved?.count ?? 0
            case .current?, nil:
                value = key.withUnsafeBytes { key in
                    core.readDurable(key).flatMap { record in
                        watcher.isShown(record, in: core) ? record.value.map { Array($0) } : nil
                    }
                }
            }
            byteCount -= key.count + change.byteCount
            taken += key.count + (value?.count ?? 0) + 32
            values.values.append(
                Watcher.LatestValue(
                    key: key,
                    value: value,
                    revision: change.place.revision,
                    cause: change.cause
                )
            )
        }
        return values
    }

    private mutating func takeKey() -> (key: [UInt8], pending: Pending)? {
        guard let next = round?.next, let count = round?.keys.count, next < count else {
            return nil
        }
        round?.next = next + 1
        return round?.keys[next]
    }

    /// Ends the round if all of its values are delivered.
    ///
    /// - Returns: The revision of the values; nil if there are more.
    mutating func endRound() -> Int64? {
        guard let round, round.next == round.keys.count else { return nil }
        self.round = nil
        return round.revision
    }

    mutating func removeAll() {
        byteCount = 0
        pending = [:]
        round = nil
    }
}
