import StateEngine
import StatePlatform
import StateSystem
import Synchronization

/// Hands rows from the thread that reads and checks them to the one that takes them over, so that
/// both work at the same time.
///
/// Four blocks of rows go round. One thread calls ``pass(_:)`` and ``end()``, the other one
/// ``forEach(lookingAhead:_:)``; a block belongs to one of them at a time. That is the proof of
/// `@unchecked Sendable`.
final class RowRelay: @unchecked Sendable {
    /// Some rows, with copies of their bytes.
    private final class Block {
        static let byteCount = 256 << 10
        private let bytes = UnsafeMutableRawPointer.allocate(byteCount: byteCount, alignment: 16)
        private var usedByteCount = 0
        private(set) var rows: [StoredChange] = []

        init() { rows.reserveCapacity(1_024) }

        deinit { bytes.deallocate() }

        /// Adds a copy of a row of `size` bytes, unless the block is full.
        func append(_ change: borrowing StoredChange, size: Int) -> Bool {
            guard usedByteCount + size <= Block.byteCount, rows.count < 1_024 else { return false }
            var row = copy change
            row.key = copied(change.key)
            row.value = change.value.map(copied)
            row.cause = copied(change.cause)
            rows.append(row)
            return true
        }

        private func copied(_ source: Bytes) -> Bytes {
            guard let start = source.baseAddress else { return source }
            let target = bytes + usedByteCount
            memcpy(target, start, source.count)
            usedByteCount += source.count
            return Bytes(start: target, count: source.count)
        }

        /// Takes the row itself as its only one.
        func refer(to change: borrowing StoredChange) { rows = [copy change] }

        func removeAll() {
            rows.removeAll(keepingCapacity: true)
            usedByteCount = 0
        }
    }

    private let blocks = (0..<4).map { _ in Block() }
    /// Counts blocks that may be filled.
    private let empty = BlockingSemaphore()
    /// Counts blocks that may be taken over, and the end.
    private let filled = BlockingSemaphore()
    /// How many blocks there are in all, once that is known.
    private let blockCount = Atomic(Int.max)
    /// The reader's: how many blocks it has filled, and the one that it is filling.
    private var filledCount = 0
    private var block: Block?

    init() { for _ in blocks { empty.signal() } }

    /// Passes a row on, whose bytes are copied; waits if all blocks are full.
    ///
    /// A row that is longer than a block is not copied: it waits until that is taken over, so that
    /// long values do not take their memory several times.
    func pass(_ change: borrowing StoredChange) {
        let size = change.key.count + (change.value?.count ?? 0) + change.cause.count
        guard size > Block.byteCount else {
            while !(block ?? nextBlock()).append(change, size: size) { passBlock() }
            return
        }
        if block != nil { passBlock() }
        nextBlock().refer(to: change)
        passBlock()
        for _ in blocks { empty.wait() }
        for _ in blocks { empty.signal() }
    }

    private func nextBlock() -> Block {
        empty.wait()
        let next = blocks[filledCount % blocks.count]
        next.removeAll()
        block = next
        return next
    }

    private func passBlock() {
        block = nil
        filledCount += 1
        filled.signal()
    }

    /// There are no more rows.
    func end() {
        if block != nil { passBlock() }
        blockCount.store(filledCount, ordering: .releasing)
        filled.signal()
    }

    /// Calls `receive` for each row until the end, and `lookAhead` with the next 16 before.
    func forEach(
        lookingAhead lookAhead: LookAhead,
        _ receive: (borrowing StoredChange) -> Void
    ) {
        for index in 0... {
            filled.wait()
            guard index < blockCount.load(ordering: .acquiring) else { return }
            let rows = blocks[index % blocks.count].rows
            for start in stride(from: 0, to: rows.count, by: 16) {
                let next = rows[start..<min(start + 16, rows.count)]
                lookAhead(next)
                for row in next { receive(row) }
            }
            empty.signal()
        }
    }
}
