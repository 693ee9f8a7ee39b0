import StateSystem

/// A revision that is written ahead; no revision above it is published.
///
/// So revisions of changes that no storage keeps do not repeat, however the process ends.
///
/// One thread at a time calls ``raise(above:)``, which may wait for the disk: at the start before
/// anything is published, later the commit thread; and ``lower(to:)``, once that thread has ended.
/// ``status`` may be read from anywhere.
package final class RevisionReservation: Sendable {
    /// The largest step by which the reservation is raised.
    package static let largestBlock: Int64 = 1 << 24
    /// The largest revision.
    package static let largestRevision: Int64 = 1 << 53 - 1

    /// The path of its file.
    package let path: String
    /// The step by which this one is raised; at most ``largestBlock``.
    package let block: Int64
    /// Not below any revision that was published before; revisions of this process begin above it.
    package let floor: Int64
    /// Called on the commit thread when raising begins to fail, and with nil when it succeeds
    /// again.
    let onFailure: @Sendable (_ failure: String?) -> Void
    private let file: ReservedRevisionFile
    private let state: StateLock<Status>

    /// How far revisions may go, and why not further.
    package struct Status: Equatable, Sendable {
        /// The reservation that is on stable storage.
        package var reserved: Int64
        /// Why the last raise failed; nil if it succeeded.
        package var failure: StateError?
    }

    /// Reads the reservation from the file at `path`, which may be missing, and changes nothing.
    ///
    /// - Throws: ``StateError/Code/corrupt`` if the file is damaged; ``StateError/Code/storage`` if
    ///   it cannot be read.
    package init(
        path: String,
        block: Int64 = largestBlock,
        onFailure: @escaping @Sendable (_ failure: String?) -> Void = { _ in }
    ) throws(StateError) {
        precondition((1...RevisionReservation.largestBlock).contains(block), "a block of \(block)")
        self.path = path
        self.block = block
        self.onFailure = onFailure
        file = ReservedRevisionFile(path: path)
        floor = try file.read()?.reserved ?? 0
        state = StateLock(Status(reserved: floor))
    }

    /// The reserved revision, and the last failure.
    package var status: Status { state.withLock { $0 } }

    /// Raises the reservation by a block, and syncs it.
    ///
    /// - Parameter revision: The reservation is raised to a block above it, at least.
    /// - Returns: The new reserved revision: revisions up to it may be published.
    /// - Throws: ``StateError/Code/readOnly``, naming the file and the reason; the reservation does
    ///   not change, and the next call tries again.
    /// - Complexity: one read, one write and one sync of 4 KiB.
    @discardableResult
    package func raise(above revision: Int64 = 0) throws(StateError) -> Int64 {
        let last = status.reserved
        do throws(StateError) {
            let next = max(last, revision) + block
            guard next <= RevisionReservation.largestRevision else {
                throw StateError(.storage, "\(path): revisions end at 2^53")
            }
            try write(next, after: last)
            state.withLock { $0 = Status(reserved: next) }
            return next
        } catch {
            let failure = StateError(
                .readOnly,
                "the reserved revision cannot be raised above \(last): \(error.message)"
            )
            state.withLock { $0.failure = failure }
            throw failure
        }
    }

    /// Gives back the reserved revisions above `revision`, and syncs that: the next process goes on
    /// there, not after the whole block.
    ///
    /// Nothing above `revision` was published, and nothing is published any more. The caller still
    /// owns the directory. A file that this process did not leave so is not touched.
    ///
    /// - Throws: ``StateError/Code/storage``, naming the file: the next process goes on at
    ///   `revision`, or after the block.
    /// - Complexity: one read, one write and two syncs of 4 KiB.
    package func lower(to revision: Int64) throws(StateError) {
        let last = status.reserved
        guard revision < last, try file.read()?.reserved == last else { return }
        // A slot that is damaged later counts as a block above the other: both must be low.
        try file.replace(revision)
        state.withLock { $0.reserved = revision }
    }

    /// Writes in place if the file is as this process left it; otherwise replaces it.
    ///
    /// After a failed write or sync nobody knows which of its bytes are on the disk, and a file
    /// that somebody removed or restored has nothing of this process.
    private func write(_ reserved: Int64, after last: Int64) throws(StateError) {
        let contents: ReservedRevisionFile.Contents?
        do throws(StateError) {
            contents = try file.read()
        } catch  where error.code == .corrupt {
            contents = nil
        }
        // The two slots must not be further apart than the block that is assumed for a torn slot.
        let isNear = reserved - last <= RevisionReservation.largestBlock
        if isNear, let contents, contents.reserved == last, let slot = contents.nextSlot {
            try file.write(reserved, slot: slot)
        } else {
            try file.replace(reserved)
        }
    }
}
