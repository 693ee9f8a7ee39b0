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
            }
        )
        (self.revision, self.metadata) = (revision, metadata)
    }

    /// The newest change of each key, in the order of keys; their bytes are those of the slice.
    borrowing func newest() -> [SettledRow] { changes.sorted() }
}

/// A row of the database, and the checksum that the log has for it.
struct SettledRow {
    var change: StoredChange
    var checksum: UInt32

    /// The bytes of key and value.
    var byteCount: Int { change.key.count + (change.value?.count ?? 0) }
}

/// The newest change of each key, in memory of its own, which is used again for the next stretch.
///
/// Keys are looked up by a hash with a secret of this process: who chooses keys cannot choose hashes.
final class NewestChanges {
    private struct Slot {
        var row: SettledRow
        /// The room for cause and value, behind the key.
        var room: UnsafeMutableRawBufferPointer
        var hash: UInt64
    }

    private var slots: [Slot] = []
    /// Indexes of slots, at the place that the hash of the key names, or behind it; -1: nothing.
    private var table: [Int32] = Array(repeating: -1, count: 1_024)
    private let secret: (UInt64, UInt64) = (.random(in: 0 ... .max), .random(in: 0 ... .max) | 1)
    private var chunks: [UnsafeMutableRawBufferPointer] = []
    /// How many chunks are used, and how much of the last of these.
    private var (usedCount, used) = (0, 0)
    private static let chunkByteCount = 1 << 20
    /// About how much of it there is, besides the bytes of the changes.
    private static let slotByteCount = 200
    private(set) var byteCount = 0

    deinit { for chunk in chunks { chunk.deallocate() } }

    /// Forgets all changes, and keeps memory of the usual size.
    func removeAll() {
        slots.removeAll(keepingCapacity: true)
        for index in table.indices { table[index] = -1 }
        let isUsual = { (chunk: UnsafeMutableRawBufferPointer) in
            chunk.count == NewestChanges.chunkByteCount
        }
        for chunk in chunks where !isUsual(chunk) { chunk.deallocate() }
        chunks = chunks.filter(isUsual)
        (usedCount, used, byteCount) = (0, 0, 0)
    }

    /// Takes a change that comes after all of the same key.
    func add(_ change: borrowing StoredChange, _ checksum: UInt32) {
        let needed = change.cause.count + (change.value?.count ?? 0)
        let hash = hash(of: change.key)
        var place = Int(truncatingIfNeeded: hash) & (table.count - 1)
        while table[place] >= 0 {
            let index = Int(table[place])
            if slots[index].hash == hash, slots[index].row.change.key.isEqual(to: change.key) {
                let key = slots[index].row.change.key
                if needed > slots[index].room.count { slots[index].room = allocate(needed) }
                let copy = NewestChanges.copy(change, key: key, to: slots[index].room)
                slots[index].row = SettledRow(change: copy, checksum: checksum)
                return
            }
            place = (place + 1) & (table.count - 1)
        }
        let memory = allocate(change.key.count + needed)
        memory.copyMemory(from: change.key)
        let key = Bytes(rebasing: Bytes(memory)[..<change.key.count])
        let room = UnsafeMutableRawBufferPointer(rebasing: memory[change.key.count...])
        let copy = NewestChanges.copy(change, key: key, to: room)
        let row = SettledRow(change: copy, checksum: checksum)
        table[place] = Int32(slots.count)
        slots.append(Slot(row: row, room: room, hash: hash))
        byteCount += NewestChanges.slotByteCount
        if slots.count > table.count / 2 { growTable() }
    }

    private func growTable() {
        table = Array(repeating: -1, count: 4 * table.count)
        for (index, slot) in slots.enumerated() {
            var place = Int(truncatingIfNeeded: slot.hash) & (table.count - 1)
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

    private static func copy(
        _ change: borrowing StoredChange,
        key: Bytes,
        to room: UnsafeMutableRawBufferPointer
    ) -> StoredChange {
        func place(_ bytes: Bytes, at start: Int) -> Bytes {
            let part = UnsafeMutableRawBufferPointer(rebasing: room[start..<start + bytes.count])
            part.copyMemory(from: bytes)
            return Bytes(part)
        }
        var copied = StoredChange(
            revision: change.revision,
            ordinal: change.ordinal,
            key: key,
            value: nil,
            created: change.created,
            owner: change.owner,
            version: change.version,
            time: change.time,
            expires: change.expires,
            cause: place(change.cause, at: 0),
            previousRevision: change.previousRevision,
            previousOrdinal: change.previousOrdinal
        )
        if let value = change.value { copied.value = place(value, at: change.cause.count) }
        return copied
    }

    private func allocate(_ count: Int) -> UnsafeMutableRawBufferPointer {
        byteCount += count
        if usedCount == 0 || used + count > chunks[usedCount - 1].count {
            if usedCount == chunks.count || chunks[usedCount].count < count {
                let size = max(count, NewestChanges.chunkByteCount)
                chunks.insert(.allocate(byteCount: size, alignment: 8), at: usedCount)
            }
            (usedCount, used) = (usedCount + 1, 0)
        }
        defer { used += count }
        return UnsafeMutableRawBufferPointer(
            rebasing: chunks[usedCount - 1][used..<used + count]
        )
    }

    // MARK: The order of keys

    /// The rows in the order of their keys.
    ///
    /// Most keys of a store begin alike, and differ in the eight bytes behind that: these are compared
    /// as a number.
    func sorted() -> [SettledRow] {
        let shared = sharedCount
        let order = slots.indices.map {
            (head: head(of: slots[$0].row.change.key, from: shared), $0)
        }
        return order.sorted { one, other in
            if one.head != other.head { return one.head < other.head }
            return slots[one.1].row.change.key.precedes(slots[other.1].row.change.key)
        }.map { slots[$0.1].row }
    }

    /// How many bytes all keys begin with.
    private var sharedCount: Int {
        guard let first = slots.first?.row.change.key else { return 0 }
        return slots.reduce(first.count) { shared, slot in
            let key = slot.row.change.key
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
