/// A backing whose past can be read: its commits stay readable, from the compacted revision on.
public protocol HistoryBacking: Backing {
    /// Opens the history for reading beside the commits.
    ///
    /// May be called from any thread between load and close.
    ///
    /// - Returns: A reader for one thread at a time.
    /// - Throws: ``StateError`` if it cannot be opened.
    func openHistory() throws -> any HistoryReading
}

/// Reads what was committed, on a thread that may wait for the disk.
public protocol HistoryReading: AnyObject {
    /// Runs `body` on one snapshot of the store: everything that is durable, and nothing that is
    /// committed while it runs.
    ///
    /// It must end soon, within about 50 ms (`HistoryBudget`): while it runs, no file of the
    /// store's log can be used again.
    ///
    /// - Parameter body: Takes the compacted revision. From it on everything is there, except what
    ///   rules have removed (``floors()``); of earlier changes, those that are still live at it, and
    ///   perhaps more.
    /// - Returns: What `body` returns.
    /// - Throws: The error of `body`, and ``StateError`` if the store cannot be read.
    func snapshot<R>(_ body: (_ compacted: Int64) throws -> R) throws -> R

    /// What rules have removed besides; only inside of ``snapshot(_:)``.
    ///
    /// - Throws: ``StateError`` if the store cannot be read.
    func floors() throws -> HistoryFloors

    /// Passes changes in order of revision and ordinal; only inside of ``snapshot(_:)``.
    ///
    /// - Parameters:
    ///   - place: Only changes after this one.
    ///   - revision: Only changes up to this revision.
    ///   - receive: Takes a change, whose bytes are borrowed; returns whether it takes more. It
    ///     must not read itself.
    /// - Returns: Whether all of them were passed; if not, continue after the last one.
    /// - Throws: ``StateError`` if the store cannot be read, or a change is damaged.
    /// - Complexity: O(log² *n*) to find the place, then O(*m*) in the changes passed.
    func forEachChange(
        after place: HistoryPlace,
        through revision: Int64,
        _ receive: (borrowing StoredChange) -> Bool
    ) throws -> Bool

    /// Passes the change at a place; only inside of ``snapshot(_:)``.
    ///
    /// - Parameters:
    ///   - place: The place of the change.
    ///   - successor: That of the change that superseded it; nil if it is the newest of its key. A
    ///     store may have kept the change with that one.
    ///   - receive: Takes the change, whose bytes are borrowed.
    /// - Returns: False if there is none, because it was compacted.
    /// - Throws: ``StateError`` if the store cannot be read, or the change is damaged.
    /// - Complexity: O(log *n*) to O(log² *n*).
    func withChange(
        at place: HistoryPlace,
        supersededBy successor: HistoryPlace?,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> Bool
}

extension HistoryReading {
    /// The same for a change of `key`, of which memory knows the newest.
    package func withChange(
        at place: HistoryPlace,
        of key: [UInt8],
        newest: PastChange?,
        supersededBy successor: HistoryPlace?,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> Bool {
        if try withChange(at: place, supersededBy: successor, receive) { return true }
        guard let newest, newest.place == place else { return false }
        key.withUnsafeBytes { newest.withChange(of: $0, receive) }
        return true
    }
}

/// A history whose newest changes are in a log, and the current values up to a place of it in rows.
///
/// Only inside of ``HistoryReading/snapshot(_:)``.
package protocol SettledReading: HistoryReading {
    /// No row has a change after this revision.
    var lastRowRevision: Int64 { get }

    /// The rows have every change up to this revision, and the log every later one.
    var settledRevision: Int64 { get }

    /// Changes before this revision are gone, but for those that a later one carries.
    var firstRevision: Int64 { get }

    /// Whether ``HistoryReading/withChange(at:supersededBy:_:)`` has what it needs in memory.
    func hasRead(_ place: HistoryPlace, supersededBy successor: HistoryPlace?) -> Bool

    /// Passes the rows in the order of keys.
    ///
    /// - Parameters:
    ///   - key: Only keys after this one.
    ///   - receive: Takes a row, whose bytes are borrowed; returns whether it takes more.
    /// - Returns: Whether all of them were passed.
    /// - Throws: ``StateError`` if the store cannot be read, or a row is damaged.
    func forEachRow(
        after key: [UInt8]?,
        _ receive: (borrowing StoredChange) -> Bool
    ) throws -> Bool

    /// Passes changes as ``HistoryReading/forEachChange(after:through:_:)`` does, each with what it
    /// superseded if the store has that only there.
    func forEachCarryingChange(
        after place: HistoryPlace,
        through revision: Int64,
        _ receive: (_ change: borrowing StoredChange, _ carried: PastChange?) -> Bool
    ) throws -> Bool
}

/// The position of a change in the history.
public struct HistoryPlace: Hashable, Comparable, Sendable {
    /// The commit's revision.
    public var revision: Int64
    /// The change's position in the commit, from 0.
    public var ordinal: Int32

    /// Makes a place.
    public init(revision: Int64, ordinal: Int32) {
        self.revision = revision
        self.ordinal = ordinal
    }

    /// The place after all changes of a commit.
    public static func end(of revision: Int64) -> HistoryPlace {
        HistoryPlace(revision: revision, ordinal: .max)
    }

    /// In order of revision and ordinal.
    public static func < (left: HistoryPlace, right: HistoryPlace) -> Bool {
        (left.revision, left.ordinal) < (right.revision, right.ordinal)
    }
}

extension StoredChange {
    /// The place of the change.
    package var place: HistoryPlace { HistoryPlace(revision: revision, ordinal: ordinal) }

    /// The place of the change of the same key that this one supersedes; nil if there is none.
    package var previousPlace: HistoryPlace? {
        guard previousRevision > 0 else { return nil }
        return HistoryPlace(revision: previousRevision, ordinal: previousOrdinal)
    }
}

extension Record {
    /// The place of its change.
    var place: HistoryPlace { HistoryPlace(revision: revision, ordinal: ordinal) }
}

/// The limits of one read of the history, so that the store's log can be restarted and memory stays
/// bounded.
package struct HistoryBudget {
    /// How long one read may last.
    package static let time: Duration = .milliseconds(50)

    private let deadline = ContinuousClock.now + HistoryBudget.time
    private var byteCount: Int
    private var changeCount = 0

    /// Begins to count, up to this number of bytes.
    package init(byteCount: Int) { self.byteCount = byteCount }

    /// Counts one change of which `kept` bytes are kept; returns whether there may be more.
    package mutating func take(byteCount kept: Int) -> Bool {
        byteCount -= kept
        changeCount += 1
        guard byteCount > 0 else { return false }
        // Reading the clock costs as much as reading a row.
        return changeCount % 64 != 0 || ContinuousClock.now < deadline
    }

    /// Whether the time or the bytes are used up.
    package var isUsedUp: Bool { byteCount <= 0 || ContinuousClock.now >= deadline }
}
