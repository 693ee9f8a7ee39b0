package import StateModel

/// The segments of a log as its directory has them: which count, and in what order.
///
/// Nothing is changed by reading them.
struct LogScan {
    struct Segment: Sendable {
        let name: String
        let file: any LogFile
        let header: SegmentHeader

        /// Where its frames begin.
        var start: LogPlace {
            LogPlace(segment: header.number, offset: SegmentHeader.byteCount)
        }

        /// Whether it was written again: then the next one names another end and checksum.
        var isRewritten: Bool { header.rewriteCount > 0 }

        /// Where it ends if another follows: as that one says, or as it says itself if it was written
        /// again.
        ///
        /// - Throws: ``StateError/Code/corrupt`` if the other one follows another end.
        func end(before next: SegmentHeader) throws(StateError) -> Int {
            guard isRewritten else { return next.predecessor.offset }
            guard next.predecessor.offset == header.originalEnd else {
                throw StateError(
                    .corrupt,
                    "segment \(next.number) of the log follows another one than \(name); stated --salvage "
                        + "reads what is left of a log"
                )
            }
            return header.rewrittenEnd
        }
    }

    /// Those that count, the oldest first.
    private(set) var segments: [Segment] = []
    /// Prepared files that belong to no segment yet.
    private(set) var spares: [Segment] = []
    /// Segments that a later one has made void, with all that they contain.
    private(set) var void: [Segment] = []
    /// What a crash left of a file that was being made.
    private(set) var unfinished: [String] = []
    /// Above all numbers that segments ever had.
    private(set) var nextNumber: UInt64 = 1
    /// Above all numbers in the names of files.
    private(set) var nextSlot = 1
    private let start: LogStart?
    /// Whether frames before the start are passed on, too.
    var includesAll = false

    static let suffix = ".log"
    static let unfinishedSuffix = ".new"

    /// Finds the segments that count, from where the readers of the log are; nil if all are needed.
    ///
    /// - Throws: ``StateError/Code/corrupt``, naming the file; ``StateError/Code/newerFormat``;
    ///   ``StateError/Code/storage``.
    init(_ files: any LogFiles, from start: LogStart? = nil) throws(StateError) {
        self.start = start
        var found: [Segment] = []
        for name in try LogScan.reading({ () throws(LogFileFailure) in try files.names() }).sorted()
        {
            let slot = Int(name.prefix { $0 != "." }) ?? 0
            if slot < Int.max / 2 { nextSlot = max(nextSlot, slot + 1) }
            if name.hasSuffix(LogScan.unfinishedSuffix) { unfinished.append(name) }
            guard name.hasSuffix(LogScan.suffix) else { continue }
            let segment = try LogScan.open(name, files)
            if segment.header.number == 0 { spares.append(segment) } else { found.append(segment) }
        }
        try order(found)
    }

    static func reading<Value>(
        _ body: () throws(LogFileFailure) -> Value
    ) throws(StateError) -> Value {
        do throws(LogFileFailure) { return try body() } catch {
            throw StateError(.storage, "the log cannot be read: \(error.sentence)")
        }
    }

    static func open(_ name: String, _ files: any LogFiles) throws(StateError) -> Segment {
        let file = try reading { () throws(LogFileFailure) in try files.open(name) }
        var (damage, failure): (LogDamage?, StateError?)
        for copy in 0..<2 {
            let place = copy * SegmentHeader.blockByteCount
            let block: [UInt8]
            do throws(StateError) {
                block = try contents(of: file, place..<place + SegmentHeader.blockByteCount)
            } catch {
                failure = error
                continue
            }
            do throws(LogDamage) {
                let header = try block.withBytes { (block) throws(LogDamage) in
                    try SegmentHeader(reading: block)
                }
                guard header.oldestReader <= SegmentHeader.format else {
                    throw LogDamage("")
                }
                return Segment(name: name, file: file, header: header)
            } catch {
                if error.reason.isEmpty {
                    throw StateError(
                        .newerFormat,
                        "\(name) of the log needs a newer program: this one reads format "
                            + "\(SegmentHeader.format)"
                    )
                }
                damage = error
            }
        }
        if let failure { throw failure }
        throw StateError(
            .corrupt,
            "\(name) \(damage?.reason ?? "cannot be read"), in both copies; stated --salvage reads "
                + "what is left of a log"
        )
    }

    /// The bytes of a file, as many as there are.
    static func contents(of file: any LogFile, _ range: Range<Int>) throws(StateError) -> [UInt8] {
        var bytes: [UInt8] = []
        try read(file, range, into: &bytes)
        return bytes
    }

    /// Replaces `bytes` by those of a file, as many as there are.
    static func read(
        _ file: any LogFile,
        _ range: Range<Int>,
        into bytes: inout [UInt8]
    ) throws(StateError) {
        if bytes.count < range.count {
            bytes = [UInt8](repeating: 0, count: range.count)
        }
        var failure: LogFileFailure?
        let count = bytes.withUnsafeMutableBytes { target -> Int in
            do throws(LogFileFailure) {
                let part = UnsafeMutableRawBufferPointer(rebasing: target[..<range.count])
                return try file.read(part, at: range.lowerBound)
            } catch {
                failure = error
                return 0
            }
        }
        bytes.removeLast(bytes.count - count)
        try reading { () throws(LogFileFailure) in if let failure { throw failure } }
    }

    // MARK: Which of them count

    /// Finds the chain: of segments that name the same predecessor, the one with the highest number
    /// counts; the others are void, and so is what follows them.
    ///
    /// The chain begins with the oldest segment that was not dropped.
    private mutating func order(_ found: [Segment]) throws(StateError) {
        nextNumber = (found.map(\.header.number).max() ?? 0) + 1
        var byNumber: [UInt64: Segment] = [:]
        var replaced: [Segment] = []
        for segment in found.sorted(by: { $0.header.rewriteCount < $1.header.rewriteCount }) {
            if let older = byNumber.updateValue(segment, forKey: segment.header.number) {
                guard older.header.rewriteCount < segment.header.rewriteCount else {
                    throw StateError(.corrupt, "the log has two segments of the same number")
                }
                replaced.append(older)
            }
            guard segment.header.epoch == start?.epoch ?? found[0].header.epoch else {
                throw StateError(
                    .corrupt,
                    "\(segment.name) of the log belongs to another store than "
                        + "\(start == nil ? found[0].name : "the database")"
                )
            }
        }
        var successors: [UInt64: Segment] = [:]
        for segment in byNumber.values.sorted(by: { $0.header.number < $1.header.number }) {
            successors[segment.header.predecessor.segment] = segment
        }
        segments = try before(byNumber)
        var last = segments.last?.header.number ?? 0
        while let next = successors[last] {
            segments.append(next)
            last = next.header.number
        }
        try takeVoid(byNumber)
        void += replaced
    }

    /// The segment where the reader is, and those before it that are there still.
    private func before(_ byNumber: [UInt64: Segment]) throws(StateError) -> [Segment] {
        guard let start, start.place.segment > 0 else { return [] }
        guard var segment = byNumber[start.place.segment] else {
            throw StateError(
                .corrupt,
                "the log ends before \(start.place), up to which the database has all of it: put the "
                    + "segment back that is missing, or use stated --salvage"
            )
        }
        var chain = [segment]
        while let older = byNumber[segment.header.predecessor.segment] {
            chain.append(older)
            segment = older
        }
        return chain.reversed()
    }

    private mutating func takeVoid(_ byNumber: [UInt64: Segment]) throws(StateError) {
        let counted = Set(segments.map(\.header.number))
        let oldest = segments.first?.header.number ?? 0
        void = byNumber.values.filter { !counted.contains($0.header.number) }
        // What follows a void segment is void, and so is what followed a dropped one; what follows
        // nothing else lacks its predecessor.
        for segment in void {
            let predecessor = segment.header.predecessor.segment
            guard predecessor != 0, byNumber[predecessor] == nil,
                start == nil || predecessor >= oldest
            else { continue }
            throw StateError(
                .corrupt,
                "segment \(predecessor) of the log is missing: \(segment.name) "
                    + "follows it; put it back, or use stated --salvage"
            )
        }
    }
}

extension LogScan {
    /// A frame of the last segment, for those that have to write it again.
    struct Kept {
        var offset: Int
        var before: UInt32
        var frame: Frame
    }

    /// Where a log ends.
    struct End {
        var place: LogPlace
        /// The checksum of the last frame, or of the header.
        var checksum: UInt32
        /// Up to where the log is certainly durable.
        var durable: LogPlace
        /// What the last segment has.
        var index = SegmentIndex()
        /// The frames of the last segment that are not certainly durable, and those that share a block
        /// with one of them.
        var frames: [Kept] = []
        /// The bytes of its last block before the end.
        var block: [UInt8] = []
        /// What distinguishes the last life of the log from those before (``StateLog/begin(life:)``).
        var life = LogLife()
    }

    /// Calls `body` with each frame from the start on, in order.
    ///
    /// - Returns: The end; nil without segments.
    /// - Throws: ``StateError/Code/corrupt``, naming the place: a frame is damaged that others prove to
    ///   have been durable. What `body` throws is damage of that frame, too.
    func read(
        _ body: (_ frame: Frame.Found, _ place: LogPlace) throws(LogDamage) -> Void
    ) throws(StateError) -> End? {
        var end: End?
        for (index, segment) in segments.enumerated()
        where segment.header.number >= start?.place.segment ?? 0 {
            let next = index + 1 < segments.count ? segments[index + 1].header : nil
            if let end, !segments[index - 1].isRewritten,
                end.checksum != segment.header.predecessorChecksum
            {
                throw damage(
                    segment.header.predecessor,
                    "it does not end as \(segment.name) says that it does"
                )
            }
            let known = try next.map { next throws(StateError) in try segment.end(before: next) }
            end = try read(segment, upTo: known, end?.life, body)
        }
        return end
    }

    private func damage(_ place: LogPlace, _ reason: String) -> StateError {
        StateError(
            .corrupt,
            "the log is damaged at \(place): \(reason); stated --salvage keeps what is whole"
        )
    }

    /// Reads one segment; `known` is its end if another follows.
    func read(
        _ segment: Segment,
        upTo known: Int?,
        _ life: LogLife? = nil,
        _ body: (_ frame: Frame.Found, _ place: LogPlace) throws(LogDamage) -> Void
    ) throws(StateError) -> End {
        let size = try LogScan.reading { () throws(LogFileFailure) in try segment.file.byteCount() }
        var window = LogWindow(.init(segment: segment, range: 0..<size))
        var end = End(
            place: segment.start,
            checksum: segment.header.checksum,
            durable: segment.start,
            life: life ?? LogLife(number: segment.header.generation)
        )
        while end.place.offset < known ?? size {
            let isThere = try window.withFrameIfWhole(at: end.place) {
                (frame) throws(StateError) in
                guard let frame, frame.before == end.checksum else { return false }
                // A closing frame stands behind the end that the next segment names.
                if frame.kind == .closing, known == nil {
                    throw damage(end.place, "the next segment is missing")
                }
                do throws(LogDamage) {
                    try pass(frame, at: end.place, body)
                    if known == nil { try end.index.note(frame, at: end.place.offset) }
                    if frame.kind == .life { end.life = try LogLife(reading: frame.contents) }
                } catch {
                    throw damage(end.place, "the frame \(error.reason)")
                }
                end.durable = max(end.durable, frame.durable)
                end.place.offset += frame.byteCount
                end.checksum = frame.checksum
                return true
            }
            guard isThere else { break }
        }
        if let known {
            guard end.place.offset == known else {
                throw damage(end.place, "a frame before the end, byte \(known), is not whole")
            }
            return end
        }
        if let proof = try proof(of: segment, in: &window, behind: end.place) {
            throw damage(end.place, "the frame is not whole, but was durable at \(proof)")
        }
        if let start, end.place < start.place {
            throw damage(end.place, "it ends there, but was read up to \(start.place)")
        }
        try keepFrames(of: segment, in: &window, &end)
        return end
    }

    /// Calls `body` with a frame that the reader has not read yet.
    private func pass(
        _ frame: Frame.Found,
        at place: LogPlace,
        _ body: (_ frame: Frame.Found, _ place: LogPlace) throws(LogDamage) -> Void
    ) throws(LogDamage) {
        guard let start, place < start.place else { return try body(frame, place) }
        let next = LogPlace(segment: place.segment, offset: place.offset + frame.byteCount)
        guard next <= start.place else {
            throw LogDamage("has the place in it up to which the log was read")
        }
        if includesAll { try body(frame, place) }
    }

    /// Reads the frames again that are kept, and the last block.
    private func keepFrames(
        of segment: Segment,
        in window: inout LogWindow,
        _ end: inout End
    ) throws(StateError) {
        let isOfSegment = end.durable.segment == segment.header.number
        let durable = isOfSegment ? end.durable.offset : SegmentHeader.byteCount
        let limit = LogScan.blockStart(of: durable)
        // A frame of commits begins there.
        let mark = end.index.marks.last { $0.offset <= limit }?.offset
        var place = LogPlace(
            segment: segment.header.number,
            offset: mark ?? SegmentHeader.byteCount
        )
        while place < end.place {
            let kept = try window.withFrameIfWhole(at: place) { (frame) throws(StateError) in
                // It was whole when it was read before.
                guard let frame else { throw damage(place, "the frame is not whole any more") }
                do throws(LogDamage) { return try Kept(place.offset, frame) } catch {
                    throw damage(place, "the frame \(error.reason)")
                }
            }
            if kept.end > limit { end.frames.append(kept) }
            place.offset = kept.end
        }
        let block = LogScan.blockStart(of: end.place.offset)
        end.block = try window.contents(of: block..<end.place.offset)
    }

    static func blockStart(of offset: Int) -> Int {
        offset / SegmentHeader.blockByteCount * SegmentHeader.blockByteCount
    }

    /// A whole frame behind `end` that was written when the log was durable beyond it, or that closes
    /// the segment.
    ///
    /// A whole frame alone proves nothing: frames that were not synced reach the disk in any order.
    private func proof(
        of segment: Segment,
        in window: inout LogWindow,
        behind end: LogPlace
    ) throws(StateError) -> LogPlace? {
        var place = end
        while let offset = try window.nextStart(from: place.offset) {
            place.offset = offset
            let found = try window.withFrameIfWhole(at: place) { frame in
                frame.map { ($0.byteCount, isProof: $0.durable > end || $0.kind == .closing) }
            }
            if found?.isProof ?? false { return place }
            place.offset += found?.0 ?? Frame.alignment
        }
        return nil
    }
}

extension LogScan.Segment {
    /// The index of a segment that ends at `end`: that of its closing frame, or else one that is made by
    /// reading all of it.
    func index(upTo end: Int) throws(StateError) -> SegmentIndex {
        let place = LogPlace(segment: header.number, offset: end)
        let size = try LogScan.reading { () throws(LogFileFailure) in try file.byteCount() }
        guard SegmentHeader.byteCount <= end, end <= size else {
            throw StateError(
                .corrupt,
                "the log is damaged at \(place): the segment ends there, but has \(size) bytes; stated "
                    + "--salvage keeps what is whole"
            )
        }
        let bytes = try LogScan.contents(of: file, end..<min(size, end + (64 << 10)))
        let closing = bytes.withBytes { bytes -> SegmentIndex? in
            guard let frame = Frame.read(bytes, at: place, seed: header.seed),
                frame.kind == .closing
            else { return nil }
            return try? SegmentIndex(reading: frame.contents)
        }
        if let closing { return closing }
        var index = SegmentIndex()
        let part = LogSnapshot.Part(segment: self, range: SegmentHeader.byteCount..<end)
        _ = try LogSnapshot(start: .none, end: place, parts: [part])
            .forEachFrame { (frame, place) throws(LogDamage) in
                guard frame.kind == .commits else { return }
                let commits = try CodedCommits(reading: frame.contents, at: frame.time)
                index.note(commits, at: place.offset)
            }
        return index
    }
}

/// A log that was read from some place on, and is as it was.
package struct LogReading: Sendable {
    let files: any LogFiles
    let scan: LogScan
    let start: LogStart?
    /// Nil without segments.
    let found: LogScan.End?
    /// Those of the segments before the last one.
    let indexes: [SegmentIndex]

    /// Reads a log.
    ///
    /// - Parameters:
    ///   - files: The directory.
    ///   - start: Where it is read from; nil for all of it.
    ///   - receive: Called with the contents of each frame of commits, and its time, in order.
    /// - Throws: ``StateError/Code/corrupt``, naming the place, or ``StateError/Code/storage``.
    package init(
        _ files: any LogFiles,
        from start: LogStart? = nil,
        receive: (_ contents: Bytes, _ time: Int64) throws -> Void
    ) throws(StateError) {
        (self.files, self.start) = (files, start)
        scan = try LogScan(files, from: start)
        // What was written again was settled: a reader that has not read it is of an earlier time.
        if let start,
            let other = scan.segments.first(where: {
                $0.isRewritten && $0.header.number >= start.place.segment
            })
        {
            throw StateError(
                .corrupt,
                "the database is of an earlier time than \(other.name) of the log, which was settled and "
                    + "written again: put both of one time there, or restore a backup"
            )
        }
        var failure: (any Error)?
        found = try scan.read { (frame, _) throws(LogDamage) in
            guard frame.kind == .commits else { return }
            do { try receive(frame.contents, frame.time) } catch let damage as LogDamage {
                throw damage
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure as? StateError ?? StateError(.storage, "\(failure)") }
        indexes = try zip(scan.segments, scan.segments.dropFirst()).map {
            (older, newer) throws(StateError) in
            try older.index(upTo: older.end(before: newer.header))
        }
    }
}

/// Where the reader of a log is: what is before has been put elsewhere.
package struct LogStart: Hashable, Sendable {
    /// The store that the log must belong to.
    package var epoch: Epoch
    /// Behind a frame, or the start of a segment.
    package var place: LogPlace

    package init(epoch: Epoch, place: LogPlace) { (self.epoch, self.place) = (epoch, place) }
}

/// A number that is new in each life of a store, and that of the life before.
///
/// The database beside the log has it, too. It is written to the log first: so a database of the
/// life before belongs to the log, and any other is older, newer, or a copy.
package struct LogLife: Hashable, Sendable {
    package var number: UInt64 = 0
    package var before: UInt64 = 0

    package init(number: UInt64 = 0, before: UInt64? = nil) {
        (self.number, self.before) = (number, before ?? number)
    }

    init(reading contents: Bytes) throws(LogDamage) {
        var reader = LogReaderBytes(contents)
        number = try reader.fixed(UInt64.self)
        before = try reader.fixed(UInt64.self)
    }

    var coded: [UInt8] {
        var coded = LogWriterBytes()
        coded.append(fixed: number)
        coded.append(fixed: before)
        return coded.bytes
    }
}

extension LogScan.Kept {
    init(_ offset: Int, _ found: Frame.Found) throws(LogDamage) {
        self.offset = offset
        before = found.before
        let isOfCommits = found.kind == .commits
        frame = Frame(
            kind: found.kind,
            durable: found.durable,
            time: found.time,
            commits: isOfCommits
                ? try CodedCommits(reading: found.contents, at: found.time)
                : CodedCommits(Array(found.contents))
        )
    }

    var end: Int { offset + frame.byteCount }
}
