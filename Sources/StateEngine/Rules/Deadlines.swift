import CLinux

/// When entries expire: a heap with one deadline for each key that has one, that of its newest
/// version.
///
/// Each record knows its slot, and a version that replaces another takes it over: a lease that is
/// renewed without end uses one slot. A slot may be due before its record is, if that replaced one
/// that was due earlier; then it moves down when it comes to the top. So a renewal takes one store,
/// and an entry moves once for each of its times to live, however often it was renewed. A list from
/// which superseded deadlines are swept periodically was rejected: it grows with the renewals, and a
/// sweep of a million holds up everybody.
///
/// Deadlines run on CLOCK_BOOTTIME, so that setting the wall clock moves none; storage holds wall
/// time. A version that ends with its holder is in the list of that instead (``Holders``).
package struct Deadlines {
    package struct Deadline {
        /// Milliseconds of CLOCK_BOOTTIME; later than the record's own deadline if its delete could
        /// not be committed, and earlier if the record took the place of one that was due earlier.
        var time: Int64
        /// Borrowed: it is removed before the record is freed.
        var record: Record
    }

    package private(set) var heap: [Deadline] = []
    /// The versions that end with their holders.
    package var holders = Holders()
    /// How many entries have expired since the start.
    package private(set) var expiredCount: Int64 = 0

    mutating func noteExpired(_ count: Int) { expiredCount += Int64(count) }

    /// Milliseconds of CLOCK_BOOTTIME.
    package static func now() -> Int64 { clinux_boottime_milliseconds() }

    /// Milliseconds until the first may be due; nil if there is none.
    package func millisecondsLeft(at now: Int64) -> Int64? {
        heap.first.map { max(0, $0.time - now) }
    }

    package var count: Int { heap.count }

    /// About how many milliseconds an entry with a deadline has left: the mean of at most 1,000 of
    /// them; 0 if there are none.
    package func averageMillisecondsLeft(at now: Int64) -> Int64 {
        guard !heap.isEmpty else { return 0 }
        let places = stride(from: 0, to: heap.count, by: (heap.count - 1) / 1_000 + 1)
        let sum = places.reduce(0.0) { $0 + max(0, Double(heap[$1].record.deadline) - Double(now)) }
        return Int64(min(sum / Double(places.underestimatedCount), 9e18))
    }

    /// Inserts the newest version of a key; does nothing if it does not expire.
    ///
    /// - Parameters:
    ///   - record: Must not be in the heap.
    ///   - now: Milliseconds of CLOCK_BOOTTIME.
    ///   - wallTime: The wall time at `now`, in milliseconds since 1970.
    /// - Complexity: O(log *n*).
    mutating func insert(_ record: Record, at now: Int64, wallTime: Int64) {
        guard let expires = record.expires else { return holders.insert(record) }
        record.deadline = Deadlines.deadline(of: expires, at: now, wallTime: wallTime)
        insert(record, due: record.deadline)
    }

    /// A wall time as a deadline.
    ///
    /// - Parameters:
    ///   - expires: Any number: storage may hold what others have written.
    ///   - now: Milliseconds of CLOCK_BOOTTIME.
    ///   - wallTime: The wall time at `now`, in milliseconds since 1970.
    /// - Returns: Milliseconds of CLOCK_BOOTTIME; `max` for a time that these do not have.
    @inline(__always)
    static func deadline(of expires: Int64, at now: Int64, wallTime: Int64) -> Int64 {
        let left = expires.subtractingReportingOverflow(wallTime)
        let time = now.addingReportingOverflow(left.partialValue)
        return left.overflow || time.overflow ? .max : time.partialValue
    }

    /// Inserts the newest version of a key, which replaces `former`.
    ///
    /// - Parameters:
    ///   - record: Must have a deadline, and not be in the heap.
    ///   - former: The version before it; nil if there is none.
    ///   - deadline: When it is due, in milliseconds of CLOCK_BOOTTIME; of no meaning if it ends with
    ///     its holder.
    /// - Complexity: O(1) if it is not due before the former; else O(log *n*).
    @inline(never)
    mutating func insert(_ record: Record, replacing former: Record?, due deadline: Int64) {
        if record.isHeld {
            holders.insert(record)
        } else {
            record.deadline = deadline
            if let former, former.hasDeadline, !former.isHeld, former.deadlineSlot >= 0 {
                return replace(former, with: record)
            }
            insert(record, due: deadline)
        }
        if let former, former.hasDeadline { remove(former) }
    }

    private mutating func replace(_ former: Record, with record: Record) {
        let slot = former.deadlineSlot
        former.deadlineSlot = -1
        record.deadlineSlot = slot
        heap[slot].record = record
        guard record.deadline < heap[slot].time else { return }
        heap[slot].time = record.deadline
        rise(slot)
    }

    /// Inserts a version again whose deadline is known; it becomes due not before `time`.
    ///
    /// - Complexity: O(log *n*).
    mutating func insert(_ record: Record, notBefore time: Int64) {
        guard record.hasDeadline else { return }
        if record.isHeld { return holders.insert(record, notBefore: time) }
        insert(record, due: max(record.deadline, time))
    }

    private mutating func insert(_ record: Record, due time: Int64) {
        precondition(record.deadlineSlot < 0, "a version has one deadline")
        heap.append(Deadline(time: time, record: record))
        record.deadlineSlot = heap.count - 1
        rise(heap.count - 1)
    }

    /// Removes a version with a deadline that is no longer the newest, if it is in the heap.
    ///
    /// - Complexity: O(log *n*).
    @inline(never)
    mutating func remove(_ record: Record) {
        guard record.deadlineSlot >= 0 else { return }
        if record.isHeld { return holders.remove(record) }
        let slot = record.deadlineSlot
        record.deadlineSlot = -1
        let last = heap.removeLast()
        guard slot < heap.count else { return }
        place(last, slot)
        rise(slot)
        sink(slot)
    }

    /// Moves the first down if its record is not due yet.
    ///
    /// - Returns: Whether it did.
    /// - Complexity: O(log *n*).
    mutating func moveRenewed(at now: Int64) -> Bool {
        guard let first = heap.first, first.time <= now, first.record.deadline > now else {
            return false
        }
        heap[0].time = first.record.deadline
        sink(0)
        return true
    }

    /// Removes and returns the first if it is due.
    mutating func takeDue(at now: Int64) -> Record? {
        guard let first = heap.first, max(first.time, first.record.deadline) <= now else {
            return nil
        }
        remove(first.record)
        return first.record
    }

    /// Whether the heap is in order and the slots are correct; for tests.
    var isInOrder: Bool {
        heap.indices.allSatisfy {
            heap[$0].record.deadlineSlot == $0 && heap[($0 - 1) / 2].time <= heap[$0].time
        }
    }

    private mutating func place(_ deadline: Deadline, _ slot: Int) {
        heap[slot] = deadline
        deadline.record.deadlineSlot = slot
    }

    /// Moves those above it that are due later down, and it to the place that this leaves.
    private mutating func rise(_ start: Int) {
        let deadline = heap[start]
        var hole = start
        while hole > 0, deadline.time < heap[(hole - 1) / 2].time {
            place(heap[(hole - 1) / 2], hole)
            hole = (hole - 1) / 2
        }
        place(deadline, hole)
    }

    /// The same with those below it that are due earlier.
    private mutating func sink(_ start: Int) {
        let deadline = heap[start]
        var hole = start
        while 2 * hole + 1 < heap.count {
            var child = 2 * hole + 1
            if child + 1 < heap.count, heap[child + 1].time < heap[child].time { child += 1 }
            guard heap[child].time < deadline.time else { break }
            place(heap[child], hole)
            hole = child
        }
        place(deadline, hole)
    }
}

extension EntryStore {
    /// A wall time as a deadline; nil if the time of the transaction is that of now.
    ///
    /// A transaction has the time at which its turn began: a deadline that was computed from that
    /// would be late by the age of the turn.
    @inline(never)
    func deadline(at time: Int64) -> Int64? {
        guard let wallClock else { return nil }
        // Both are of the same millisecond.
        var now = clock()
        var wallTime = wallClock()
        while clock() != now { (now, wallTime) = (clock(), wallClock()) }
        return Deadlines.deadline(of: time, at: now, wallTime: wallTime)
    }
}

/// Entries that expire.
extension KeyspaceCore {
    /// Deletes what is due, as one commit whose cause is `expiry`.
    ///
    /// At most 32 entries: a turn of the loop calls it once, and clients wait so long. More made
    /// GETs of others three times as long beside 100,000 keys that end within a second. At most 128
    /// that were renewed move down in the heap, which takes about as long. Keys of a cluster are
    /// noted: it deletes them.
    ///
    /// - Parameters:
    ///   - now: Milliseconds of CLOCK_BOOTTIME.
    ///   - time: Wall time in milliseconds since 1970.
    /// - Returns: The number of deleted entries; 0 if storage refuses writes for now. Those are
    ///   tried again in a second.
    @discardableResult
    package func expire(at now: Int64, wallTime time: Int64) -> Int {
        var due: [Record] = []
        var movedCount = 0
        while due.count < 32, movedCount < 128 {
            if let next = entries.deadlines.takeDue(at: now) {
                due.append(next)
            } else if entries.deadlines.moveRenewed(at: now) {
                movedCount += 1
            } else {
                break
            }
        }
        guard !due.isEmpty else { return 0 }
        let cause = retainCause(.expiry)
        defer { release(cause) }
        var receipt = Receipt()
        begin(cause, at: time)
        var count = 0
        for record in due {
            if let use = transaction.cluster, mirrored?.holds(record.key) ?? false {
                let age = now - record.deadline
                use.noteEnded(record.key, age: age, setBy: self.cause(of: record))
                entries.deadlines.insert(record, notBefore: now + 1_000)
            } else if deleteEnded(record) {
                count += 1
            } else {
                entries.deadlines.insert(record, notBefore: now + 1_000)
            }
        }
        finish(&receipt)
        entries.deadlines.noteExpired(count)
        return count
    }

    /// Deletes a key that has ended by itself, in the open transaction.
    ///
    /// - Returns: Whether it is deleted; if that is refused, it is unchanged.
    func deleteEnded(_ head: Record) -> Bool {
        guard let chain = entries.live.slot(for: head.key), chain.pointee.leaf == head else {
            preconditionFailure("a version with a deadline is the newest of its key")
        }
        do throws(StateError) {
            try checkRoom(head.key.count, isVolatile: head.isVolatile)
        } catch {
            return false
        }
        var fields = fields(of: head, version: 0)
        fields.isVolatile = head.isVolatile
        fields.isDeferrable = isDeferrable(head.key, rules?.rule(for: head.key))
        put(Record.make(fields, key: head.key, value: nil, in: &entries.pool), onto: chain)
        return true
    }
}

extension Cause {
    /// The cause of deletes of expired entries.
    static let expiry = Cause(
        uid: thisProcess.uid,
        gid: thisProcess.gid,
        pid: 0,
        command: "expiry"
    )

    /// Whether a daemon deleted an expired entry: no client has the process number 0.
    ///
    /// The name of another node of a cluster stands behind the command.
    package var isExpiry: Bool { pid == 0 && command.prefix { $0 != "@" } == "expiry" }
}
