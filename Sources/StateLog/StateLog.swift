import CLinux
package import StateModel
import StatePlatform
import StateSystem

/// A log of commits: a chain of segments in a directory.
///
/// It is used by one thread at a time.
///
/// A frame is durable after ``append(_:at:)`` and ``sync()``. If a write or a sync fails, nobody can
/// say what the disk has: then everything since the last good sync is written again into another
/// file, whose header makes what is behind the end that it names void. So a failure is an error only
/// if no other file can be written either.
///
/// Rejected: to go on in the same file after a failed sync. The kernel reports it once, and may call
/// pages clean that are not on the disk: https://lwn.net/Articles/752063/
package final class StateLog {
    package struct Options: Sendable {
        /// How long a segment is, in bytes; a longer frame gets one of its own.
        package var segmentByteCount = 1 << 20
        /// How long another file is tried after a failure, in nanoseconds.
        package var patience: Int64 = 5_000_000_000
        /// The time on a clock that does not jump, in nanoseconds.
        package var now: @Sendable () -> Int64 = { clinux_monotonic_nanoseconds() }
        /// Waits between two attempts.
        package var pause: @Sendable () -> Void = { usleep(50_000) }

        package init() {}
    }

    /// The identity of the store.
    package let epoch: Epoch
    private let files: any LogFiles
    private let options: Options
    private var header: SegmentHeader
    private var file: any LogFile
    private var byteCount: Int
    private var spares: [LogScan.Segment]
    private var nextNumber: UInt64
    /// The name of the next file: a file keeps its name when it is used for another segment.
    private var nextSlot: Int
    /// Where the next frame goes.
    private var end: Int
    private var checksum: UInt32
    /// The last block up to the end: it is written again with the next frame.
    private var block: [UInt8]
    /// Up to where the segment is durable.
    private var syncedEnd: Int
    /// The frames that are written again if the next write or sync fails: those that are not durable,
    /// and those that share a block with one of them.
    private var kept: [LogScan.Kept] = []
    /// Whether a header that names the present end may be on the disk: nothing may follow that end here.
    private var isEndNamed = false
    /// Frames of commits since the last ``sync()`` that returned, and how many of them are durable.
    private var (untoldCount, untoldDurableCount) = (0, 0)
    /// Whether a failure could not be repaired: nothing is appended before ``dropUnknown()``.
    private var isBroken = false
    /// How often another file had to take over.
    package private(set) var replacedCount = 0

    /// Opens a log, and makes it if the directory is empty.
    ///
    /// What a crash left behind the last frame known to be durable is written again and synced before
    /// anybody sees it: the page cache may have what the disk has not.
    ///
    /// - Parameters:
    ///   - files: The directory.
    ///   - options: Sizes and clocks.
    ///   - receive: Called with the contents of each frame of commits, and its time, in order.
    /// - Throws: ``StateError/Code/corrupt``, naming the place, or ``StateError/Code/storage``; the
    ///   files are as they were.
    package init(
        _ files: any LogFiles,
        _ options: Options = Options(),
        receive: (_ contents: Bytes, _ time: Int64) throws -> Void
    ) throws(StateError) {
        (self.files, self.options) = (files, options)
        let scan = try LogScan(files)
        var failure: (any Error)?
        let found = try scan.read { (frame, _) throws(LogDamage) in
            guard frame.kind == .commits else { return }
            do { try receive(frame.contents, frame.time) } catch let damage as LogDamage {
                throw damage
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure as? StateError ?? StateError(.storage, "\(failure)") }
        spares = scan.spares
        (nextNumber, nextSlot) = (scan.nextNumber, scan.nextSlot)
        for name in scan.unfinished { try? files.remove(name) }
        guard let found, let last = scan.segments.last else {
            if let spare = scan.spares.first {
                throw StateError(
                    .corrupt,
                    "the log has no segments, but \(spare.name) says that it had some: put them back"
                )
            }
            epoch = .random()
            header = SegmentHeader(epoch: epoch, number: nextNumber)
            nextNumber += 1
            (end, syncedEnd) = (SegmentHeader.byteCount, SegmentHeader.byteCount)
            (checksum, block, byteCount) = (header.checksum, [], options.segmentByteCount)
            file = try StateLog.make(header, byteCount, [], files, slot: &nextSlot)
            return
        }
        epoch = last.header.epoch
        (header, file) = (last.header, last.file)
        byteCount = try LogScan.reading { () throws(LogFileFailure) in try last.file.byteCount() }
        (end, checksum, block) = (found.place.offset, found.checksum, found.block)
        syncedEnd =
            found.durable.segment == header.number ? found.durable.offset : SegmentHeader.byteCount
        kept = found.frames.filter { $0.end > StateLog.blockStart(of: syncedEnd) }
        try confirmHeader()
        try repairEnd()
        for segment in scan.void { try? files.remove(segment.name) }
    }

    private static func blockStart(of offset: Int) -> Int {
        offset / SegmentHeader.blockByteCount * SegmentHeader.blockByteCount
    }

    // MARK: Writing

    /// The place behind the last frame.
    package var endPlace: LogPlace { LogPlace(segment: header.number, offset: end) }
    /// Up to where everything is durable.
    package var syncedPlace: LogPlace { LogPlace(segment: header.number, offset: syncedEnd) }

    /// Appends a frame of commits, which is not durable before ``sync()``.
    ///
    /// - Parameters:
    ///   - contents: See ``CommitCoder``.
    ///   - time: Milliseconds since 1970.
    /// - Throws: ``StateError/Code/noSpace``: it is not there. ``StateError/Code/readOnly``: the
    ///   outcome is unknown, also that of the frames since the last sync; ``dropUnknown()`` decides it.
    package func append(_ contents: [UInt8], at time: Int64) throws(StateError) {
        try append(.commits, contents, at: time)
    }

    /// Appends a frame that says how far the log is durable, so that the frames before it are known to
    /// be whole.
    package func mark(at time: Int64) throws(StateError) { try append(.mark, [], at: time) }

    private func append(
        _ kind: Frame.Kind,
        _ contents: [UInt8],
        at time: Int64
    ) throws(StateError) {
        guard !isBroken else { throw unknown("an earlier failure is not repaired") }
        let frame = Frame(kind: kind, durable: syncedPlace, time: time, contents: contents)
        while isEndNamed || end + frame.byteCount + StateLog.closingByteCount > byteCount {
            try takeNextSegment(for: frame.byteCount, at: time)
        }
        do throws(LogFileFailure) { try write(frame) } catch { try replace(after: error) }
    }

    /// What a closing frame takes at most.
    private static let closingByteCount = Frame.byteCount(ofContents: 64)

    /// Writes whole blocks: the last one again, and the frame.
    private func write(_ frame: Frame) throws(LogFileFailure) {
        let place = LogPlace(segment: header.number, offset: end)
        kept.append(LogScan.Kept(offset: end, before: checksum, frame: frame))
        if frame.kind == .commits { untoldCount += 1 }
        var bytes = block
        let new = frame.append(to: &bytes, at: place, seed: header.seed, after: checksum)
        let start = end - block.count
        end += frame.byteCount
        checksum = new
        block = Array(bytes[(StateLog.blockStart(of: end) - start)...])
        if !block.isEmpty {
            bytes += Array(repeating: 0, count: SegmentHeader.blockByteCount - block.count)
        }
        try file.write(bytes, at: start)
    }

    /// Makes all frames durable.
    ///
    /// - Throws: ``StateError/Code/readOnly``, as ``append(_:at:)``.
    package func sync() throws(StateError) {
        guard !isBroken else { throw unknown("an earlier failure is not repaired") }
        try syncFrames()
        (untoldCount, untoldDurableCount) = (0, 0)
    }

    private func syncFrames() throws(StateError) {
        guard syncedEnd < end else { return }
        do throws(LogFileFailure) { try file.sync() } catch { return try replace(after: error) }
        noteSynced()
    }

    private func noteSynced() {
        syncedEnd = end
        untoldDurableCount = untoldCount
        kept.removeAll { $0.end <= StateLog.blockStart(of: end) }
    }

    // MARK: Segments

    /// Goes on in the next segment.
    ///
    /// Order matters. The segment is durable up to its end before the next one names that end; the name
    /// and the header of the next one are durable before the closing frame, which is durable before
    /// anything goes to the next one.
    private func takeNextSegment(for frameByteCount: Int, at time: Int64) throws(StateError) {
        try syncFrames()
        let needed = SegmentHeader.byteCount + frameByteCount + StateLog.closingByteCount
        let size = max(needed, options.segmentByteCount)
        isEndNamed = true
        let (next, made) = try makeNext(size)
        var contents = LogWriterBytes()
        contents.append(next.number)
        let closing = Frame(
            kind: .closing,
            durable: syncedPlace,
            time: time,
            contents: contents.bytes
        )
        let (endBefore, checksumBefore, blockBefore) = (end, checksum, block)
        do throws(LogFileFailure) {
            try write(closing)
            try file.sync()
        } catch {
            // The end that is named again is the one before the closing frame.
            (end, checksum, block) = (endBefore, checksumBefore, blockBefore)
            kept.removeLast()
            return try replace(after: error)
        }
        begin(next, made, size, frames: [])
    }

    private func begin(
        _ header: SegmentHeader,
        _ file: any LogFile,
        _ byteCount: Int,
        frames: [LogScan.Kept]
    ) {
        (self.header, self.file, self.byteCount) = (header, file, byteCount)
        isEndNamed = false
        let written = StateLog.coded(frames.map(\.frame), header)
        (end, checksum) = (written.end, written.checksum)
        let start = StateLog.blockStart(of: end) - SegmentHeader.byteCount
        block = Array(written.bytes[start..<end - SegmentHeader.byteCount])
        kept = written.kept
        noteSynced()
    }

    /// The header of a segment that follows a place of this one; no other has its number.
    private func makeHeader(after offset: Int, _ checksum: UInt32) -> SegmentHeader {
        var next = SegmentHeader(epoch: epoch, number: nextNumber)
        nextNumber += 1
        next.generation = header.generation
        next.predecessor = LogPlace(segment: header.number, offset: offset)
        next.predecessorChecksum = checksum
        return next
    }

    private func makeNext(_ size: Int) throws(StateError) -> (SegmentHeader, any LogFile) {
        if size == options.segmentByteCount, let spare = spares.popLast() {
            let header = makeHeader(after: end, checksum)
            do throws(LogFileFailure) {
                try StateLog.write(header, to: spare.file)
                return (header, spare.file)
            } catch {
                // Nobody can say whether it is a segment now: the next one has a higher number.
                try? files.remove(spare.name)
            }
        }
        let header = makeHeader(after: end, checksum)
        return (header, try StateLog.make(header, size, [], files, slot: &nextSlot))
    }

    /// Prepares a file for a later segment, so that beginning one costs two syncs of its header.
    ///
    /// - Throws: ``StateError/Code/noSpace`` or ``StateError/Code/storage``; the log goes on without.
    package func prepareSpare() throws(StateError) {
        var spare = SegmentHeader(epoch: epoch, number: 0)
        spare.generation = header.generation
        let name = "\(nextSlot)\(LogScan.suffix)"
        let file = try StateLog.make(spare, options.segmentByteCount, [], files, slot: &nextSlot)
        spares.append(LogScan.Segment(name: name, file: file, header: spare))
    }

    package var spareCount: Int { spares.count }

    /// Makes a file with a header and frames; its name is durable when this returns.
    ///
    /// Until then it has another name, so that a crash leaves no file without a header.
    private static func make(
        _ header: SegmentHeader,
        _ size: Int,
        _ frames: [Frame],
        _ files: any LogFiles,
        slot: inout Int
    ) throws(StateError) -> any LogFile {
        let name = "\(slot)"
        slot += 1
        do throws(LogFileFailure) {
            return try write(header, size, frames, files, named: name)
        } catch {
            try? files.remove(name + LogScan.unfinishedSuffix)
            throw StateError(
                error.isNoSpace ? .noSpace : .readOnly,
                "the log cannot go on in another file, and nothing was committed: \(error.sentence)"
            )
        }
    }

    private static let zeros = [UInt8](repeating: 0, count: 256 << 10)

    private static func write(
        _ header: SegmentHeader,
        _ size: Int,
        _ frames: [Frame],
        _ files: any LogFiles,
        named name: String
    ) throws(LogFileFailure) -> any LogFile {
        let file = try files.create(name + LogScan.unfinishedSuffix)
        let coded = coded(frames, header)
        try file.write(coded.bytes, at: SegmentHeader.byteCount)
        var offset = SegmentHeader.byteCount + coded.bytes.count
        // Zeros are written in advance: a sync of a file that grows costs twice as much.
        while offset < size {
            let count = min(size - offset, zeros.count)
            try file.write(zeros.count == count ? zeros : Array(zeros[..<count]), at: offset)
            offset += count
        }
        for copy in 0..<2 {
            try file.write(header.coded, at: copy * SegmentHeader.blockByteCount)
        }
        try file.sync()
        try files.rename(name + LogScan.unfinishedSuffix, to: name + LogScan.suffix)
        try files.syncNames()
        return file
    }

    /// Frames as they are at the start of a segment, filled up to whole blocks.
    private static func coded(
        _ frames: [Frame],
        _ header: SegmentHeader
    ) -> (bytes: [UInt8], end: Int, checksum: UInt32, kept: [LogScan.Kept]) {
        var (bytes, checksum): ([UInt8], UInt32) = ([], header.checksum)
        var kept: [LogScan.Kept] = []
        for frame in frames {
            var frame = frame
            // Nothing of this segment is durable yet.
            frame.durable = header.predecessor
            let place = LogPlace(
                segment: header.number,
                offset: SegmentHeader.byteCount + bytes.count
            )
            kept.append(LogScan.Kept(offset: place.offset, before: checksum, frame: frame))
            checksum = frame.append(to: &bytes, at: place, seed: header.seed, after: checksum)
        }
        let end = SegmentHeader.byteCount + bytes.count
        let rest = bytes.count % SegmentHeader.blockByteCount
        if rest > 0 {
            bytes += Array(repeating: 0, count: SegmentHeader.blockByteCount - rest)
        }
        return (bytes, end, checksum, kept)
    }

    // MARK: Failures

    /// Writes everything since the last good sync again, into another file: its header makes what is
    /// behind the end that it names void.
    private func replace(after failure: LogFileFailure) throws(StateError) {
        let deadline = options.now() + options.patience
        while true {
            do throws(StateError) { return try replaceOnce() } catch {
                guard options.now() < deadline else {
                    isBroken = true
                    throw unknown("\(failure.sentence); \(error.message)")
                }
                options.pause()
            }
        }
    }

    private func replaceOnce() throws(StateError) {
        // Each attempt has another number, and the highest counts: nobody can say what became of one
        // that failed.
        let next = makeHeader(after: kept.first?.offset ?? end, kept.first?.before ?? checksum)
        let frames = kept.map(\.frame)
        let needed = frames.reduce(SegmentHeader.byteCount + StateLog.closingByteCount) {
            $0 + $1.byteCount
        }
        let size = max(needed, options.segmentByteCount)
        let file = try StateLog.make(next, size, frames, files, slot: &nextSlot)
        begin(next, file, size, frames: kept)
        replacedCount += 1
        isBroken = false
    }

    private func unknown(_ reason: String) -> StateError {
        StateError(.readOnly, "the outcome of the last commits is unknown: \(reason)")
    }

    /// Decides that frames of unknown outcome are void: those since the last good sync.
    ///
    /// - Returns: How many frames of commits since the last ``sync()`` that returned are durable; the
    ///   others will never be there.
    /// - Throws: ``StateError/Code/noSpace`` or ``StateError/Code/readOnly``: it is still unknown; call
    ///   this again.
    package func dropUnknown() throws(StateError) -> Int {
        let known = kept.filter { $0.end <= syncedEnd }
        let dropped = kept[known.count...]
        guard isBroken else { return untoldDurableCount }
        if let first = dropped.first { (end, checksum) = (first.offset, first.before) }
        kept = known
        untoldCount = untoldDurableCount
        try replaceOnce()
        defer { (untoldCount, untoldDurableCount) = (0, 0) }
        return untoldDurableCount
    }

    /// Makes the name and the header of the last segment durable: the one that wrote them may have ended
    /// before it could.
    private func confirmHeader() throws(StateError) {
        do throws(LogFileFailure) {
            try StateLog.write(header, to: file)
            try files.syncNames()
        } catch {
            throw StateError(.storage, "the log cannot be made durable: \(error.sentence)")
        }
    }

    /// Writes both copies, the second once the first is durable: until then it is that of the life
    /// before.
    private static func write(
        _ header: SegmentHeader,
        to file: any LogFile
    ) throws(LogFileFailure) {
        for copy in 0..<2 {
            try file.write(header.coded, at: copy * SegmentHeader.blockByteCount)
            try file.sync()
        }
    }

    /// Writes what is behind the last known durable place again, and syncs it.
    private func repairEnd() throws(StateError) {
        guard syncedEnd < end else { return }
        let start = StateLog.blockStart(of: syncedEnd)
        var bytes = try LogScan.contents(of: file, start..<end)
        let rest = bytes.count % SegmentHeader.blockByteCount
        if rest > 0 {
            bytes += Array(repeating: 0, count: SegmentHeader.blockByteCount - rest)
        }
        do throws(LogFileFailure) {
            try file.write(bytes, at: start)
            try file.sync()
        } catch {
            return try replace(after: error)
        }
        noteSynced()
    }
}

extension LogFile {
    func write(_ bytes: [UInt8], at offset: Int) throws(LogFileFailure) {
        var failure: LogFileFailure?
        bytes.withUnsafeBytes { bytes in
            do throws(LogFileFailure) { try write(bytes, at: offset) } catch { failure = error }
        }
        if let failure { throw failure }
    }
}
