import StateSystem

/// A revision that is written ahead, above which none is told: so that revisions of changes that no storage keeps do not
/// repeat, however the process ends.
///
/// ``raise()`` is called by one thread at a time, which may wait for the disk: at a start before anything is told, later the commit
/// thread. ``status`` may be asked for from anywhere.
package final class RevisionReservation: Sendable {
    /// How far the reservation goes up at a time.
    package static let largestBlock: Int64 = 1 << 24
    /// The last revision there is.
    package static let largestRevision: Int64 = 1 << 53 - 1

    /// Where it is kept.
    package let path: String
    /// How far this one goes up at a time; at most ``largestBlock``.
    package let block: Int64
    /// Not below any revision that was told before: what the first of this life follows on.
    package let floor: Int64
    /// Called on the commit thread when it cannot be raised where it could before, and with nil when it can again.
    let onFailure: @Sendable (_ failure: String?) -> Void
    private let file: ReservedRevisionFile
    private let state: StateLock<Status>

    /// How far revisions may go, and what stands in the way of more.
    package struct Status: Equatable, Sendable {
        /// The reservation that is on stable storage.
        package var reserved: Int64
        /// Why it could not be raised the last time; nil where it could.
        package var failure: StateError?
    }

    /// Reads the reservation from the file at `path`, which need not be there yet, and changes nothing.
    ///
    /// - Throws: ``StateError/Code/corrupt``, where the file no longer says it; ``StateError/Code/storage``, where it cannot be read.
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
    /// - Parameter revision: The reservation goes a block above it at least.
    /// - Returns: The new reserved revision: revisions up to it may be told.
    /// - Throws: ``StateError/Code/readOnly``, naming the file and the reason; the reservation stays where it was, and the next
    ///   call tries again.
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

    /// In place where the file is as we left it; else it is made anew: after a failed write or sync nobody knows which of its
    /// bytes are on the disk, and a file that somebody removed or restored says nothing of this life.
    private func write(_ reserved: Int64, after last: Int64) throws(StateError) {
        let contents: ReservedRevisionFile.Contents?
        do throws(StateError) {
            contents = try file.read()
        } catch  where error.code == .corrupt {
            contents = nil
        }
        // Of two slots none is further above the other than what a torn one is taken for.
        let isNear = reserved - last <= RevisionReservation.largestBlock
        if isNear, let contents, contents.reserved == last, let slot = contents.nextSlot {
            try file.write(reserved, slot: slot)
        } else {
            try file.replace(reserved)
        }
    }
}
