import CLinux

/// When entries expire: a heap of deadlines, of which those of superseded versions are found out when they are due.
///
/// Deadlines run on CLOCK_BOOTTIME, so that a wall clock that is set moves none; what is stored is wall time.
package struct Deadlines {
    private struct Deadline {
        /// Milliseconds of CLOCK_BOOTTIME.
        var time: Int64
        var revision: Int64
        var key: [UInt8]
    }

    private var heap: [Deadline] = []
    /// How many there were when the superseded ones were last taken out.
    private var countAfterSweep = 0

    /// Milliseconds of CLOCK_BOOTTIME.
    package static func now() -> Int64 { clinux_boottime_milliseconds() }

    /// Until the first is due, in milliseconds; nil where there is none.
    package func millisecondsLeft(at now: Int64) -> Int64? {
        heap.first.map { max(0, $0.time - now) }
    }

    package var count: Int { heap.count }

    /// Notes when a version expires.
    ///
    /// - Parameters:
    ///   - record: One that does.
    ///   - wallTime: What the time is, in milliseconds since 1970.
    mutating func insert(_ record: Record, at wallTime: Int64) {
        guard let expires = record.expires else { return }
        let time = Deadlines.now() &+ (expires - wallTime)
        heap.append(Deadline(time: time, revision: record.revision, key: Array(record.key)))
        rise(heap.count - 1)
    }

    /// Whether so many may be of superseded versions that it is worth looking at all of them.
    var needsSweep: Bool { heap.count > 2 * countAfterSweep + 1_024 }

    /// Keeps those that `isOfEntry` says are of an entry as it is.
    mutating func sweep(_ isOfEntry: (_ key: [UInt8], _ revision: Int64) -> Bool) {
        heap.removeAll { !isOfEntry($0.key, $0.revision) }
        heap.sort { $0.time < $1.time }
        countAfterSweep = heap.count
    }

    mutating func removeAll() {
        heap = []
        countAfterSweep = 0
    }

    /// Takes the first where it is due.
    mutating func takeDue(at now: Int64) -> (key: [UInt8], revision: Int64)? {
        guard let first = heap.first, first.time <= now else { return nil }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            sink(0)
        }
        return (first.key, first.revision)
    }

    private mutating func rise(_ start: Int) {
        var index = start
        while index > 0, heap[index].time < heap[(index - 1) / 2].time {
            heap.swapAt(index, (index - 1) / 2)
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
            heap.swapAt(index, least)
            index = least
        }
    }
}

/// Entries that expire.
extension KeyspaceCore {
    /// Deletes what is due, as one commit whose cause is `expiry`; a thousand entries at most.
    ///
    /// - Parameters:
    ///   - now: Milliseconds of CLOCK_BOOTTIME.
    ///   - time: Wall time in milliseconds since 1970.
    /// - Returns: How many; where storage refuses writes for now, none, and they are tried again in a second.
    @discardableResult
    package func expire(at now: Int64, wallTime time: Int64) -> Int {
        if deadlines.needsSweep {
            deadlines.sweep { key, revision in head(key)?.revision == revision }
        }
        var due: [(key: [UInt8], revision: Int64)] = []
        while due.count < 1_000, let next = deadlines.takeDue(at: now) {
            if head(next.key)?.revision == next.revision { due.append(next) }
        }
        guard !due.isEmpty else { return 0 }
        let cause = retainCause(.expiry)
        defer { release(cause) }
        begin(cause, at: time)
        var count = 0
        for (key, _) in due where expire(key) { count += 1 }
        finish()
        return count
    }

    private func head(_ key: [UInt8]) -> Record? { key.withUnsafeBytes { table.head($0) } }

    private func expire(_ key: [UInt8]) -> Bool {
        key.withUnsafeBytes { key in
            guard let chain = table.chain(key), let head = chain.pointee.leaf, !head.isDeleted
            else {
                return false
            }
            do throws(StateError) {
                try checkRoom(key.count, isVolatile: head.isVolatile)
                if head.isVolatile { try checkMove(of: key, head) }
            } catch {
                deadlines.postpone(head, by: 1_000)
                return false
            }
            var fields = fields(of: head, version: 0)
            fields.isVolatile = head.isVolatile
            put(Record.make(fields, key: key, value: nil, in: &pool), onto: chain)
            return true
        }
    }
}

extension Deadlines {
    /// Notes a version once more, so many milliseconds from now.
    mutating func postpone(_ record: Record, by milliseconds: Int64) {
        heap.append(
            Deadline(
                time: Deadlines.now() + milliseconds,
                revision: record.revision,
                key: Array(record.key)
            )
        )
        rise(heap.count - 1)
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
