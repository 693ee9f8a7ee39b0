import CLinux
import StateEngine
import StateWire

/// A listing that is made in slices, so that other clients need not wait.
///
/// At its end it shows the state at one moment, that of its last slice.
///
/// Rows are kept in key order. If a key before the position changes, it is visited again, and the
/// new row replaces the old one.
final class Listing: SlicedListing {
    /// The end offsets of a row and its key.
    private struct Row {
        var keyEnd: Int
        var rowEnd: Int
    }

    /// The new state of a key that changed after it was visited.
    private struct Patch {
        /// Nil if it is not listed any more.
        var row: [UInt8]?
        var isInRows: Bool
    }

    private let request: Request
    private let position = ScanPosition()
    private var rows = ByteBuffer(roomInFront: true)
    private var keys = ByteBuffer()
    private var index: [Row] = []
    private var patches: [[UInt8]: Patch] = [:]
    private var patchByteCount = 0
    /// The current number of counted entries.
    private(set) var count = 0
    private(set) var visitedCount = 0
    /// Whether every key was visited.
    private(set) var isWhole = false
    /// Whether there is more than fits.
    private var isCut = false
    private var isTracked = false
    /// Reports new durable commits, if durable entries are listed.
    private var subscription: CommitSubscription?

    init(_ request: Request) {
        self.request = request
        position.passed = request.after
    }

    var byteCount: Int {
        rows.footprint + keys.footprint + index.count * MemoryLayout<Row>.stride + patchByteCount
    }

    /// The last counted key; nil if none was counted.
    var lastKey: [UInt8]? { index.isEmpty ? nil : Array(key(at: index.count - 1)) }

    // MARK: Visiting

    /// Visits entries until `deadline`, on the monotonic clock in nanoseconds; `max` for all.
    ///
    /// - Returns: Whether all were visited; then the listing is the state at this moment.
    /// - Throws: ``StateError/Code/tooBig`` or ``StateError/Code/limit``, above the limit of a
    ///   reply or of a command.
    func advance(
        in core: KeyspaceCore,
        until deadline: Int64,
        _ receipt: inout Receipt
    ) throws(StateError) -> Bool {
        // Rows of earlier slices may not be durable yet, either.
        if !request.isOfWatch { core.observeAll(&receipt) }
        try lookAtChanged(core, &receipt)
        try checkLimits()
        while !isDone {
            try lookAtPiece(core, &receipt)
            if !isDone, deadline != .max, clinux_monotonic_nanoseconds() >= deadline {
                if request.isOneMoment, !isTracked { track(core) }
                return false
            }
        }
        return true
    }

    private func track(_ core: KeyspaceCore) {
        isTracked = true
        guard request.isOfWatch else { return core.entries.begin(position) }
        // No key is compared with a glob when it is written: what does not match is not listed anyway.
        let areas = request.patterns.patterns.map {
            $0.kind == .glob ? Pattern(beginningOf: $0) : $0
        }
        subscription = CommitSubscription(PatternSet(areas), in: core) { [position] _, changes, _ in
            for change in changes { position.note(change.key) }
        }
    }

    /// Releases what the keyspace retains for it.
    func end(in core: KeyspaceCore) {
        if isTracked, !request.isOfWatch { core.entries.end(position) }
        subscription?.end(in: core)
        subscription = nil
        isTracked = false
    }

    private var isDone: Bool { isWhole || isCut || count >= request.limit }

    private func lookAtPiece(
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        let visibility = core.visibility(of: request.subject)
        var piece = ListingPiece(rows.count)
        var cutAt: Record?
        func look(_ record: Record) -> Bool {
            if isShown(record, visibility) {
                guard !request.endsAtByteLimit || rows.count < request.byteLimit else {
                    isCut = true
                    return false
                }
                append(record, core)
            }
            guard piece.takes(rows.count), count < request.limit else {
                cutAt = record
                return false
            }
            return true
        }
        var budget = ListingPiece.comparedByteCount
        func walk(_ bound: Bytes?) -> [UInt8]? {
            request.isOfWatch
                ? core.forEachDurable(request.patterns, after: bound, comparing: budget, look)
                : core.forEach(request.patterns, after: bound, comparing: &budget, &receipt, look)
        }
        let comparedTo =
            if let bound = position.passed { bound.withUnsafeBytes { walk($0) } } else { walk(nil) }
        // Comparing keys that do not match also counts as visiting.
        let comparedCount =
            (ListingPiece.comparedByteCount - budget) / ListingPiece.byteCountOfComparison
        visitedCount += max(piece.entryCount, comparedCount)
        if let cutAt {
            position.passed = Array(cutAt.key)
        } else if let comparedTo {
            position.passed = comparedTo
        } else {
            isWhole = !isCut
        }
        try checkLimits()
    }

    private func checkLimits() throws(StateError) {
        guard rows.count + patchByteCount <= request.byteLimit || request.endsAtByteLimit else {
            throw replyTooBig(request.byteLimit, request.advice)
        }
        guard visitedCount <= request.visitLimit else { throw visitsTooMuch(request.visitLimit) }
    }

    private func isShown(_ record: Record, _ visibility: Visibility) -> Bool {
        visibility.mayReveal(request.isOfWatch ? .watch : .read, about: record)
    }

    private func append(_ record: Record, _ core: KeyspaceCore) {
        keys.append(record.key)
        if request.rowsOf?.matches(record.key) ?? true { write(record, to: &rows, core) }
        index.append(Row(keyEnd: keys.count, rowEnd: rows.count))
        count += 1
    }

    private func write(_ record: Record, to buffer: inout ByteBuffer, _ core: KeyspaceCore) {
        switch request.form {
        case .nothing: break
        case .key: buffer.writeBulk(record.key)
        case .row(let form): buffer.writeRow(record, form, in: core)
        }
    }

    // MARK: Changes meanwhile

    private func lookAtChanged(
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        guard position.hasChanged else { return }
        for key in position.takeChanged() { key.withUnsafeBytes { patch($0, core, &receipt) } }
    }

    private func patch(_ key: Bytes, _ core: KeyspaceCore, _ receipt: inout Receipt) {
        guard request.after.map({ $0.withUnsafeBytes { $0.precedes(key) } }) ?? true,
            request.patterns.matches(key)
        else { return }
        var patch = Patch(row: nil, isInRows: place(of: key).isThere)
        let record = request.isOfWatch ? core.readDurable(key) : core.read(key, &receipt)
        let visibility = core.visibility(of: request.subject)
        if let record, isShown(record, visibility) {
            var row = ByteBuffer()
            write(record, to: &row, core)
            patch.row = Array(row.bytes)
        }
        let former = patches.updateValue(patch, forKey: Array(key))
        patchByteCount += patch.row?.count ?? 0
        patchByteCount += former.map { -($0.row?.count ?? 0) } ?? key.count + 100
        let wasListed = former.map { $0.row != nil } ?? patch.isInRows
        count += (patch.row == nil ? 0 : 1) - (wasListed ? 1 : 0)
    }

    /// The place of a key among the rows, or that of the first one behind it.
    private func place(of key: Bytes) -> (place: Int, isThere: Bool) {
        var (low, high) = (0, index.count)
        while low < high {
            let middle = (low + high) / 2
            let order = self.key(at: middle).order(to: key)
            if order == 0 { return (middle, true) }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return (low, false)
    }

    private func key(at place: Int) -> Bytes {
        keys.bytes.slice(place == 0 ? 0 : index[place - 1].keyEnd, index[place].keyEnd)
    }

    private func row(at place: Int) -> Bytes {
        rows.bytes.slice(place == 0 ? 0 : index[place - 1].rowEnd, index[place].rowEnd)
    }

    // MARK: Result

    /// Removes the last entry, if there are no patches.
    func removeLast() {
        let place = index.count - 1
        isWhole = false
        count -= 1
        keys.truncate(to: place == 0 ? 0 : index[place - 1].keyEnd)
        rows.truncate(to: place == 0 ? 0 : index[place - 1].rowEnd)
        index.removeLast()
    }

    /// The number of entries, at most the requested limit.
    var listedCount: Int { min(count, request.limit) }

    /// Appends the rows to `output`, in key order; call this at the end.
    ///
    /// - Complexity: O(1) if nothing has changed meanwhile, and the output is nearly empty. Otherwise
    ///   the bytes are copied, and each key that has changed is looked up.
    func writeRows(to output: inout ByteBuffer) {
        guard !patches.isEmpty else { return output.append(taking: &rows) }
        guard count <= request.limit else { return withRows { _, row in output.append(row) } }
        var next = 0
        func copy(upTo place: Int) {
            guard next < place else { return }
            let start = next == 0 ? 0 : index[next - 1].rowEnd
            output.append(rows.bytes.slice(start, index[place - 1].rowEnd))
            next = place
        }
        for (key, patch) in patches.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            let (place, isThere) = key.withUnsafeBytes { self.place(of: $0) }
            copy(upTo: place)
            patch.row?.withUnsafeBytes { output.append($0) }
            if isThere { next = place + 1 }
        }
        copy(upTo: index.count)
    }

    /// The number of rows, if ``Request/rowsOf`` excludes some.
    var rowCount: Int {
        var count = 0
        for place in index.indices where !row(at: place).isEmpty { count += 1 }
        return count
    }

    /// Calls `body` with each key and its row, in key order.
    func withRows(_ body: (_ key: Bytes, _ row: Bytes) -> Void) {
        var changed = patches.filter { $0.value.row != nil }
            .sorted { $0.key.lexicographicallyPrecedes($1.key) }[...]
        var left = request.limit
        func visit(_ key: Bytes, _ row: Bytes) {
            guard left > 0 else { return }
            left -= 1
            body(key, row)
        }
        func deliverChanged() {
            let (key, patch) = changed.removeFirst()
            key.withUnsafeBytes { key in (patch.row ?? []).withUnsafeBytes { visit(key, $0) } }
        }
        for place in index.indices {
            let key = key(at: place)
            while let next = changed.first, next.key.withUnsafeBytes({ $0.precedes(key) }) {
                deliverChanged()
            }
            if patches.isEmpty || patches[Array(key)] == nil { visit(key, row(at: place)) }
            if let next = changed.first, next.key.withUnsafeBytes({ $0.isEqual(to: key) }) {
                deliverChanged()
            }
        }
        while !changed.isEmpty { deliverChanged() }
    }
}
