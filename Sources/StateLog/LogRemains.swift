import StateEngine
package import StateModel

/// What is left of a log that may be damaged: every frame that is whole, also behind others that are
/// not; changes nothing.
///
/// A start believes a frame because of those before it. Here each is checked by itself, and counts if
/// others show that it was not void: if a later one was written when the log was durable up to it, if
/// the next segment names an end behind it, or if it continues one that counts.
///
/// A segment of which both headers are damaged gives nothing: only they have the seed of the checksums.
package struct LogRemains {
    /// What is found, in the order of the log.
    ///
    /// Bytes are borrowed.
    package enum Part {
        /// The contents of a frame of commits that is whole, and whether the database has had it.
        case frame(Bytes, time: Int64, isSettled: Bool)
        /// What may be the contents of a frame that is not whole: some of its rows may be.
        case damaged(Bytes, time: Int64)
        /// Frames are missing here, as a sentence.
        case gap(String)
        /// A segment ends, and has had so many changes; nil if nobody knows.
        case end(changeCount: Int?)
    }

    /// That of the store; nil without segments.
    package let epoch: Epoch?
    /// Damage that costs nothing, a sentence each.
    package private(set) var notes: [String] = []
    /// If nothing was before the oldest segment: the revision up to which there is nothing in it, either.
    package private(set) var origin: Int64?
    /// The oldest first.
    private var segments: [LogScan.Segment] = []
    private let start: LogPlace

    /// Finds the segments.
    ///
    /// - Parameters:
    ///   - files: The directory.
    ///   - epoch: That of the database beside it; nil without one.
    ///   - place: Up to where that has everything.
    /// - Throws: ``StateError/Code/storage`` if the directory cannot be read,
    ///   ``StateError/Code/newerFormat``.
    package init(
        _ files: any LogFiles,
        of epoch: Epoch? = nil,
        from place: LogPlace = .none
    ) throws(StateError) {
        start = place
        var found: [UInt64: LogScan.Segment] = [:]
        for name in try LogScan.reading({ () throws(LogFileFailure) in try files.names() }).sorted()
        where name.hasSuffix(LogScan.suffix) {
            do throws(StateError) {
                let segment = try LogScan.open(name, files)
                guard segment.header.number > 0 else { continue }
                let known = found[segment.header.number]?.header.rewriteCount
                guard known ?? 0 <= segment.header.rewriteCount else { continue }
                found[segment.header.number] = segment
            } catch {
                guard error.code != .newerFormat else { throw error }
                notes.append("the log has a file that cannot be used: \(error.message)")
            }
        }
        let newest = found.values.max { $0.header.number < $1.header.number }
        self.epoch = epoch ?? newest?.header.epoch
        for segment in found.values where segment.header.epoch != self.epoch {
            notes.append("\(segment.name) of the log belongs to another store, and is left out")
            found[segment.header.number] = nil
        }
        takeChain(found)
        if let first = segments.first?.header, first.predecessor.segment == 0 {
            origin = first.carryLine - 1
        }
    }

    package var isEmpty: Bool { segments.isEmpty }

    /// Whether a segment was written again: what it had was in the database.
    package var hasRewrites: Bool { segments.contains(where: \.isRewritten) }

    /// The segment with the highest number counts.
    ///
    /// It names its predecessor, and what has a number between the two is void.
    private mutating func takeChain(_ found: [UInt64: LogScan.Segment]) {
        var next = found.keys.max()
        while let number = next, let segment = found[number] {
            segments.append(segment)
            let before = segment.header.predecessor.segment
            next = found[before] == nil ? found.keys.filter { $0 < before }.max() : before
        }
        segments.reverse()
    }

    // MARK: Reading

    /// Calls `body` with each part.
    ///
    /// - Returns: The last life that a frame tells of.
    /// - Throws: What `body` throws.
    /// - Complexity: O(*n*) in the bytes of the log; memory for a segment.
    package func read(_ body: (Part) throws -> Void) throws -> LogLife? {
        var life: LogLife?
        try noteBeginning(body)
        for (index, segment) in segments.enumerated() {
            let next = index + 1 < segments.count ? segments[index + 1].header : nil
            let isFollowed = next?.predecessor.segment == segment.header.number
            var reading = Reading(segment, endingBefore: isFollowed ? next : nil, start)
            try reading.read(body)
            life = reading.life ?? life ?? LogLife(number: segment.header.generation)
            try body(.end(changeCount: reading.changeCount))
            if let next, !isFollowed {
                try body(
                    .gap(LogRemains.missing(next.predecessor.segment, next.predecessor.segment))
                )
            } else if next == nil, reading.isClosed {
                try body(.gap("the segment of the log that followed \(segment.name) is missing"))
            } else if next == nil, reading.end < start {
                try body(
                    .gap(
                        "the log ends at \(reading.end), but the database was settled up to \(start)"
                    )
                )
            }
        }
        return life
    }

    private func noteBeginning(_ body: (Part) throws -> Void) throws {
        guard let before = segments.first?.header.predecessor.segment, before > 0,
            start.segment > 0, start.segment <= before
        else { return }
        try body(.gap(LogRemains.missing(start.segment, before)))
    }

    private static func missing(_ first: UInt64, _ last: UInt64) -> String {
        first == last
            ? "segment \(first) of the log is missing"
            : "segments of the log are missing, up to \(last)"
    }

    /// One segment, as it is read.
    private struct Reading {
        private struct Spot {
            var range: Range<Int>
            var contents: Range<Int>
            var kind: Frame.Kind
            var time: Int64
            var checksum: UInt32
            var before: UInt32
            var durable: LogPlace
        }

        private let segment: LogScan.Segment
        private let bytes: [UInt8]
        private let settled: LogPlace
        /// Where it ends according to the next one, and the checksum there; one that was written again says
        /// itself where.
        private let named: LogPlace?
        private let namedChecksum: UInt32?
        private(set) var end: LogPlace
        private(set) var life: LogLife?
        /// Whether its last frame says that there is another segment.
        private(set) var isClosed = false
        /// How many changes it has had, according to that frame.
        private(set) var changeCount: Int?

        init(
            _ segment: LogScan.Segment,
            endingBefore next: SegmentHeader?,
            _ start: LogPlace
        ) {
            (self.segment, settled) = (segment, start)
            bytes = LogRemains.bytes(of: segment.file)
            end = segment.start
            guard segment.isRewritten else {
                (named, namedChecksum) = (next?.predecessor, next?.predecessorChecksum)
                return
            }
            let offset = segment.header.rewrittenEnd
            named = LogPlace(segment: segment.header.number, offset: offset)
            namedChecksum = nil
        }

        mutating func read(_ body: (Part) throws -> Void) throws {
            let spots = spots()
            let proven = named?.offset ?? provenEnd(spots)
            var (checksum, offset) = (segment.header.checksum as UInt32?, SegmentHeader.byteCount)
            for spot in spots {
                let start = spot.range.lowerBound
                let isNext = start == offset && (checksum ?? spot.before) == spot.before
                // Behind the end: it was never durable, or is written again in the next segment.
                guard isNext || start <= proven, start < named?.offset ?? .max else { break }
                if !isNext { try passGap(from: offset, to: start, body) }
                try pass(spot, body)
                (checksum, offset) = (spot.checksum, spot.range.upperBound)
                end.offset = offset
            }
            guard offset < proven || namedChecksum != nil && checksum != namedChecksum else {
                return
            }
            try passGap(from: offset, to: max(offset, proven), body)
            end.offset = max(offset, proven)
        }

        private mutating func pass(_ spot: Spot, _ body: (Part) throws -> Void) throws {
            try bytes.withUnsafeBytes { bytes in
                let contents = Bytes(rebasing: bytes[spot.contents])
                switch spot.kind {
                case .commits:
                    let place = LogPlace(
                        segment: segment.header.number,
                        offset: spot.range.lowerBound
                    )
                    try body(.frame(contents, time: spot.time, isSettled: place < settled))
                case .life: life = (try? LogLife(reading: contents)) ?? life
                case .mark: break
                case .closing: isClosed = true
                }
            }
        }

        /// Passes what may be frames, and says what is missing.
        private func passGap(
            from start: Int,
            to end: Int,
            _ body: (Part) throws -> Void
        ) throws {
            try bytes.withUnsafeBytes { bytes in
                var place = start
                while place + Frame.headByteCount < min(end, bytes.count) {
                    let rest = Bytes(rebasing: bytes[place..<min(end, bytes.count)])
                    var length = Frame.length(rest) ?? rest.count
                    if length > rest.count { length = rest.count }
                    let time = Int64(
                        littleEndian: rest.loadUnaligned(fromByteOffset: 32, as: Int64.self)
                    )
                    let contents = Bytes(rebasing: rest[Frame.headByteCount..<length])
                    try body(.damaged(contents, time: time))
                    place += length
                }
            }
            let name = "\(segment.name) of the log"
            try body(
                .gap(
                    start < end
                        ? "\(name) is damaged from byte \(start) to byte \(end)"
                        : "\(name) lacks frames before byte \(end)"
                )
            )
        }

        /// Up to where the segment was durable, as far as frames say so.
        private mutating func provenEnd(_ spots: [Spot]) -> Int {
            var proven = SegmentHeader.byteCount
            for spot in spots {
                if spot.durable.segment == segment.header.number {
                    proven = max(proven, spot.durable.offset)
                }
                if spot.kind == .closing { proven = max(proven, spot.range.lowerBound) }
            }
            return proven
        }

        /// Every frame that is whole, wherever it is.
        private mutating func spots() -> [Spot] {
            var spots: [Spot] = []
            let limit = bytes.count
            var offset = SegmentHeader.byteCount
            while true {
                offset = bytes.withBytes { Frame.nextStart(in: $0, from: offset) }
                guard offset + Frame.headByteCount <= limit else { return spots }
                guard let spot = spot(at: offset) else {
                    offset += Frame.alignment
                    continue
                }
                if spot.kind == .closing { noteClosing(spot) }
                spots.append(spot)
                offset = spot.range.upperBound
            }
        }

        private mutating func noteClosing(_ spot: Spot) {
            guard named == nil || spot.range.lowerBound == named?.offset else { return }
            changeCount = bytes.withUnsafeBytes {
                try? SegmentIndex(reading: Bytes(rebasing: $0[spot.contents])).changeCount
            }
        }

        private mutating func spot(at offset: Int) -> Spot? {
            let place = LogPlace(segment: segment.header.number, offset: offset)
            return bytes.withUnsafeBytes { all -> Spot? in
                let rest = Bytes(rebasing: all[offset...])
                guard let frame = Frame.read(rest, at: place, seed: segment.header.seed) else {
                    return nil
                }
                let start = offset + Frame.headByteCount
                return Spot(
                    range: offset..<offset + frame.byteCount,
                    contents: start..<start + frame.contents.count,
                    kind: frame.kind,
                    time: frame.time,
                    checksum: frame.checksum,
                    before: frame.before,
                    durable: frame.durable
                )
            }
        }
    }

    /// The bytes of a file; where the disk cannot read them, zeros.
    private static func bytes(of file: any LogFile) -> [UInt8] {
        guard let size = try? file.byteCount() else { return [] }
        if let bytes = try? LogScan.contents(of: file, 0..<size) { return bytes }
        var bytes = [UInt8](repeating: 0, count: size)
        for start in stride(from: 0, to: size, by: SegmentHeader.blockByteCount) {
            let range = start..<min(size, start + SegmentHeader.blockByteCount)
            guard let block = try? LogScan.contents(of: file, range) else { continue }
            bytes.replaceSubrange(start..<start + block.count, with: block)
        }
        return bytes
    }
}
