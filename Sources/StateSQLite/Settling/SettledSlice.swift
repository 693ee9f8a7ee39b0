import CLinux
import StateEngine
import StateLog
import StateModel

/// The newest changes of a stretch of the log, with the bytes that they borrow.
///
/// A key that changes often takes the room of one change: the next one is written over it where it
/// fits. So a stretch is as long as its keys take memory, and each is written to the database once.
struct SettledSlice: ~Copyable {
    private let changes: NewestChanges
    private(set) var metadata: [String: String?] = [:]
    /// The last revision in it; 0 if it has no commits.
    private(set) var revision: Int64 = 0
    private(set) var end: LogPlace

    /// A stretch is at most so many times as long as the bytes that it takes.
    private static let repeatCount = 8

    /// Reads a stretch, until its changes take about so many bytes of `memory`, which is emptied first.
    init(
        _ stretch: LogSnapshot,
        byteCount: Int,
        in memory: NewestChanges
    ) throws(StateError) {
        (changes, end) = (memory, stretch.start)
        changes.removeAll()
        var metadata: [String: String?] = [:]
        var (revision, readCount) = (0 as Int64, 0)
        end = try stretch.read(
            while: {
                memory.byteCount < byteCount && readCount < SettledSlice.repeatCount * byteCount
            },
            { (frame, time) throws(LogDamage) in
                readCount += frame.count
                try CommitCoder.read(frame, at: time, comparingRows: false) { part in
                    switch part {
                    case .commit(let number, _, _): revision = max(revision, number)
                    case .change(let change, let link): memory.add(change, link.checksum)
                    case .metadata(let name, let text): metadata[name] = text
                    }
                }
                memory.addWaiting()
            }
        )
        (self.revision, self.metadata) = (revision, metadata)
    }

    /// The newest change of each key, in the order of keys; their bytes are those of the slice.
    borrowing func newest() -> [NewestChange] { changes.sorted() }
}

/// A row of the database, and the checksum that the log has for it.
struct SettledRow {
    var change: StoredChange
    var checksum: UInt32
}

/// A change in the memory of ``NewestChanges``, which must live as long.
///
/// Its fields come first, then the key, then room for cause and value.
struct NewestChange {
    private struct Fields {
        var (revision, created, version, time): (Int64, Int64, Int64, Int64)
        var expires: Int64?
        var supersedes: Bool
        var (checksum, owner): (UInt32, UInt32)
        var ordinal: Int32
        var (keyCount, causeCount): (Int32, Int32)
        /// -1 for a delete.
        var valueCount: Int32
        /// The bytes behind the key that another change of it may use.
        var room: Int32
    }

    /// How much memory a change takes.
    static func byteCount(of change: borrowing StoredChange) -> Int {
        MemoryLayout<Fields>.size + change.key.count + content(of: change)
    }

    /// The bytes of cause and value.
    private static func content(of change: borrowing StoredChange) -> Int {
        change.cause.count + (change.value?.count ?? 0)
    }

    private let start: UnsafeMutableRawPointer

    private var fields: Fields { start.assumingMemoryBound(to: Fields.self).pointee }

    private var keyStart: UnsafeMutableRawPointer { start + MemoryLayout<Fields>.size }

    /// Copies a change into memory of the length that it takes.
    init(_ change: borrowing StoredChange, _ checksum: UInt32, in memory: UnsafeMutableRawPointer) {
        start = memory
        keyStart.copy(from: change.key)
        take(change, checksum, room: NewestChange.content(of: change))
    }

    /// Becomes another change of the same key, if that fits.
    func replace(with change: borrowing StoredChange, _ checksum: UInt32) -> Bool {
        let room = Int(fields.room)
        guard NewestChange.content(of: change) <= room else { return false }
        take(change, checksum, room: room)
        return true
    }

    private func take(_ change: borrowing StoredChange, _ checksum: UInt32, room: Int) {
        let fields = Fields(
            revision: change.revision,
            created: change.created,
            version: change.version,
            time: change.time,
            expires: change.expires,
            supersedes: change.previousRevision > 0,
            checksum: checksum,
            owner: change.owner,
            ordinal: change.ordinal,
            keyCount: Int32(change.key.count),
            causeCount: Int32(change.cause.count),
            valueCount: change.value.map { Int32($0.count) } ?? -1,
            room: Int32(room)
        )
        start.initializeMemory(as: Fields.self, to: fields)
        let cause = keyStart + change.key.count
        cause.copy(from: change.cause)
        if let value = change.value { (cause + change.cause.count).copy(from: value) }
    }

    var key: Bytes { Bytes(start: keyStart, count: Int(fields.keyCount)) }

    var isDelete: Bool { fields.valueCount < 0 }

    /// Whether the key may have a row that it supersedes.
    var supersedes: Bool { fields.supersedes }

    /// The bytes of key and value.
    var byteCount: Int { Int(fields.keyCount) + max(0, Int(fields.valueCount)) }

    /// Has the processor fetch it, as it is read soon.
    func prefetch() { clinux_prefetch(start) }

    /// Its row, whose bytes are borrowed.
    var row: SettledRow {
        let fields = fields
        let cause = keyStart + Int(fields.keyCount)
        let value = cause + Int(fields.causeCount)
        let change = StoredChange(
            revision: fields.revision,
            ordinal: fields.ordinal,
            key: key,
            value: isDelete ? nil : Bytes(start: value, count: Int(fields.valueCount)),
            created: fields.created,
            owner: fields.owner,
            version: fields.version,
            time: fields.time,
            expires: fields.expires,
            cause: Bytes(start: cause, count: Int(fields.causeCount)),
            previousRevision: 0,
            previousOrdinal: 0
        )
        return SettledRow(change: change, checksum: fields.checksum)
    }
}

extension UnsafeMutableRawPointer {
    fileprivate func copy(from bytes: Bytes) {
        if let start = bytes.baseAddress { copyMemory(from: start, byteCount: bytes.count) }
    }
}

/// The newest change of each key, in memory of its own, which is used again for the next stretch.
///
/// Keys are looked up by a hash with a secret of this process: who chooses keys cannot choose hashes.
final class NewestChanges {
    private struct Slot {
        var hash: UInt64
        var change: NewestChange
    }

    private struct Chunk {
        let start: UnsafeMutableRawPointer
        let byteCount: Int

        init(byteCount: Int) {
            start = .allocate(byteCount: byteCount, alignment: 8)
            self.byteCount = byteCount
        }
    }

    private var slots: [Slot] = []
    /// Indexes of slots, at the place that the hash of the key names, or behind it; -1: nothing.
    private var table: [Int32] = Array(repeating: -1, count: 1_024)
    private let secret: (UInt64, UInt64) = (.random(in: 0 ... .max), .random(in: 0 ... .max) | 1)
    private var chunks: [Chunk] = []
    /// How many chunks are used, and how much of the last of these.
    private var (usedCount, used) = (0, 0)
    private static let chunkByteCount = 1 << 20
    /// What a change takes besides, about: in the slots, in the table, and where they are sorted.
    private static let slotByteCount = 64
    private(set) var byteCount = 0

    private struct Waiting {
        var hash: UInt64
        var change: StoredChange
        var checksum: UInt32
    }

    /// Changes that are looked up together: to wait for the memory of each in turn took half of the time.
    private var waiting: [Waiting] = []
    private static let waitingLimit = 16

    deinit { for chunk in chunks { chunk.start.deallocate() } }

    /// Forgets all changes, and keeps memory of the usual size.
    func removeAll() {
        waiting.removeAll(keepingCapacity: true)
        slots.removeAll(keepingCapacity: true)
        for index in table.indices { table[index] = -1 }
        let isUsual = { (chunk: Chunk) in chunk.byteCount == NewestChanges.chunkByteCount }
        for chunk in chunks where !isUsual(chunk) { chunk.start.deallocate() }
        chunks = chunks.filter(isUsual)
        (usedCount, used, byteCount) = (0, 0, 0)
    }

    /// Takes a change that comes after all of the same key; its bytes are borrowed until
    /// ``addWaiting()``.
    func add(_ change: borrowing StoredChange, _ checksum: UInt32) {
        let hash = hash(of: change.key)
        waiting.append(Waiting(hash: hash, change: copy change, checksum: checksum))
        if waiting.count == NewestChanges.waitingLimit { addWaiting() }
    }

    /// Copies what was added.
    func addWaiting() {
        slots.withUnsafeBufferPointer { slots in
            func index(_ hash: UInt64) -> Int { Int(table[place(of: hash)]) }
            for item in waiting {
                let index = index(item.hash)
                if index >= 0, let start = slots.baseAddress { clinux_prefetch(start + index) }
            }
            for item in waiting {
                let index = index(item.hash)
                if index >= 0, slots[index].hash == item.hash { slots[index].change.prefetch() }
            }
        }
        for item in waiting { add(item.change, item.checksum, item.hash) }
        waiting.removeAll(keepingCapacity: true)
    }

    /// Where the table has the index of a hash, or behind it.
    private func place(of hash: UInt64) -> Int {
        Int(truncatingIfNeeded: hash) & (table.count - 1)
    }

    private func add(_ change: borrowing StoredChange, _ checksum: UInt32, _ hash: UInt64) {
        var place = place(of: hash)
        while table[place] >= 0 {
            let index = Int(table[place])
            let slot = slots[index]
            if slot.hash == hash, slot.change.key.isEqual(to: change.key) {
                if !slot.change.replace(with: change, checksum) {
                    slots[index].change = copy(change, checksum)
                }
                return
            }
            place = (place + 1) & (table.count - 1)
        }
        table[place] = Int32(slots.count)
        slots.append(Slot(hash: hash, change: copy(change, checksum)))
        byteCount += NewestChanges.slotByteCount
        if slots.count > table.count / 2 { growTable() }
    }

    private func growTable() {
        table = Array(repeating: -1, count: 2 * table.count)
        for (index, slot) in slots.enumerated() {
            var place = place(of: slot.hash)
            while table[place] >= 0 { place = (place + 1) & (table.count - 1) }
            table[place] = Int32(index)
        }
    }

    private func hash(of key: Bytes) -> UInt64 {
        var hash = secret.0 ^ UInt64(key.count)
        func mix(_ word: UInt64) {
            let product = (hash ^ word).multipliedFullWidth(by: secret.1)
            hash = product.high ^ product.low
        }
        var offset = 0
        while offset + 8 <= key.count {
            mix(key.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            offset += 8
        }
        var rest: UInt64 = 0
        for index in offset..<key.count { rest = rest << 8 | UInt64(key[index]) }
        mix(rest)
        mix(secret.0)
        return hash
    }

    private func copy(_ change: borrowing StoredChange, _ checksum: UInt32) -> NewestChange {
        // SQLite has long values once more while they are written, and a slice ends with a whole frame:
        // of those, less is taken at once.
        let valueByteCount = change.value?.count ?? 0
        byteCount += valueByteCount < 1 << 20 ? valueByteCount : 3 * valueByteCount
        return NewestChange(change, checksum, in: allocate(NewestChange.byteCount(of: change)))
    }

    private func allocate(_ least: Int) -> UnsafeMutableRawPointer {
        let count = (least + 7) / 8 * 8
        byteCount += count
        if usedCount == 0 || used + count > chunks[usedCount - 1].byteCount {
            if usedCount == chunks.count || chunks[usedCount].byteCount < count {
                let size = max(count, NewestChanges.chunkByteCount)
                chunks.insert(Chunk(byteCount: size), at: usedCount)
            }
            (usedCount, used) = (usedCount + 1, 0)
        }
        defer { used += count }
        return chunks[usedCount - 1].start + used
    }

    // MARK: The order of keys

    /// The changes in the order of their keys.
    ///
    /// Most keys of a store begin alike, and differ in the eight bytes behind that: these are compared
    /// as a number.
    func sorted() -> [NewestChange] {
        let shared = sharedCount
        var order = slots.map { (head: head(of: $0.change.key, from: shared), change: $0.change) }
        order.sort { one, other in
            if one.head != other.head { return one.head < other.head }
            return one.change.key.precedes(other.change.key)
        }
        return order.map(\.change)
    }

    /// How many bytes all keys begin with.
    private var sharedCount: Int {
        guard let first = slots.first?.change.key else { return 0 }
        return slots.reduce(first.count) { shared, slot in
            let key = slot.change.key
            var count = 0
            while count < min(shared, key.count), key[count] == first[count] { count += 1 }
            return count
        }
    }

    private func head(of key: Bytes, from start: Int) -> UInt64 {
        var head: UInt64 = 0
        for index in start..<start + 8 {
            head = head << 8 | (index < key.count ? UInt64(key[index]) : 0)
        }
        return head
    }
}
