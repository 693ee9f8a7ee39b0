import CLinux

/// When entries expire: a heap with one place for each key that has a deadline, that of its newest version.
///
/// Each record knows its place, so that a version that takes the place of another takes its deadline away: who renews a lease without
/// end holds one place. A list from which superseded ones are swept now and then was rejected: it grows with the renewals, and a
/// sweep of a million holds up everybody.
///
/// Deadlines run on CLOCK_BOOTTIME, so that a wall clock that is set moves none; what is stored is wall time.
package struct Deadlines {
    private struct Deadline {
        /// Milliseconds of CLOCK_BOOTTIME; later than the record's own where its delete could not be committed.
        var time: Int64
        /// Borrowed: it leaves before the record is freed.
        var record: Record
    }

    private var heap: [Deadline] = []

    /// Milliseconds of CLOCK_BOOTTIME.
    package static func now() -> Int64 { clinux_boottime_milliseconds() }

    /// Until the first is due, in milliseconds; nil where there is none.
    package func millisecondsLeft(at now: Int64) -> Int64? {
        heap.first.map { max(0, $0.time - now) }
    }

    package var count: Int { heap.count }

    /// Takes the newest version of a key in; nothing where it does not expire.
    ///
    /// - Parameters:
    ///   - record: Not among them.
    ///   - now: Milliseconds of CLOCK_BOOTTIME.
    ///   - wallTime: What the time is then, in milliseconds since 1970.
    /// - Complexity: O(log *n*).
    mutating func insert(_ record: Record, at now: Int64, wallTime: Int64) {
        guard let expires = record.expires else { return }
        // Of what storage holds any number may be read.
        let left = expires.subtractingReportingOverflow(wallTime)
        let time = now.addingReportingOverflow(left.partialValue)
        record.deadline = left.overflow || time.overflow ? .max : time.partialValue
        insert(record, due: record.deadline)
    }

    /// Takes a version in again whose time is known, to be looked at not before `time`.
    ///
    /// - Complexity: O(log *n*).
    mutating func insert(_ record: Record, notBefore time: Int64) {
        guard record.hasDeadline else { return }
        insert(record, due: max(record.deadline, time))
    }

    private mutating func insert(_ record: Record, due time: Int64) {
        precondition(record.deadlineSlot < 0, "a version has one deadline")
        heap.append(Deadline(time: time, record: record))
        record.deadlineSlot = heap.count - 1
        rise(heap.count - 1)
    }

    /// Takes a version out that is not the newest any more, where it is among them.
    ///
    /// - Complexity: O(log *n*).
    mutating func remove(_ record: Record) {
        guard record.hasDeadline, record.deadlineSlot >= 0 else { return }
        let slot = record.deadlineSlot
        record.deadlineSlot = -1
        let last = heap.removeLast()
        guard slot < heap.count else { return }
        place(last, slot)
        rise(slot)
        sink(slot)
    }

    /// Takes the first where it is due.
    mutating func takeDue(at now: Int64) -> Record? {
        guard let first = heap.first, first.time <= now else { return nil }
        remove(first.record)
        return first.record
    }

    /// Whether each version is where it says; for tests.
    var isInOrder: Bool {
        heap.indices.allSatisfy {
            heap[$0].record.deadlineSlot == $0 && heap[($0 - 1) / 2].time <= heap[$0].time
        }
    }

    private mutating func place(_ deadline: Deadline, _ slot: Int) {
        heap[slot] = deadline
        deadline.record.deadlineSlot = slot
    }

    private mutating func exchange(_ left: Int, _ right: Int) {
        let deadline = heap[left]
        place(heap[right], left)
        place(deadline, right)
    }

    private mutating func rise(_ start: Int) {
        var index = start
        while index > 0, heap[index].time < heap[(index - 1) / 2].time {
            exchange(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    private mutating func sink(_ start: Int) {
        var index = start
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2]
            where child < heap.count && heap[child].time < heap[least].time { least = child }
            guard least != index else { return }
            exchange(index, least)
            index = least
        }
    }
}

/// Entries that expire.
extension KeyspaceCore {
    /// Whether the time of a version is over: then it is absent to everybody who reads, be its delete committed or not.
    ///
    /// Who may write a key, and how many there are, depends on the delete.
    @inline(__always)
    package func isDue(_ record: Record) -> Bool {
        record.hasDeadline && record.deadline <= entries.clock()
    }

    /// Deletes what is due, as one commit whose cause is `expiry`; a thousand entries at most.
    ///
    /// - Parameters:
    ///   - now: Milliseconds of CLOCK_BOOTTIME.
    ///   - time: Wall time in milliseconds since 1970.
    /// - Returns: How many; where storage refuses writes for now, none, and they are tried again in a second.
    @discardableResult
    package func expire(at now: Int64, wallTime time: Int64) -> Int {
        var due: [Record] = []
        while due.count < 1_000, let next = entries.deadlines.takeDue(at: now) { due.append(next) }
        guard !due.isEmpty else { return 0 }
        let cause = retainCause(.expiry)
        defer { release(cause) }
        var receipt = Receipt()
        begin(cause, at: time)
        var count = 0
        for record in due {
            if expire(record) {
                count += 1
            } else {
                entries.deadlines.insert(record, notBefore: now + 1_000)
            }
        }
        finish(&receipt)
        return count
    }

    /// - Returns: Whether it is deleted; where that is refused it is as it was.
    private func expire(_ head: Record) -> Bool {
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
        put(Record.make(fields, key: head.key, value: nil, in: &entries.pool), onto: chain)
        return true
    }
}

extension Cause {
    /// Who deletes what has expired.
    static let expiry = Cause(
        uid: thisProcess.uid,
        gid: thisProcess.gid,
        pid: 0,
        command: "expiry"
    )
}
