import CLinux
import StateEngine
import StatePlatform
import StateSystem

/// The log of deferred changes: those that readers and writers have and the store does not, because
/// a rule has `durability: "interval"`.
///
/// Each batch is appended with one write and no sync, before anybody sees it: so the end of the process
/// loses nothing, and only a failure of the machine does. The next start stores what is here, if the
/// machine has not started anew since. If something could not be written, the header says so until
/// the store has it.
///
/// `<database>-late` has a ``DeferralLogHeader``, and batches (``DeferredBatch``). Each batch has the
/// checksum of the one before, and the first that of the header: so what an earlier round has left
/// behind the last one is not taken for a part of this one. Once the store has all of them, the next one
/// takes the place of the first; if others follow at once, these are moved there now and then.
///
/// Used by any thread, under its locks: the proof of `@unchecked Sendable`.
package final class DeferralLog: @unchecked Sendable {
    /// So much is not needed any more before it is written over, although something follows on it.
    private static let deadByteCount = 1 << 20
    /// The store gets a batch with more bytes of keys and values at once.
    private static let longestBatch = 256 << 20

    private let path: String
    private let boot: [UInt8]
    /// Its lock is held while the file is written, which may wait for the disk.
    private let file: StateLock<DeferralLogFile>
    /// What others may need meanwhile; its lock is taken after that of the file, or alone.
    private let state = StateLock(State())

    fileprivate struct Entry {
        var revision: Int64
        var byteCount: Int
        var checksum: UInt32
    }

    fileprivate struct State {
        /// What is not in the file yet.
        var waiting: [UInt8] = []
        /// The batches that the store does not have all of, their bytes, and those in front of them.
        var entries: [Entry] = []
        var byteCount = 0
        var deadByteCount = 0
        /// The checksum of what is before the first of them.
        var seed: UInt32 = 0
        /// The last revision that was added.
        var added: Int64 = 0
        /// Up to here, changes are deferred that are not here; 0: none.
        var lost: Int64 = 0
    }

    /// - Parameters:
    ///   - path: Of the file, which need not exist.
    ///   - boot: The identifier of the machine's start; at most 48 bytes.
    package init(path: String, boot: [UInt8]) {
        self.path = path
        self.boot = boot
        file = StateLock(DeferralLogFile(path: path, boot: boot))
    }

    deinit { file.withLock { $0.close() } }

    // MARK: Reading what an earlier process left

    /// The batches that the process of a generation has left, and whether these are all that it
    /// deferred.
    package struct Left {
        package fileprivate(set) var batches: [DeferredBatch] = []
        fileprivate(set) var isWhole = false

        /// Drops what the store has.
        ///
        /// - Returns: False if something between the store and the rest is missing; that has no
        ///   batches then.
        mutating func begin(after revision: Int64) -> Bool {
            batches.removeAll { $0.lastRevision <= revision }
            guard let first = batches.first, first.previousRevision > revision else { return true }
            self = Left()
            return false
        }
    }

    /// Reads the file; empty if it is of another generation, or of another start of the machine.
    package func left(by generation: UInt64?) -> Left {
        let file = (try? NamedFile.open(path, O_RDONLY | O_NOFOLLOW)) ?? -1
        guard file >= 0 else { return Left() }
        defer { close(file) }
        guard let generation, !boot.isEmpty,
            let bytes = readBytes(file, count: DeferralLogHeader.byteCount, at: 0),
            let header = DeferralLogHeader(bytes, of: generation, boot)
        else { return Left() }
        var left = Left(isWhole: header.isWhole)
        var (place, checksum) = (header.first.place, header.first.checksum)
        while let batch = DeferredBatch(in: file, at: place, after: checksum) {
            place += batch.bytes.count
            checksum = batch.checksum
            left.batches.append(batch)
        }
        return left
    }

    // MARK: Appending

    /// The store has everything that was ever deferred, and is of this generation now.
    func begin(_ generation: UInt64) {
        file.withLock { file in
            // On a full disk, the generation is that of the last process still.
            file.begin(generation)
            state.withLock { $0 = State(seed: file.seed) }
        }
    }

    /// Creates the file, and writes its header.
    func prepare() {
        file.withLock { file in
            file.open()
            file.say(isWhole: state.withLock { $0.lost == 0 })
        }
    }

    /// Takes a copy of a batch, for the next ``keep()``.
    ///
    /// - Parameters:
    ///   - batch: Its revisions are above all those here.
    ///   - revision: The store has everything up to this one.
    func add(_ batch: CommitBatch, storedThrough revision: Int64) {
        // Without an identifier nothing would be read back.
        guard !boot.isEmpty, let last = batch.storedRevision else { return }
        state.withLock { state in
            state.added = last
            guard state.lost == 0, batch.byteCount <= DeferralLog.longestBatch else {
                state.lost = last
                return
            }
            let start = state.waiting.count
            let before = state.entries.last.map { ($0.checksum, $0.revision) }
            let checksum = DeferredBatch.append(
                batch,
                after: before ?? (state.seed, revision),
                to: &state.waiting
            )
            let count = state.waiting.count - start
            state.byteCount += count
            state.entries.append(Entry(revision: last, byteCount: count, checksum: checksum))
        }
    }

    /// Writes what was added.
    ///
    /// - Returns: Whether all is here that the store lacks; else the header says that it is not.
    func keep() -> Bool {
        if boot.isEmpty { return true }
        return file.withLock { file in
            state.withLock { swap(&$0.waiting, &file.buffer) }
            if !file.buffer.isEmpty, !file.append() { state.withLock { $0.lost = $0.added } }
            file.buffer.removeAll(keepingCapacity: file.buffer.capacity <= 1 << 20)
            let isWhole = state.withLock { $0.lost == 0 }
            return file.say(isWhole: isWhole) && isWhole
        }
    }

    /// About how much is here, or is to be, that the store lacks.
    var unstoredByteCount: Int { state.withLock { $0.byteCount } }

    /// The store has everything up to a revision.
    func remove(through revision: Int64) {
        file.withLock { file in
            let isEmpty = state.withLock { state in
                if state.lost <= revision { state.lost = 0 }
                let isEmpty = state.entries.last?.revision ?? 0 <= revision
                if isEmpty {
                    state.empty(seed: file.seed)
                } else {
                    state.removeFirst(through: revision)
                }
                return isEmpty
            }
            // Without the state's lock: it may wait for the disk.
            if isEmpty { file.empty() }
            makeRoom(in: &file)
            file.say(isWhole: state.withLock { $0.lost == 0 })
        }
    }

    /// If nothing but what follows keeps the file from being emptied, that is moved to the front.
    private func makeRoom(in file: inout DeferralLogFile) {
        let (dead, seed, isWhole) = state.withLock { ($0.deadByteCount, $0.seed, $0.lost == 0) }
        let place = DeferralLogHeader.byteCount + dead
        guard isWhole, dead >= DeferralLog.deadByteCount, place < file.end, file.end - place <= dead
        else { return }
        if file.moveToFront(from: place, after: seed) { state.withLock { $0.deadByteCount = 0 } }
    }

    /// How much is here of what the store does not have.
    ///
    /// A part is worth nothing if the header does not say so: the next load would take it for all.
    var leftAtTheEnd: LeftDeferred {
        guard unstoredByteCount > 0 else { return .nothing }
        if keep() { return .all }
        return file.withLock { $0.saysPart } ? .part : .nothing
    }

    /// Removes the file.
    func end() { file.withLock { $0.remove() } }
}

extension DeferralLog.State {
    fileprivate mutating func empty(seed: UInt32) {
        waiting.removeAll(keepingCapacity: waiting.capacity <= 1 << 20)
        entries.removeAll(keepingCapacity: entries.capacity <= 4_096)
        (byteCount, deadByteCount, self.seed) = (0, 0, seed)
    }

    fileprivate mutating func removeFirst(through revision: Int64) {
        let count = entries.firstIndex { $0.revision > revision } ?? entries.count
        guard count > 0 else { return }
        let removedByteCount = entries[..<count].reduce(0) { $0 + $1.byteCount }
        byteCount -= removedByteCount
        deadByteCount += removedByteCount
        seed = entries[count - 1].checksum
        entries.removeFirst(count)
    }
}
