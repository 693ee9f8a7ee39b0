import StatePlatform
import StateSystem

/// The entries of a keyspace: for each key a chain of versions, newest first.
///
/// A chain has at most one durable version, its last; the versions before it are provisional.
/// `live` holds the chains with a version that is not a delete. `deleted` holds the keys of which
/// only a durable delete is known (the tombstone), which a later version of that key supersedes in
/// the history. So listing never walks over deleted keys.
package struct EntryStore: ~Copyable {
    var live = RadixTree()
    var deleted = RadixTree()
    /// Whether tombstones are kept: in a history, each change names the one that it supersedes.
    let keepsDeleted: Bool

    /// Entries without the provisional ones.
    package internal(set) var durableCount = 0
    /// Who wrote the versions.
    var causes = CauseTable()
    /// What versions are made from.
    var pool = RecordPool()
    /// When entries expire.
    package internal(set) var deadlines = Deadlines()
    /// Milliseconds of CLOCK_BOOTTIME, on which deadlines run; a test may set another clock.
    package var clock: @Sendable () -> Int64 = { Deadlines.now() }
    /// Milliseconds since 1970, where the time of a transaction may be older than it.
    package var wallClock: (@Sendable () -> Int64)?
    /// Whether storage has entries that expire, perhaps only superseded ones.
    var hasLoadedExpiry = false
    /// The listings that are running in slices.
    var scans: [ScanPosition] = [] { didSet { noteObservers() } }
    /// Absent keys that connections watch.
    var absentKeys = AbsentKeys() { didSet { noteObservers() } }
    /// Whether there is any of these two.
    private var isObserved = false
    /// Bytes of all versions that were ever put.
    package internal(set) var putByteCount: Int64 = 0

    init(keepsDeleted: Bool) { self.keepsDeleted = keepsDeleted }

    /// Wall time in milliseconds since 1970.
    package borrowing func wallTime() -> Int64 { wallClock?() ?? LocalKeyspace.now() }

    /// Frees a version that nothing refers to any more.
    mutating func free(_ record: Record) {
        removeDeadline(of: record)
        causes.release(record.cause)
        record.deallocate(into: &pool)
    }

    /// Removes the deadline of a version that is no longer the newest, if it has one.
    @inline(__always)
    mutating func removeDeadline(of record: Record) {
        if record.hasDeadline { deadlines.remove(record) }
    }

    /// The newest version of `key`, provisional or durable; nil if there is none or only a durable
    /// delete.
    func head(_ key: Bytes) -> Record? { live.record(for: key) }

    /// Begins a chain with a version of a key that has no live version.
    mutating func begin(_ record: Record) {
        if deleted.count > 0, !record.isVolatile, let tombstone = deleted.record(for: record.key) {
            record.older = tombstone
            deleted.remove(record.key)
        }
        live.insert(record)
    }

    /// Takes the newest version, `record`, from the chain of its key.
    ///
    /// The caller frees it.
    ///
    /// - Returns: The version below, if it leaves the table too; the caller frees it.
    mutating func pop(_ record: Record, durableRevision: Int64) -> Record? {
        guard let older = record.older else {
            live.remove(record.key)
            return nil
        }
        if older.isDeleted, older.revision <= durableRevision {
            live.remove(record.key)
            return keepDelete(older) ? nil : older
        }
        let top = live.replace(with: older)
        precondition(top == record, "versions are undone out of order")
        return nil
    }

    /// `record`, whose older version is gone, is durable now: a delete leaves the live entries.
    ///
    /// - Returns: Whether the record left the table; the caller then frees it.
    mutating func settleDelete(_ record: Record) -> Bool {
        guard live.record(for: record.key) == record else { return false }
        live.remove(record.key)
        return !keepDelete(record)
    }

    /// Keeps the stored delete of a key that has moved to memory; the table owns it.
    mutating func keepTombstone(_ tombstone: Record) { deleted.insert(tombstone) }

    /// Removes the durable delete of `key` that was made at `revision`, even if a provisional
    /// version supersedes it.
    ///
    /// - Returns: That delete, which the caller frees; nil if it is no longer known.
    mutating func forgetDelete(of key: Bytes, at revision: Int64) -> Record? {
        if let tombstone = deleted.record(for: key) {
            guard tombstone.revision == revision else { return nil }
            deleted.remove(key)
            return tombstone
        }
        var version = live.record(for: key)
        while let newer = version, let older = newer.older {
            if older.revision == revision, older.isDeleted {
                // A change on its way to storage has copied its position already and may name what
                // is compacted.
                newer.older = nil
                return older
            }
            version = older
        }
        return nil
    }

    /// - Returns: Whether the table keeps it.
    mutating func keepDelete(_ record: Record) -> Bool {
        guard keepsDeleted, !record.isVolatile else { return false }
        deleted.insert(record)
        return true
    }

    /// Records for listings and watches that the newest version of a key has changed.
    @inline(__always)
    func noteChanged(_ record: Record) {
        if isObserved { EntryStore.note(record, scans, absentKeys) }
    }

    private mutating func noteObservers() { isObserved = !scans.isEmpty || !absentKeys.isEmpty }

    // A static function: for a method of the store, the compiler copied its 144 bytes for each SET
    // (callgrind).
    @inline(never)
    private static func note(_ record: Record, _ scans: [ScanPosition], _ absent: AbsentKeys) {
        for scan in scans { scan.note(record.key) }
        if !absent.isEmpty { absent.note(record) }
    }
}

/// A cause, stored once, however many records name it.
package final class InternedCause {
    package let cause: Cause
    package let number: UInt32
    /// ``Cause/description`` in UTF-8.
    let bytes: [UInt8]
    /// How many records and sessions name it.
    @exclusivity(unchecked) fileprivate(set) var referenceCount = 0

    fileprivate init(_ cause: Cause, number: UInt32, bytes: [UInt8]) {
        self.cause = cause
        self.number = number
        self.bytes = bytes
    }
}

/// The causes that records name by number, with reference counts: a cause that nothing names is
/// removed.
struct CauseTable {
    private var slots: [InternedCause?] = []
    private var free: [UInt32] = []
    private var numbers: [[UInt8]: UInt32] = [:]
    /// Those interned from bytes, at the place that the checksum of the bytes names: a load meets few
    /// causes, again and again.
    private var recent = [InternedCause?](repeating: nil, count: 64)

    /// How many times records and sessions name a cause.
    var referenceCount: Int { slots.reduce(0) { $0 + ($1?.referenceCount ?? 0) } }

    /// The cause with a number that a record names.
    subscript(number: UInt32) -> InternedCause {
        guard let cause = slots[Int(number)] else {
            preconditionFailure("a record names cause \(number), which is gone")
        }
        return cause
    }

    /// The cause with these bytes, counted once more.
    ///
    /// - Complexity: O(*n*) to compare, or to hash one that was not asked for lately.
    mutating func intern(bytes: Bytes) -> InternedCause {
        let place = Int(Checksum.crc32c(bytes)) % recent.count
        // One that was removed has no references, and another object takes its number.
        if let known = recent[place], known.referenceCount > 0,
            known.bytes.withUnsafeBytes({ $0.isEqual(to: bytes) })
        {
            known.referenceCount += 1
            return known
        }
        let interned = intern(Array(bytes)) {
            let text = String(decoding: bytes, as: UTF8.self)
            return Cause(text) ?? Cause(uid: .max, gid: .max, pid: 0, command: text)
        }
        recent[place] = interned
        return interned
    }

    /// The interned cause, counted once more.
    mutating func intern(_ cause: Cause) -> InternedCause {
        intern(Array(cause.description.utf8)) { cause }
    }

    private mutating func intern(_ bytes: [UInt8], making cause: () -> Cause) -> InternedCause {
        let interned: InternedCause
        if let number = numbers[bytes] {
            interned = self[number]
        } else {
            let number = free.popLast() ?? UInt32(slots.count)
            interned = InternedCause(cause(), number: number, bytes: bytes)
            if Int(number) == slots.count {
                slots.append(interned)
            } else {
                slots[Int(number)] = interned
            }
            numbers[bytes] = number
        }
        interned.referenceCount += 1
        return interned
    }

    func retain(_ cause: InternedCause) { cause.referenceCount += 1 }

    mutating func release(_ number: UInt32) { release(self[number]) }

    mutating func release(_ cause: InternedCause) {
        cause.referenceCount -= 1
        guard cause.referenceCount == 0 else { return }
        slots[Int(cause.number)] = nil
        numbers[cause.bytes] = nil
        free.append(cause.number)
    }
}

/// Memory of freed records, for the next ones: the last to be freed is the first to be used, while
/// it is in the caches.
///
/// The commit of a key's next version frees the one before, so each write takes and returns one
/// record. malloc keeps only few chunks of this size apart and then examines their neighbours: 9 %
/// of a SET with pipelines of 16 (perf).
///
/// A size class holds what the system's malloc rounds to the same chunk. Each record is as large as
/// its class allows, so that memory of any malloc can be reused; the system's malloc rounds to
/// exactly that.
struct RecordPool {
    /// The newest free memory of each class; its first word is the address of the next.
    private var heads = [UnsafeMutableRawPointer?](repeating: nil, count: RecordPool.classCount)
    private var freeByteCount = 0

    private static let classCount = 64
    /// Memory beyond this limit is returned to malloc.
    private static let byteLimit = 4 << 20

    private static func sizeClass(_ byteCount: Int) -> Int { (byteCount + 23) / 16 }

    /// How many bytes malloc must allocate for a record of `byteCount` bytes: enough for each
    /// record of the same class.
    static func roomByteCount(_ byteCount: Int) -> Int { sizeClass(byteCount) * 16 - 8 }

    /// Memory for `byteCount` bytes, uninitialized; returned with `free` or ``give(_:_:)``.
    mutating func take(_ byteCount: Int) -> UnsafeMutableRawPointer? {
        let place = RecordPool.sizeClass(byteCount)
        guard place < RecordPool.classCount, let head = heads[place] else { return nil }
        heads[place] = head.load(as: UnsafeMutableRawPointer?.self)
        freeByteCount -= place * 16
        return head
    }

    /// Takes memory of `byteCount` bytes back.
    mutating func give(_ memory: UnsafeMutableRawPointer, _ byteCount: Int) {
        let place = RecordPool.sizeClass(byteCount)
        guard place < RecordPool.classCount, freeByteCount < RecordPool.byteLimit else {
            free(memory)
            return
        }
        memory.storeBytes(of: heads[place], as: UnsafeMutableRawPointer?.self)
        heads[place] = memory
        freeByteCount += place * 16
    }

    /// Returns everything to malloc.
    mutating func drain() {
        for place in heads.indices {
            while let head = heads[place] {
                heads[place] = head.load(as: UnsafeMutableRawPointer?.self)
                free(head)
            }
        }
        freeByteCount = 0
    }
}
