package import StateEngine
import StateModel

/// A segment that is written again without some of its changes, in another file, beside the log that is
/// in use.
///
/// The segment after it names its end as it was: the new file has that end in its header, and its own.
/// Of two files with the same segment a start takes the one that was written again more often.
package struct SegmentRewrite: Sendable {
    let files: any LogFiles
    let name: String
    let segment: LogScan.Segment
    let end: Int
    let index: SegmentIndex
    /// The number of the segment after it.
    let next: UInt64

    /// A file that has the segment.
    package struct Written: Sendable {
        let segment: LogScan.Segment
        let index: SegmentIndex
    }

    /// Writes the file, which is durable when this returns, with its name: from then on a start takes it.
    ///
    /// Everything in the segment must be elsewhere, durably; and that nobody may ask for what is
    /// dropped, too.
    ///
    /// - Parameter dropped: Places of changes of the segment, in order.
    /// - Returns: The file.
    /// - Throws: ``StateError/Code/corrupt`` if the segment cannot be read;
    ///   ``StateError/Code/noSpace`` or ``StateError/Code/storage``: the segment is as it was.
    /// - Complexity: O(*n*) in the bytes of the segment, which are in memory meanwhile.
    package func write(without dropped: [HistoryPlace]) throws(StateError) -> Written {
        var frames = try keptFrames(dropped[...])
        var header = segment.header
        header.seed = .random(in: 1...UInt64.max)
        if header.rewriteCount == 0 { header.originalEnd = end }
        header.rewriteCount += 1
        var index = SegmentIndex()
        var offset = SegmentHeader.byteCount
        for frame in frames {
            if frame.kind == .commits { index.note(frame.commits, at: offset) }
            offset += frame.byteCount
        }
        index.keepRange(of: self.index)
        header.rewrittenEnd = offset
        let closing = CodedCommits(index.coded(next: next))
        frames.append(Frame(kind: .closing, durable: .none, time: 0, commits: closing))
        let byteCount = offset + (frames.last?.byteCount ?? 0)
        do throws(LogFileFailure) {
            let file = try StateLog.write(header, byteCount, frames, files, named: name)
            let name = name + LogScan.suffix
            return Written(
                segment: LogScan.Segment(name: name, file: file, header: header),
                index: index
            )
        } catch {
            // The segment is there under its former name.
            StateLog.remove(name, from: files)
            throw StateError(
                error.isNoSpace ? .noSpace : .storage,
                "a segment of the log cannot be written again: \(error.sentence)"
            )
        }
    }

    private func keptFrames(_ dropped: ArraySlice<HistoryPlace>) throws(StateError) -> [Frame] {
        var rest = dropped
        var frames: [Frame] = []
        let part = LogSnapshot.Part(segment: segment, range: SegmentHeader.byteCount..<end)
        _ = try LogSnapshot(start: .none, end: .none, parts: [part])
            .forEachFrame { (frame, _) throws(LogDamage) in
                if frame.kind == .life {
                    // What distinguishes the store from its copies.
                    let life = CodedCommits(Array(frame.contents))
                    frames.append(
                        Frame(kind: .life, durable: .none, time: frame.time, commits: life)
                    )
                }
                guard frame.kind == .commits else { return }
                let commits = try SegmentRewrite.commits(of: frame, without: &rest)
                guard commits.changeCount > 0 else { return }
                frames.append(
                    Frame(kind: .commits, durable: .none, time: frame.time, commits: commits)
                )
            }
        return frames
    }

    /// Metadata is left out: only its newest text counts, which is elsewhere.
    private static func commits(
        of frame: Frame.Found,
        without dropped: inout ArraySlice<HistoryPlace>
    ) throws(LogDamage) -> CodedCommits {
        var coder = CommitCoder(at: frame.time)
        var commit: (revision: Int64, time: Int64, attributes: [CommitAttribute])?
        var cause: [UInt8] = []
        try CommitCoder.read(frame.contents, at: frame.time) { change, link in
            while let next = dropped.first, next < change.place { dropped.removeFirst() }
            guard dropped.first != change.place else { return }
            // A commit of which nothing is kept is not begun.
            if let begun = commit {
                let (revision, time) = (begun.revision, begun.time)
                coder.begin(revision, at: time, cause: change.cause, begun.attributes)
                (commit, cause) = (nil, Array(change.cause))
            }
            cause.withUnsafeBytes { coder.append(change, link, cause: $0) }
        } commit: { revision, time, attributes in
            commit = (revision, time, attributes)
        }
        return coder.commits
    }
}
