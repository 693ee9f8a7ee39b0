/// A backing that can be asked what was: its commits stay readable, from the compacted revision on.
public protocol HistoryBacking: Backing {
    /// Opens the history for reading beside the commits.
    ///
    /// May be called from any thread between load and close.
    ///
    /// - Returns: A way to read it, for one thread at a time.
    /// - Throws: ``StateError`` where it cannot be opened.
    func openHistory() throws -> any HistoryReading
}

/// Reads what was committed, on a thread that may wait for the disk.
public protocol HistoryReading: AnyObject {
    /// Runs `body` on one state of the store: everything that is durable, and nothing that comes while it runs.
    ///
    /// It must end soon, within about 50 ms (`HistoryBudget`): as long as it runs, the store's log cannot be begun anew.
    ///
    /// - Parameter body: Takes the compacted revision. From it on everything is there; of what came before, what is still live
    ///   at it, and perhaps more.
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws, and where the store cannot be read.
    func snapshot<R>(_ body: (_ compacted: Int64) throws -> R) throws -> R

    /// Hands out changes in order of revision and ordinal; only inside of ``snapshot(_:)``.
    ///
    /// - Parameters:
    ///   - place: Only changes after this one.
    ///   - revision: Only changes up to this revision.
    ///   - receive: Takes a change, whose bytes are borrowed, and says whether there shall be more. It may not read itself.
    /// - Returns: Whether all of them were handed out; else the last that was is where to go on.
    /// - Throws: ``StateError`` where the store cannot be read, or a change is damaged.
    /// - Complexity: O(log² *n*) to find the place, then O(*m*) in the changes handed out.
    func forEachChange(
        after place: HistoryPlace,
        through revision: Int64,
        _ receive: (borrowing StoredChange) -> Bool
    ) throws -> Bool

    /// Hands out the change at a place; only inside of ``snapshot(_:)``.
    ///
    /// - Returns: False where there is none, because it was compacted.
    /// - Throws: ``StateError`` where the store cannot be read, or the change is damaged.
    /// - Complexity: O(log *n*) to O(log² *n*).
    func withChange(
        at place: HistoryPlace,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> Bool
}

/// Where a change stands in the history.
public struct HistoryPlace: Hashable, Comparable, Sendable {
    /// The commit's revision.
    public var revision: Int64
    /// The change's place in the commit, from 0.
    public var ordinal: Int32

    /// Names a place.
    public init(revision: Int64, ordinal: Int32) {
        self.revision = revision
        self.ordinal = ordinal
    }

    /// Behind all changes of a commit.
    public static func end(of revision: Int64) -> HistoryPlace {
        HistoryPlace(revision: revision, ordinal: .max)
    }

    /// In order of revision and ordinal.
    public static func < (left: HistoryPlace, right: HistoryPlace) -> Bool {
        (left.revision, left.ordinal) < (right.revision, right.ordinal)
    }
}

extension StoredChange {
    /// Where it stands.
    package var place: HistoryPlace { HistoryPlace(revision: revision, ordinal: ordinal) }

    /// Where the change of the same key stands that this one supersedes; nil where there is none.
    package var previousPlace: HistoryPlace? {
        guard previousRevision > 0 else { return nil }
        return HistoryPlace(revision: previousRevision, ordinal: previousOrdinal)
    }
}

extension Record {
    /// Where its change stands.
    var place: HistoryPlace { HistoryPlace(revision: revision, ordinal: ordinal) }
}

/// How much one look at the history may take, so that the store's log can be begun anew and memory stays bounded.
package struct HistoryBudget {
    /// How long one look may last.
    package static let time: Duration = .milliseconds(50)

    private let deadline = ContinuousClock.now + HistoryBudget.time
    private var byteCount: Int
    private var changeCount = 0

    /// Begins to count, up to so many bytes.
    package init(byteCount: Int) { self.byteCount = byteCount }

    /// Counts one change of which so many bytes are kept, and says whether there may be more.
    package mutating func take(byteCount kept: Int) -> Bool {
        byteCount -= kept
        changeCount += 1
        guard byteCount > 0 else { return false }
        // To ask for the time costs as much as a row.
        return changeCount % 64 != 0 || ContinuousClock.now < deadline
    }

    /// Whether the time or the room is used up.
    package var isUsedUp: Bool { byteCount <= 0 || ContinuousClock.now >= deadline }
}
