package import StateEngine
package import StateModel

/// The past that a log has, for a reader on any thread.
///
/// It is valid as long as none of its segments is used again: its reader says so (``StateLog``'s owner
/// waits for readers before it drops segments).
package struct LogView: Sendable {
    struct Part: Sendable {
        let part: LogSnapshot.Part
        let index: SegmentIndex
    }

    let parts: [Part]
    /// From this revision on every state and every change is there.
    package let floor: Int64
    /// How long the daemon has run, over all of its starts, in milliseconds.
    package let age: Int64

    /// What is known of a segment.
    package struct Segment: Sendable {
        package let number: UInt64
        package let changeCount: Int
        /// How long the daemon had run when it ended, in milliseconds.
        package let endAge: Int64
    }

    /// Its segments, the oldest first; the last one is being written.
    package var segments: [Segment] {
        parts.map {
            Segment(
                number: $0.part.segment.header.number,
                changeCount: $0.index.changeCount,
                endAge: $0.index.age
            )
        }
    }

    /// Passes the changes of a segment in order of revision and ordinal.
    ///
    /// - Parameters:
    ///   - position: That of the segment among ``segments``.
    ///   - receive: Takes a change, whose bytes are borrowed.
    /// - Throws: As ``forEachChange(after:through:_:)``.
    package func forEachChange(
        inSegment position: Int,
        _ receive: (borrowing StoredChange) -> Void
    ) throws(StateError) {
        let part = parts[position]
        try part.forEachFrame(from: SegmentHeader.byteCount) { (frame) throws(LogDamage) in
            try CommitCoder.read(frame.contents, at: frame.time, comparingRows: false) {
                change,
                _ in
                receive(change)
            }
            return true
        }
    }

    /// Passes changes in order of revision and ordinal.
    ///
    /// - Parameters:
    ///   - place: Only changes after this one.
    ///   - revision: Only changes up to this revision.
    ///   - receive: Takes a change, whose bytes are borrowed; returns whether it takes more.
    /// - Returns: Whether all of them were passed.
    /// - Throws: ``StateError/Code/corrupt``, naming the place; ``StateError/Code/storage``.
    /// - Complexity: O(log *n*) to find the segment, up to 16 KiB to find the place in it, then O(*m*) in
    ///   the changes passed.
    package func forEachChange(
        after place: HistoryPlace,
        through revision: Int64,
        _ receive: (borrowing StoredChange, ChangeLink) -> Bool
    ) throws(StateError) -> Bool {
        var (isStopped, isBeyond) = (false, false)
        for part in parts where part.index.last >= place.revision && part.index.first > 0 {
            guard part.index.first <= revision, !isBeyond else { return true }
            let start = part.index.offset(of: place.revision)
            try part.forEachFrame(from: start) { (frame) throws(LogDamage) in
                try CommitCoder.read(frame.contents, at: frame.time) { change, link in
                    guard !isStopped, !isBeyond, change.place > place else { return }
                    isBeyond = change.revision > revision
                    if !isBeyond { isStopped = !receive(change, link) }
                }
                return !isStopped && !isBeyond
            }
            if isStopped { return false }
        }
        return true
    }

    /// The first revision that a segment has.
    package var firstRevision: Int64 {
        parts.first { $0.index.first > 0 }?.index.first ?? .max
    }

    /// The frames that were read last, for what is asked for next: that of a change, and that of one that
    /// carries another.
    package struct KnownFrames {
        fileprivate var own: KnownFrame?
        fileprivate var carrying: KnownFrame?

        package init() {}

        /// Whether a frame with a place is among them.
        package func have(_ place: HistoryPlace) -> Bool {
            own?.hasRange(of: place) ?? false || carrying?.hasRange(of: place) ?? false
        }
    }

    /// Passes the change at a place.
    ///
    /// - Parameters:
    ///   - place: The place of the change.
    ///   - successor: That of a change that superseded it, if one is known: it may carry the change, which
    ///     counts once its own segment is gone: before that, a rule has removed what is not there.
    ///   - known: The frames that were read last: the next change that is asked for may be in one.
    ///   - receive: Takes the change, whose bytes are borrowed.
    /// - Returns: False if it is not there any more.
    /// - Throws: As ``forEachChange(after:through:_:)``.
    /// - Complexity: O(*n*) in the bytes of the frame, or O(log *n*) in its changes if that was read last.
    package func withChange(
        at place: HistoryPlace,
        supersededBy successor: HistoryPlace?,
        remembering known: inout KnownFrames,
        _ receive: (borrowing StoredChange) -> Void
    ) throws(StateError) -> Bool {
        if try find(place, &known.own, { change, _ in receive(change) }) { return true }
        guard let successor, place.revision < firstRevision else { return false }
        var isCarried = false
        _ = try find(successor, &known.carrying) { change, link in
            guard let carried = link.carried, carried.place == place else { return }
            isCarried = true
            carried.withChange(of: change.key, receive)
        }
        return isCarried
    }

    private func find(
        _ place: HistoryPlace,
        _ known: inout KnownFrame?,
        _ receive: (borrowing StoredChange, ChangeLink) -> Void
    ) throws(StateError) -> Bool {
        if known?.hasRange(of: place) != true {
            guard let found = try frame(of: place) else { return false }
            known = found
        }
        return try known?.withChange(at: place, receive) ?? false
    }

    /// The frame that has a place, if that is still there.
    private func frame(of place: HistoryPlace) throws(StateError) -> KnownFrame? {
        for part in parts where part.index.last >= place.revision && part.index.first > 0 {
            guard part.index.first <= place.revision else { return nil }
            var found: KnownFrame?
            let start = part.index.offset(of: place.revision)
            try part.forEachFrame(from: start) { (frame) throws(LogDamage) in
                let spots = try CommitCoder.spots(in: frame.contents, at: frame.time)
                guard let last = spots.last, last.place >= place else { return true }
                found = KnownFrame(contents: Array(frame.contents), spots: spots)
                return false
            }
            if let found { return found }
        }
        return nil
    }
}

/// A frame whose changes are found without reading it again.
private struct KnownFrame {
    fileprivate let contents: [UInt8]
    fileprivate let spots: [CommitCoder.Spot]

    fileprivate func hasRange(of place: HistoryPlace) -> Bool {
        guard let first = spots.first, let last = spots.last else { return false }
        return first.place <= place && place <= last.place
    }

    fileprivate func withChange(
        at place: HistoryPlace,
        _ receive: (borrowing StoredChange, ChangeLink) -> Void
    ) throws(StateError) -> Bool {
        var (low, high) = (0, spots.count)
        while low < high {
            let middle = (low + high) / 2
            if spots[middle].place < place { low = middle + 1 } else { high = middle }
        }
        guard low < spots.count, spots[low].place == place else { return false }
        do throws(LogDamage) {
            try contents.withBytes { (bytes) throws(LogDamage) in
                let (change, link) = try CommitCoder.change(at: spots[low], of: bytes)
                receive(change, link)
            }
        } catch {
            throw StateError(.corrupt, "the log is damaged: the frame \(error.reason)")
        }
        return true
    }
}

extension LogView.Part {
    /// Calls `body` with frames of commits, until it returns false.
    fileprivate func forEachFrame(
        from offset: Int,
        _ body: (Frame.Found) throws(LogDamage) -> Bool
    ) throws(StateError) {
        guard offset < part.range.upperBound else { return }
        let rest = LogSnapshot.Part(
            segment: part.segment,
            range: offset..<part.range.upperBound
        )
        var window = LogWindow(rest, byteCount: 2 * SegmentIndex.markByteCount)
        var place = LogPlace(segment: part.segment.header.number, offset: offset)
        var goesOn = true
        while goesOn, place.offset < rest.range.upperBound {
            place.offset += try window.withFrame(at: place) { (frame) throws(LogDamage) in
                if frame.kind == .commits { goesOn = try body(frame) }
            }
        }
    }
}
