import StateEngine
import StateLog
import StateModel

/// The newest changes of a stretch of the log, with the bytes that they borrow.
///
/// A key that changes often takes the room of one change: the next one is written over it where it
/// fits. So a stretch is as long as its keys take memory, and each is written to the database once.
struct SettledSlice: ~Copyable {
    private var changes = NewestChanges()
    private(set) var metadata: [String: String?] = [:]
    /// The last revision in it; 0 if it has no commits.
    private(set) var revision: Int64 = 0
    private(set) var end: LogPlace

    /// A stretch is at most so many times as long as the bytes that it takes.
    private static let repeatCount = 8

    /// Reads a stretch, until its changes take about so many bytes.
    init(_ stretch: LogSnapshot, byteCount: Int) throws(StateError) {
        end = stretch.start
        let changes = NewestChanges()
        var metadata: [String: String?] = [:]
        var (revision, readCount) = (0 as Int64, 0)
        defer { (self.changes, self.metadata) = (changes, metadata) }
        end = try stretch.read(
            while: {
                changes.byteCount < byteCount && readCount < SettledSlice.repeatCount * byteCount
            },
            { (frame, time) throws(LogDamage) in
                readCount += frame.count
                try CommitCoder.read(frame, at: time) { part in
                    switch part {
                    case .commit(let number, _, _): revision = max(revision, number)
                    case .change(let change, _): changes.add(change)
                    case .metadata(let name, let text): metadata[name] = text
                    }
                }
            }
        )
        self.revision = revision
    }

    /// The newest change of each key, in the order of keys; their bytes are those of the slice.
    borrowing func newest() -> [StoredChange] { changes.sorted() }
}

/// The newest change of each key, in memory of its own.
private final class NewestChanges {
    private struct Slot {
        var change: StoredChange
        /// The room for cause and value, behind the key.
        var room: UnsafeMutableRawBufferPointer
    }

    /// A key in the memory of its slot, or of who looks for it.
    private struct Name: Hashable {
        let key: Bytes

        static func == (one: Name, other: Name) -> Bool { one.key.isEqual(to: other.key) }
        func hash(into hasher: inout Hasher) { hasher.combine(bytes: key) }
    }

    private var slots: [Slot] = []
    private var places: [Name: Int] = [:]
    private var chunks: [UnsafeMutableRawBufferPointer] = []
    private var used = 0
    private static let chunkByteCount = 1 << 20
    /// About how much of it there is, besides the bytes of the changes.
    private static let slotByteCount = 200
    private(set) var byteCount = 0

    deinit { for chunk in chunks { chunk.deallocate() } }

    /// Takes a change that comes after all of the same key.
    func add(_ change: borrowing StoredChange) {
        let needed = change.cause.count + (change.value?.count ?? 0)
        if let place = places[Name(key: change.key)] {
            let key = slots[place].change.key
            if needed > slots[place].room.count { slots[place].room = allocate(needed) }
            slots[place].change = NewestChanges.copy(change, key: key, to: slots[place].room)
            return
        }
        let memory = allocate(change.key.count + needed)
        memory.copyMemory(from: change.key)
        let key = Bytes(rebasing: Bytes(memory)[..<change.key.count])
        let room = UnsafeMutableRawBufferPointer(rebasing: memory[change.key.count...])
        places[Name(key: key)] = slots.count
        slots.append(Slot(change: NewestChanges.copy(change, key: key, to: room), room: room))
        byteCount += NewestChanges.slotByteCount
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
        if let last = chunks.last, used + count <= last.count {
            defer { used += count }
            return UnsafeMutableRawBufferPointer(rebasing: last[used..<used + count])
        }
        let chunk = UnsafeMutableRawBufferPointer.allocate(
            byteCount: max(count, NewestChanges.chunkByteCount),
            alignment: 8
        )
        chunks.append(chunk)
        used = count
        return UnsafeMutableRawBufferPointer(rebasing: chunk[..<count])
    }

    // MARK: The order of keys

    /// The changes in the order of their keys.
    ///
    /// Most keys of a store begin alike, and differ in the eight bytes behind that: these are compared
    /// as a number.
    func sorted() -> [StoredChange] {
        let shared = sharedCount
        let order = slots.indices.map { (head: head(of: slots[$0].change.key, from: shared), $0) }
        return order.sorted { one, other in
            if one.head != other.head { return one.head < other.head }
            return slots[one.1].change.key.precedes(slots[other.1].change.key)
        }.map { slots[$0.1].change }
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
