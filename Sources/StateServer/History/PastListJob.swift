import CLinux
import StateEngine
import StateWire

/// STATE.LIST … AT: the history thread reads the changes since, then the loop lists in slices.
///
/// `@unchecked Sendable`: the history thread uses it between submission and finish, the loop thread
/// before and after.
final class PastListJob: ConnectionJob, @unchecked Sendable {
    let connection: Connection
    let control: JobControl
    private let past: PastState
    private let form: Command.ListForm
    private let listings: Listings

    init(
        _ past: PastState,
        _ form: Command.ListForm,
        for connection: Connection,
        _ listings: Listings
    ) {
        self.connection = connection
        control = JobControl(for: connection)
        self.past = past
        self.form = form
        self.listings = listings
    }

    var byteCount: Int { past.readByteCount }

    var meanwhileByteCount: Int { past.meanwhileByteCount }

    func readSlice(of history: any HistoryReading) throws -> Bool {
        try past.readSlice(of: history)
    }

    func release(_ core: KeyspaceCore) { past.endTracking(in: core) }

    func writeReply(_ context: inout CommandContext) throws(StateError) {
        try listings.list(PastListing(past, form), &context) { listing, context in
            if listing.form == .count {
                context.output.writeInteger(Int64(listing.count))
            } else {
                context.output.writeArray(listing.count)
                listing.writeRows(to: &context.output)
            }
        }
    }
}

/// Lists the state at a revision, after the changes since were read from the history.
final class PastListing: SlicedListing {
    let form: Command.ListForm
    private var rows = ByteBuffer(roomInFront: true)
    private(set) var count = 0
    private let past: PastState
    /// The last listed key.
    private var passed: [UInt8]?

    init(_ past: PastState, _ form: Command.ListForm) {
        self.past = past
        self.form = form
    }

    /// Appends the rows to `output`; call this at the end.
    func writeRows(to output: inout ByteBuffer) { output.append(taking: &rows) }

    var byteCount: Int { rows.footprint + past.readByteCount + past.meanwhileByteCount }

    func end(in core: KeyspaceCore) { past.endTracking(in: core) }

    func advance(
        in core: KeyspaceCore,
        until deadline: Int64,
        _ receipt: inout Receipt
    ) throws(StateError) -> Bool {
        let request = past.request
        repeat {
            guard count < request.limit else { return true }
            var piece = ListingPiece(rows.count)
            passed = try past.forEach(
                in: core,
                after: passed,
                comparing: ListingPiece.comparedByteCount
            ) { key, version in
                count += 1
                if form != .count { write(key, version, core) }
                return piece.takes(rows.count) && count < request.limit
            }
            guard rows.count <= request.byteLimit else {
                throw replyTooBig(request.byteLimit, "\(request.advice)")
            }
            guard passed != nil else { return true }
        } while deadline == .max || clinux_monotonic_nanoseconds() < deadline
        return count >= request.limit
    }

    private func write(_ key: Bytes, _ version: PastState.Version, _ core: KeyspaceCore) {
        switch version {
        case .present(let record):
            rows.writeRow(record, form, in: core)
        case .past(let version):
            version.value.withUnsafeBytes { value in
                rows.writeRow(
                    key,
                    value,
                    version.fields,
                    by: version.cause,
                    form,
                    form == .long ? EntryLocation(of: key, in: core) : EntryLocation()
                )
            }
        }
    }
}
