import StateEngine
import StateWire

/// STATE.GET … AT: walks the changes of one key back to what it was at a revision.
///
/// Before it is submitted and after it is finished it belongs to the loop thread, else to the history thread: the proof of
/// `@unchecked Sendable`.
final class PastEntryJob: ConnectionJob, @unchecked Sendable {
    let connection: Connection
    let control: JobControl
    private let revision: Int64
    private let view: Visibility
    private var next: HistoryPlace?
    /// What it was; nil where it was absent.
    var version: PastVersion?

    /// - Parameters:
    ///   - place: The newest change of the key; nil where none is known.
    ///   - revision: What it was when is asked for.
    ///   - connection: Who asks.
    ///   - view: Which versions may be seen.
    init(
        from place: HistoryPlace?,
        at revision: Int64,
        for connection: Connection,
        seeing view: Visibility
    ) {
        self.connection = connection
        control = JobControl(for: connection)
        self.view = view
        self.revision = revision
        next = place
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
                // Where compaction has taken it away, it was a delete.
                _ = try history.withChange(at: place) { change in
                    if change.revision <= revision {
                        version = view.mayReveal(.read, about: change) ? PastVersion(change) : nil
                    } else {
                        next = change.previousPlace
                    }
                }
                if next != nil, budget.isUsedUp { return false }
            }
            return true
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
