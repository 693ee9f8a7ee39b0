import StateModel

/// The contents of a frame of commits, and what an index knows of them.
package struct CodedCommits: Hashable, Sendable {
    package var bytes: [UInt8]
    /// The revisions of its first and last commit; 0 if it has none.
    package var (first, last): (Int64, Int64) = (0, 0)
    package var changeCount = 0
    /// How many bytes of earlier versions its changes carry.
    package var carriedByteCount = 0

    package init(_ bytes: [UInt8]) { self.bytes = bytes }
}

/// What a segment has, so that a change is found without reading all of it.
///
/// It is in the closing frame:
///
/// ```
/// number of the next segment; first and last revision; changes; bytes of frames of commits;
/// milliseconds that the daemon had run; marks, after their number: revision and offset, each less
/// that of the mark before
/// ```
struct SegmentIndex: Hashable, Sendable {
    /// A place where a frame of commits begins, and the revision of its first commit.
    struct Mark: Hashable, Sendable {
        var revision: Int64
        var offset: Int
    }

    /// A mark for so many bytes of frames.
    static let markByteCount = 16 << 10

    private(set) var first: Int64 = 0
    private(set) var last: Int64 = 0
    private(set) var changeCount = 0
    private(set) var byteCount = 0
    private(set) var marks: [Mark] = []
    /// How long the daemon had run when the segment ended, over all of its starts, in milliseconds; 0 if
    /// nobody knows.
    var age: Int64 = 0

    init() {}

    mutating func note(_ contents: CodedCommits, at offset: Int) {
        note(contents, contents.bytes.count, at: offset)
    }

    /// The same of a frame that was read.
    ///
    /// - Throws: ``LogDamage``, as ``CommitCoder/read(_:at:comparingRows:change:commit:metadata:)``.
    mutating func note(_ frame: Frame.Found, at offset: Int) throws(LogDamage) {
        guard frame.kind == .commits else { return }
        note(try CodedCommits(summing: frame), frame.contents.count, at: offset)
    }

    private mutating func note(_ contents: CodedCommits, _ byteCount: Int, at offset: Int) {
        self.byteCount += byteCount
        changeCount += contents.changeCount
        guard contents.last > 0 else { return }
        if first == 0 { first = contents.first }
        last = max(last, contents.last)
        if let mark = marks.last, offset - mark.offset < SegmentIndex.markByteCount { return }
        marks.append(Mark(revision: contents.first, offset: offset))
    }

    /// It is that of a segment that was written again, without some of its changes: revisions and age
    /// stay.
    mutating func keepRange(of original: SegmentIndex) {
        (first, last, age) = (original.first, original.last, original.age)
    }

    /// What is behind `end` is in another segment now.
    mutating func cut(at end: Int) { marks.removeAll { $0.offset >= end } }

    /// The last place from which reading finds all changes from `revision` on.
    func offset(of revision: Int64) -> Int {
        // The frame of a mark may have changes of the revision before it, too.
        let index = marks.firstIndex { $0.revision >= revision } ?? marks.count
        return index > 0 ? marks[index - 1].offset : SegmentHeader.byteCount
    }

    /// Bytes that a closing frame takes at most after one more frame.
    var closingByteCount: Int { Frame.byteCount(ofContents: 80 + (marks.count + 1) * 20) }

    func coded(next: UInt64) -> [UInt8] {
        var coded = LogWriterBytes()
        coded.append(next)
        coded.append(signed: first)
        coded.append(signed: last)
        coded.append(changeCount)
        coded.append(byteCount)
        coded.append(signed: age)
        coded.append(marks.count)
        var before = Mark(revision: 0, offset: 0)
        for mark in marks {
            coded.append(signed: mark.revision &- before.revision)
            coded.append(mark.offset - before.offset)
            before = mark
        }
        return coded.bytes
    }

    init(reading contents: Bytes) throws(LogDamage) {
        var reader = LogReaderBytes(contents)
        _ = try reader.number()
        first = try reader.signed()
        last = try reader.signed()
        changeCount = Int(try reader.positive())
        byteCount = Int(try reader.positive())
        age = try reader.signed()
        var mark = Mark(revision: 0, offset: 0)
        for _ in 0..<(try reader.count()) {
            mark.revision &+= try reader.signed()
            mark.offset &+= Int(try reader.positive())
            marks.append(mark)
        }
    }
}
