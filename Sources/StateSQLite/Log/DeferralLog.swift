import CLinux
import StateEngine
import StatePlatform
import StateSystem

/// The log of deferred changes: those that readers and writers have and the store does not, because
/// a rule has `durability: "interval"`.
///
/// Each batch is appended with one write and no sync, as a rule before anybody sees it: so the end of
/// the process loses nothing, and only a failure of the machine does. The next start stores what is
/// here, if the machine has not started anew since. While the store is written for others, a batch
/// waits for that; meanwhile the header says that something is not here.
///
/// `<database>-late`, in the machine's byte order:
///
/// ```
/// 0   "statlate"    8  the generation of the store (``StoreStamp``)
/// 16  0 if something deferred is not here, else 1
/// 24  the identifier of the machine's start, padded with zeros (``BootIdentity``)
/// 88  CRC-32C of bytes 0 to 87
/// 96  the batches (``DeferredBatch``)
/// ```
///
/// Each batch has the checksum of the one before, and the first that of the header: so what an
/// earlier round has left behind the last one is not taken for a part of this one. Once the store
/// has all of them, the next one takes the place of the first.
///
/// Used by any thread, under its lock: the proof of `@unchecked Sendable`.
package final class DeferralLog: @unchecked Sendable {
    static let headerByteCount = 96
    private static let magic: UInt64 = 0x6574_616C_7461_7473
    /// A longer file is cut once the store has what is in it.
    private static let keptByteCount = 8 << 20
    /// The store gets a batch with more bytes of keys and values at once.
    private static let longestBatch = 256 << 20

    private let path: String
    private let boot: [UInt8]
    private let state = StateLock(State())

    private struct State {
        var descriptor: Int32 = -1
        /// Whether the header is there, and says that everything deferred is.
        var isWhole = false
        /// Up to here, changes that somebody may have seen will be appended or stored; 0: none.
        var announced: Int64 = 0
        /// Up to here, everything is here or stored.
        var settled: Int64 = 0
        /// Up to here, changes are deferred that are not here; 0: none.
        var lost: Int64 = 0
        var generation: UInt64 = 0
        /// The checksum of the header, which the first batch has.
        var seed: UInt32 = 0
        var end = DeferralLog.headerByteCount
        /// The checksum and the last revision of the last batch; nil if there is none.
        var last: (checksum: UInt32, revision: Int64)?
        var buffer: [UInt8] = []
    }

    /// - Parameters:
    ///   - path: Of the file, which need not exist.
    ///   - boot: The identifier of the machine's start; at most 64 bytes.
    package init(path: String, boot: [UInt8]) {
        self.path = path
        self.boot = Array(boot.prefix(64))
    }

    deinit {
        state.withLock { if $0.descriptor >= 0 { StatePlatform.close($0.descriptor) } }
    }

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
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else { return Left() }
        defer { close(file) }
        guard let generation, !boot.isEmpty,
            let header = readBytes(file, count: DeferralLog.headerByteCount, at: 0)
        else { return Left() }
        let expected = self.header(generation, isWhole: true)
        let isWhole = header == expected
        guard isWhole || header == self.header(generation, isWhole: false) else { return Left() }
        var left = Left(isWhole: isWhole)
        var place = DeferralLog.headerByteCount
        var checksum = DeferralLog.checksum(of: expected)
        while let batch = DeferredBatch(in: file, at: place, after: checksum) {
            place += batch.bytes.count
            checksum = batch.checksum
            left.batches.append(batch)
        }
        return left
    }

    private func header(_ generation: UInt64, isWhole: Bool) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(word: DeferralLog.magic)
        bytes.append(word: generation)
        bytes.append(word: isWhole ? 1 : 0 as UInt64)
        bytes += boot + [UInt8](repeating: 0, count: 64 - boot.count)
        bytes.append(word: bytes.withUnsafeBytes { clinux_crc32c(0, $0.baseAddress, $0.count) })
        bytes.append(word: 0 as UInt32)
        return bytes
    }

    private static func checksum(of header: [UInt8]) -> UInt32 {
        header.withUnsafeBytes { $0.load(fromByteOffset: 88, as: UInt32.self) }
    }

    // MARK: Appending

    /// The store has everything that was ever deferred, and is of this generation now.
    func begin(_ generation: UInt64) {
        // On a full disk, the generation is that of the last process still.
        unlink(path)
        state.withLock { state in
            state.generation = generation
            state.seed = DeferralLog.checksum(of: header(generation, isWhole: true))
            (state.isWhole, state.announced, state.settled, state.lost) = (false, 0, 0, 0)
            reset(&state)
        }
    }

    /// Creates the file, and writes its header.
    func prepare() {
        state.withLock { state in
            openFile(&state)
            writeHeader(&state)
        }
    }

    private func openFile(_ state: inout State) {
        guard state.descriptor < 0 else { return }
        state.descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    }

    /// Writes the header, if it is to say something else.
    private func writeHeader(_ state: inout State) {
        let isWhole = state.announced == 0 && state.lost == 0
        guard isWhole != state.isWhole, state.descriptor >= 0 else { return }
        let isWritten = write(header(state.generation, isWhole: isWhole), at: 0, state)
        // If it cannot be written, the disk takes nothing any more.
        state.isWhole = isWhole && isWritten
    }

    /// Changes up to a revision will be appended or stored, and somebody may see them before.
    func announce(through revision: Int64) {
        state.withLock { state in
            guard revision > state.settled else { return }
            state.announced = max(state.announced, revision)
            writeHeader(&state)
        }
    }

    /// Appends a batch, whose revisions are above all those here.
    ///
    /// - Parameters:
    ///   - batch: It has something for the store.
    ///   - revision: The store's last one.
    /// - Returns: Whether it is here; if not, nothing has changed.
    func append(_ batch: CommitBatch, storedThrough revision: Int64) -> Bool {
        // Without an identifier nothing would be read back.
        if boot.isEmpty { return true }
        guard batch.byteCount <= DeferralLog.longestBatch else { return false }
        return state.withLock { state in
            guard state.lost == 0 else { return false }
            openFile(&state)
            DeferredBatch.write(
                batch,
                after: state.last ?? (state.seed, revision),
                to: &state.buffer
            )
            guard write(state.buffer, at: state.end, state) else { return false }
            state.end += state.buffer.count
            state.last = (DeferredBatch.checksum(of: state.buffer), batch.storedRevision ?? 0)
            settle(batch.lastRevision, &state)
            writeHeader(&state)
            return true
        }
    }

    /// Changes up to a revision are deferred that are not here: if the process ends now, they are
    /// lost.
    func noteLoss(through revision: Int64) {
        state.withLock { state in
            state.lost = max(state.lost, revision)
            writeHeader(&state)
        }
    }

    /// The store has everything up to a revision.
    func remove(through revision: Int64) {
        state.withLock { state in
            settle(revision, &state)
            if state.lost <= revision { state.lost = 0 }
            if state.last?.revision ?? 0 <= revision { reset(&state) }
            writeHeader(&state)
        }
    }

    private func settle(_ revision: Int64, _ state: inout State) {
        state.settled = max(state.settled, revision)
        if state.announced <= revision { state.announced = 0 }
    }

    /// Whether something is here that the store does not have, and all of that is.
    var hasLeft: Bool { state.withLock { $0.last != nil && $0.isWhole } }

    /// Removes the file.
    func end() {
        state.withLock { state in
            if state.descriptor >= 0 { StatePlatform.close(state.descriptor) }
            state.descriptor = -1
            unlink(path)
        }
    }

    private func reset(_ state: inout State) {
        if state.end > DeferralLog.keptByteCount {
            ftruncate(state.descriptor, off_t(DeferralLog.headerByteCount))
        }
        (state.end, state.last) = (DeferralLog.headerByteCount, nil)
        if state.buffer.capacity > 1 << 20 { state.buffer = [] }
    }

    private func write(_ bytes: [UInt8], at place: Int, _ state: State) -> Bool {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                pwrite(
                    state.descriptor,
                    $0.baseAddress?.advanced(by: done),
                    $0.count - done,
                    off_t(place + done)
                )
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            done += count
        }
        return true
    }
}
