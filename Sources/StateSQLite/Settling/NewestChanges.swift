import CLinux
import StateEngine
import StateLog
import StateModel

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
/// A key that changes often takes the room of one change: the next one is written over it where it
/// fits. So a stretch is as long as its keys take memory, and each is written to the database once.
///
/// Keys are looked up by a hash with a secret of this process: who chooses keys cannot choose hashes.
final class NewestChanges {
    /// A place of the table: a change and the hash of its key, or nothing.
    private struct Slot {
        var hash: UInt64
        var change: NewestChange?
    }

    /// Memory that is the kernel's again once it is freed.
    private struct Chunk {
        let start: UnsafeMutableRawPointer
        let byteCount: Int

        init(byteCount: Int) {
            guard let start = clinux_map_memory(byteCount) else {
                fatalError("out of memory: \(byteCount) bytes cannot be allocated")
            }
            (self.start, self.byteCount) = (start, byteCount)
        }

        func free() { clinux_unmap_memory(start, byteCount) }
    }

    /// A change is at the place that the hash of its key names, or behind it; zeros are empty slots.
    private var tableMemory = Chunk(byteCount: 16_384 * MemoryLayout<Slot>.stride)
    private var count = 0
    private let secret: (UInt64, UInt64) = (.random(in: 0 ... .max), .random(in: 0 ... .max) | 1)
    private var chunks: [Chunk] = []
    /// How many chunks are used, and how much of the last of these.
    private var (usedCount, used) = (0, 0)
    private static let chunkByteCount = 1 << 20
    /// What a change takes besides, about: in the table, and where they are sorted.
    private static let slotByteCount = 64
    /// How much memory its changes take, about, and how much was read of the log.
    private(set) var byteCount = 0
    private(set) var readByteCount = 0
    /// The last text of each name; nil if it was removed.
    private(set) var metadata: [String: String?] = [:]
    /// The last revision in what was read; 0 if that has no commits.
    private(set) var revision: Int64 = 0

    private struct Waiting {
        var hash: UInt64
        var change: StoredChange
        var checksum: UInt32
    }

    /// Changes that are looked up together: to wait for the memory of each in turn took half of the time.
    private var waiting: [Waiting] = []
    private static let waitingLimit = 16

    deinit {
        for chunk in chunks { chunk.free() }
        tableMemory.free()
    }

    private var table: UnsafeMutableBufferPointer<Slot> {
        UnsafeMutableBufferPointer(
            start: tableMemory.start.assumingMemoryBound(to: Slot.self),
            count: tableMemory.byteCount / MemoryLayout<Slot>.stride
        )
    }

    /// Forgets everything, and keeps memory of the usual size.
    func removeAll() {
        forgetChanges()
        (metadata, revision) = ([:], 0)
    }

    /// Forgets all changes, and keeps memory of the usual size.
    func forgetChanges() {
        waiting.removeAll(keepingCapacity: true)
        table.update(repeating: Slot(hash: 0, change: nil))
        count = 0
        let isUsual = { (chunk: Chunk) in chunk.byteCount == NewestChanges.chunkByteCount }
        for chunk in chunks where !isUsual(chunk) { chunk.free() }
        chunks = chunks.filter(isUsual)
        (usedCount, used, byteCount, readByteCount) = (0, 0, 0, 0)
    }

    /// A stretch is at most so many times as long as the bytes that it takes.
    private static let repeatCount = 8

    /// Reads a stretch in place of what it has, until its changes take about so many bytes of memory.
    ///
    /// Changes up to a revision are left out: frames that were written again after a failed sync may be
    /// settled already.
    ///
    /// - Returns: The place behind what was read.
    /// - Throws: As ``LogSnapshot/read(while:_:)``.
    func read(
        _ stretch: LogSnapshot,
        after revision: Int64,
        upTo limit: Int
    ) throws(StateError) -> LogPlace {
        removeAll()
        return try stretch.read(
            while: {
                byteCount < limit && readByteCount < NewestChanges.repeatCount * limit
            },
            { (frame, time) throws(LogDamage) in
                try take(frame, at: time, after: revision, comparingRows: false)
                clinux_let_others_run()
            }
        )
    }

    /// Takes what a frame has, which comes after all that was taken before.
    ///
    /// - Parameters:
    ///   - frame: Its contents.
    ///   - time: Its time.
    ///   - settled: Changes up to this revision are left out.
    ///   - comparesRows: As for ``CommitCoder/read(_:at:comparingRows:change:commit:metadata:)``.
    /// - Throws: As that.
    func take(
        _ frame: Bytes,
        at time: Int64,
        after settled: Int64,
        comparingRows comparesRows: Bool
    ) throws(LogDamage) {
        readByteCount += frame.count
        try CommitCoder.read(frame, at: time, comparingRows: comparesRows) { change, link in
            if change.revision > settled { add(change, link.checksum) }
        } commit: { number, _, _ in
            revision = max(revision, number)
        } metadata: { name, text in
            metadata[name] = .some(text)
        }
        addWaiting()
    }

    /// Takes a change; its bytes are borrowed until ``addWaiting()``.
    private func add(_ change: borrowing StoredChange, _ checksum: UInt32) {
        let hash = hash(of: change.key)
        waiting.append(Waiting(hash: hash, change: copy change, checksum: checksum))
        if waiting.count == NewestChanges.waitingLimit { addWaiting() }
    }

    /// Copies what was added.
    private func addWaiting() {
        let table = table
        for item in waiting {
            if let start = table.baseAddress { clinux_prefetch(start + place(of: item.hash)) }
        }
        for item in waiting {
            let slot = table[place(of: item.hash)]
            if slot.hash == item.hash { slot.change?.prefetch() }
        }
        for item in waiting { add(item.change, item.checksum, item.hash) }
        waiting.removeAll(keepingCapacity: true)
    }

    private func place(of hash: UInt64) -> Int {
        Int(truncatingIfNeeded: hash) & (table.count - 1)
    }

    private func add(_ change: borrowing StoredChange, _ checksum: UInt32, _ hash: UInt64) {
        let table = table
        var place = place(of: hash)
        while let known = table[place].change {
            if table[place].hash == hash, known.key.isEqual(to: change.key) {
                if !known.replace(with: change, checksum) {
                    table[place].change = copy(change, checksum)
                }
                return
            }
            place = (place + 1) & (table.count - 1)
        }
        table[place] = Slot(hash: hash, change: copy(change, checksum))
        byteCount += NewestChanges.slotByteCount
        count += 1
        if count > table.count / 2 { growTable() }
    }

    private func growTable() {
        let (former, formerMemory) = (table, tableMemory)
        defer { formerMemory.free() }
        tableMemory = Chunk(byteCount: 2 * formerMemory.byteCount)
        let table = table
        for slot in former where slot.change != nil {
            var place = place(of: slot.hash)
            while table[place].change != nil { place = (place + 1) & (table.count - 1) }
            table[place] = slot
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
        if valueByteCount >= 1 << 20 { byteCount += 3 * valueByteCount }
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
        typealias Item = (head: UInt64, change: NewestChange)
        let memory = Chunk(byteCount: max(1, count) * MemoryLayout<Item>.stride)
        defer { memory.free() }
        var order = UnsafeMutableBufferPointer(
            start: memory.start.assumingMemoryBound(to: Item.self),
            count: count
        )
        var orderedCount = 0
        forEachChange { change in
            order.initializeElement(
                at: orderedCount,
                to: (head(of: change.key, from: shared), change)
            )
            orderedCount += 1
        }
        var comparisonCount = 0
        order.sort { one, other in
            comparisonCount += 1
            if comparisonCount % 1_024 == 0 { clinux_let_others_run() }
            if one.head != other.head { return one.head < other.head }
            return one.change.key.precedes(other.change.key)
        }
        return order.map(\.change)
    }

    /// Calls `body` with each change, in no order.
    private func forEachChange(_ body: (NewestChange) -> Void) {
        let table = table
        for place in table.indices {
            // They are anywhere in memory.
            if place + 16 < table.count { table[place + 16].change?.prefetch() }
            if let change = table[place].change { body(change) }
        }
    }

    /// How many bytes all keys begin with.
    private var sharedCount: Int {
        var (first, shared): (Bytes?, Int) = (nil, 0)
        forEachChange { change in
            let key = change.key
            guard let known = first else {
                (first, shared) = (key, key.count)
                return
            }
            var count = 0
            while count < min(shared, key.count), key[count] == known[count] { count += 1 }
            shared = count
        }
        return shared
    }

    private func head(of key: Bytes, from start: Int) -> UInt64 {
        var head: UInt64 = 0
        for index in start..<start + 8 {
            head = head << 8 | (index < key.count ? UInt64(key[index]) : 0)
        }
        return head
    }
}
