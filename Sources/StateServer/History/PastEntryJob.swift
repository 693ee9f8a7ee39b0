import StateEngine
import StateWire

/// STATE.GET … AT: walks back through the changes of one key to its state at a revision.
///
/// `@unchecked Sendable`: the history thread uses it between submission and finish, the loop thread
/// before and after.
final class PastEntryJob: ConnectionJob, @unchecked Sendable {
    let connection: Connection
    let control: JobControl
    private let key: [UInt8]
    private let revision: Int64
    private let view: Visibility
    /// As memory has it: the history need not have it any more.
    private let newest: PastChange?
    private var next: HistoryPlace?
    /// The place of the change that superseded ``next``.
    private var successor: HistoryPlace?
    /// Whether the reader may see the last change that was found; it must not notice others.
    private var isShown = true
    /// Whether the change that made the state at the revision is found.
    private var isFound = false
    /// Its version then; nil if it was absent.
    var version: PastVersion?

    /// - Parameters:
    ///   - key: The key.
    ///   - newest: The newest change of the key; nil if none is known.
    ///   - revision: The requested revision.
    ///   - connection: The connection that waits.
    ///   - view: The versions that it may see.
    init(
        of key: [UInt8],
        from newest: PastChange?,
        at revision: Int64,
        for connection: Connection,
        seeing view: Visibility
    ) {
        self.connection = connection
        control = JobControl(for: connection)
        self.view = view
        self.revision = revision
        self.key = key
        self.newest = newest
        next = newest?.place
    }

    var byteCount: Int { version?.value.count ?? 0 }

    func readSlice(of history: any HistoryReading) throws -> Bool {
        let budget = HistoryBudget(byteCount: .max)
        return try history.snapshot { compacted in
            guard revision >= compacted else {
                throw StateError.compacted(revision, oldest: compacted)
            }
            while let place = next {
                next = nil
                let isThere = try history.withChange(at: place, supersededBy: successor, note)
                if !isThere, let newest, newest.place == place {
                    key.withUnsafeBytes { newest.withChange(of: $0, note) }
                }
                successor = place
                // If compaction has removed it, it was a delete, unless a rule did not keep it; and memory
                // does not know what the newest change has superseded.
                if !isThere, isShown, !isFound {
                    try history.requireWhole(key, at: revision)
                }
                if next != nil, budget.isUsedUp { return false }
            }
            return true
        }
    }

    private func note(_ change: borrowing StoredChange) {
        isShown = view.mayReveal(.read, about: change)
        isFound = change.revision <= revision
        if isFound {
            version = isShown ? PastVersion(change) : nil
        } else {
            next = change.previousPlace
        }
    }

    func writeReply(_ context: inout CommandContext) {
        guard let version else {
            context.output.writeNull(context.version)
            return
        }
        version.value.withUnsafeBytes { value in
            context.output.writeEntry(
                version.fields,
                value,
                by: version.cause,
                context.core.isPersistent ? "synced" : "memory",
                context.version
            )
        }
    }
}
