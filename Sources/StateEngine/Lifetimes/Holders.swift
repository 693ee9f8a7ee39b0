import StateModel

/// The keys that live as long as their holders: for each holder the newest versions that name it.
///
/// As in ``Deadlines``, each record knows its slot, so that a version that replaces another leaves
/// the list of its holder. A holder is living, or may come back until a time, or has ended; then its
/// keys wait to be deleted, in the order in which holders ended.
package struct Holders {
    /// The most keys of one holder: its end is one commit.
    package static let keyLimit = 10_000

    private enum State {
        case living
        /// It was known to an earlier run of the daemon, and is not here yet.
        case awaited
        /// Its keys are deleted, but not before a time in milliseconds of CLOCK_BOOTTIME.
        case ended(Int64)
    }

    private struct Entry {
        var state: State
        /// Borrowed: each is removed before it is freed.
        var records: [Record] = []
    }

    private var entries: [Holder: Entry] = [:]
    /// Those that ended and had keys then, in order.
    private var endings: [Holder] = []
    /// How many keys have a holder.
    package private(set) var keyCount = 0
    /// Whether holders that were never here have ended: the daemon has looked at those of its last
    /// run.
    private var isServing = false
    /// Until when awaited holders may come, in milliseconds of CLOCK_BOOTTIME; `max` if none is
    /// awaited, or nobody decides it.
    private var awaitedUntil = Int64.max
    /// When ``takeEnded(at:)`` may have something to return, in milliseconds of CLOCK_BOOTTIME;
    /// `max` if nothing is expected.
    package private(set) var nextEnd = Int64.max

    // MARK: Versions

    /// Inserts the newest version of a key that names a holder.
    ///
    /// If its holder is gone, the key is deleted, not before `time`.
    ///
    /// - Complexity: O(1) on average.
    mutating func insert(_ record: Record, notBefore time: Int64 = 0) {
        guard let holder = record.holder else { return }
        precondition(record.deadlineSlot < 0, "a version has one holder")
        keyCount += 1
        let state = isServing ? State.ended(time) : .awaited
        let isNew = entries[holder] == nil
        record.deadlineSlot = entries[holder]?.records.count ?? 0
        entries[holder, default: Entry(state: state)].records.append(record)
        if isNew, isServing { append(holder, dueAt: time) }
    }

    /// Removes a version that is no longer the newest.
    ///
    /// - Complexity: O(1) on average.
    mutating func remove(_ record: Record) {
        guard record.deadlineSlot >= 0, let holder = record.holder else { return }
        let slot = record.deadlineSlot
        record.deadlineSlot = -1
        keyCount -= 1
        guard let last = entries[holder]?.records.popLast() else {
            preconditionFailure("the holder of a version is not known")
        }
        if last != record {
            entries[holder]?.records[slot] = last
            last.deadlineSlot = slot
        }
        guard let entry = entries[holder], entry.records.isEmpty else { return }
        if case .living = entry.state { return }
        entries[holder] = nil
    }

    /// How many keys a holder has.
    package func keyCount(of holder: Holder) -> Int { entries[holder]?.records.count ?? 0 }

    // MARK: Holders

    /// Whether a holder is known: living, awaited, or with keys that wait to be deleted.
    package func knows(_ holder: Holder) -> Bool { entries[holder] != nil }

    /// A holder is here: new, or back.
    ///
    /// - Returns: False if it has ended: then it stays so.
    @discardableResult
    package mutating func begin(_ holder: Holder) -> Bool {
        if case .ended? = entries[holder]?.state { return false }
        entries[holder, default: Entry(state: .living)].state = .living
        return true
    }

    /// A holder has ended: its keys are deleted, at `now` or later.
    package mutating func end(_ holder: Holder, at now: Int64) {
        guard let entry = entries[holder] else { return }
        if case .ended = entry.state { return }
        guard !entry.records.isEmpty else {
            entries[holder] = nil
            return
        }
        append(holder, dueAt: now)
    }

    /// Queues an ended holder.
    private mutating func append(_ holder: Holder, dueAt time: Int64) {
        entries[holder]?.state = .ended(time)
        endings.append(holder)
        nextEnd = min(nextEnd, time)
    }

    /// The holders that an earlier run of the daemon knew.
    package var awaited: [Holder] {
        entries.compactMap { if case .awaited = $0.value.state { $0.key } else { nil } }
    }

    /// From now on unknown holders have ended, and awaited ones end at `time`, in milliseconds of
    /// CLOCK_BOOTTIME.
    package mutating func serve(awaitingUntil time: Int64) {
        (isServing, awaitedUntil) = (true, awaited.isEmpty ? .max : time)
        nextEnd = min(nextEnd, awaitedUntil)
    }

    private func dueTime(of holder: Holder) -> Int64 {
        guard case .ended(let time)? = entries[holder]?.state else { return 0 }
        return time
    }

    /// The versions to delete of the holder that ended first and is due; nil if none is.
    mutating func takeEnded(at now: Int64) -> [Record]? {
        if now >= awaitedUntil {
            awaitedUntil = .max
            for holder in awaited.sorted(by: { $0.stored > $1.stored }) { end(holder, at: now) }
        }
        guard let place = endings.firstIndex(where: { dueTime(of: $0) <= now }) else {
            nextEnd = endings.reduce(awaitedUntil) { min($0, dueTime(of: $1)) }
            return nil
        }
        return entries[endings.remove(at: place)]?.records ?? []
    }

    /// The keys of a holder could not be deleted: they are tried again at `time`.
    mutating func retry(_ holder: Holder, at time: Int64) {
        if entries[holder] != nil { append(holder, dueAt: time) }
    }

    /// Whether the slots are correct; for tests.
    var isInOrder: Bool {
        keyCount == entries.values.reduce(0) { $0 + $1.records.count }
            && entries.allSatisfy { holder, entry in
                entry.records.indices.allSatisfy {
                    entry.records[$0].deadlineSlot == $0 && entry.records[$0].holder == holder
                }
            }
    }
}
