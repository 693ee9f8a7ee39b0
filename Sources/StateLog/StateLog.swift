import CLinux
package import StateModel
import StatePlatform
import StateSystem

/// A log of commits: a chain of segments in a directory.
///
/// It is used by one thread at a time. What other threads do beside the one that appends, they do with
/// values that it gives them: they read a ``LogSnapshot``, and make files void or prepare them
/// (``LogSpare``).
///
/// A frame is durable after ``append(_:at:)`` and ``sync()``; while a sync runs, another thread may append
/// (``beginSync()``). If a write or a sync fails, nobody can
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
        /// How long the next one is if the last was full soon.
        package var largeSegmentByteCount = 16 << 20
        /// How soon that is, in nanoseconds.
        package var soon: Int64 = 120_000_000_000
        /// How long another file is tried after a failure, in nanoseconds.
        package var patience: Int64 = 5_000_000_000
        /// The time on a clock that does not jump, in nanoseconds.
        package var now: @Sendable () -> Int64 = { clinux_monotonic_nanoseconds() }
        /// How long the daemon has run since its start, or over all of its starts, in milliseconds.
        package var age: @Sendable () -> Int64
        /// Waits between two attempts.
        package var pause: @Sendable () -> Void = { usleep(50_000) }

        package init() {
            let start = clinux_monotonic_nanoseconds()
            age = { (clinux_monotonic_nanoseconds() - start) / 1_000_000 }
        }
    }

    /// The identity of the store.
    package let epoch: Epoch
    package private(set) var life: LogLife
    private let files: any LogFiles
    private let options: Options
    /// The segment that is being written, and the bytes of its file.
    private var segment: LogScan.Segment
    private var byteCount: Int
    /// Since when it is, in nanoseconds and as an age, and whether the one before was full soon.
    private var begun: Int64
    private var begunAge: Int64 = 0
    private var wasFullSoon = false
    /// Those before it that are not dropped, the oldest first.
    private var ended: [Ended] = []
    private struct Ended {
        let segment: LogScan.Segment
        let end: Int
        let index: SegmentIndex
    }
    /// That of the segment that is being written.
    private var index = SegmentIndex()
    private var spares: [LogSpare]
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
    /// Why a write failed of which the frame is not in the log; what the disk has is not known.
    private var writeFailure: LogFileFailure?
    /// How much of the past it keeps; it may be set at any time.
    package var retention = LogRetention()
    /// A revision below which nobody may ask for the past, whatever is there; it may be raised at any time.
    package var leastFloor: Int64 = 0
    /// New files leave so many bytes of the file system: what settling takes, without which nothing is ever
    /// dropped.
    package var settlingByteCount = 0
    /// What the segments of earlier starts say that the daemon had run, beyond what the clock says.
    private var earlierAge: Int64 = 0
    /// Prepared files may be as long; it may be set at any time, and is 0 while the disk has little room.
    package var spareByteLimit = Int.max
    /// How often another file had to take over.
    package private(set) var replacedCount = 0
    /// Changes whenever another file is one of its segments.
    package private(set) var namesVersion = 0

    private var header: SegmentHeader { segment.header }

    /// Opens a log, and makes it if the directory is empty and nothing was read of it before.
    ///
    /// What a crash left behind the last frame known to be durable is written again and synced before
    /// anybody sees it: the page cache may have what the disk has not.
    ///
    /// - Parameters:
    ///   - files: The directory.
    ///   - options: Sizes and clocks.
    ///   - start: Where it is read from; nil for all of it.
    ///   - revision: If it is made: the last revision before it.
    ///   - receive: Called with the contents of each frame of commits, and its time, in order.
    /// - Throws: ``StateError/Code/corrupt``, naming the place, or ``StateError/Code/storage``; the
    ///   files are as they were.
    package convenience init(
        _ files: any LogFiles,
        _ options: Options = Options(),
        from start: LogStart? = nil,
        after revision: Int64 = 0,
        receive: (_ contents: Bytes, _ time: Int64) throws -> Void
    ) throws(StateError) {
        let reading = try LogReading(files, from: start, receive: receive)
        try self.init(reading, options, after: revision)
    }

    /// Opens a log that was read and has not changed since, and makes it if there is none; else as
    /// ``init(_:_:from:after:receive:)``.
    package init(
        _ reading: LogReading,
        _ options: Options = Options(),
        after revision: Int64 = 0
    ) throws(StateError) {
        let (files, scan, start) = (reading.files, reading.scan, reading.start)
        (self.files, self.options, begun) = (files, options, options.now())
        spares = try scan.spares.map { spare throws(StateError) in try LogSpare(spare) }
        (nextNumber, nextSlot) = (scan.nextNumber, scan.nextSlot)
        for name in scan.unfinished { try? files.remove(name) }
        guard let found = reading.found, let last = scan.segments.last else {
            if let spare = scan.spares.first {
                throw StateError(
                    .corrupt,
                    "the log has no segments, but \(spare.name) says that it had some: put them back"
                )
            }
            (epoch, life) = (start?.epoch ?? .random(), LogLife())
            var header = SegmentHeader(epoch: epoch, number: nextNumber)
            header.carryLine = revision + 1
            nextNumber += 1
            (end, syncedEnd) = (SegmentHeader.byteCount, SegmentHeader.byteCount)
            (checksum, block, byteCount) = (header.checksum, [], options.segmentByteCount)
            segment = try StateLog.make(header, byteCount, [], files, slot: &nextSlot)
            return
        }
        (epoch, life, segment) = (last.header.epoch, found.life, last)
        byteCount = try LogScan.reading { () throws(LogFileFailure) in try last.file.byteCount() }
        var indexes = reading.indexes
        earlierAge = max(0, (indexes.map(\.age).max() ?? 0) - options.age())
        var age = options.age() + earlierAge
        for position in indexes.indices.reversed() {
            // A segment without a closing frame ended before the next one.
            if indexes[position].age == 0 { indexes[position].age = age }
            age = indexes[position].age
        }
        ended = try indexes.indices.map { position throws(StateError) in
            let segment = scan.segments[position]
            let end = try segment.end(before: scan.segments[position + 1].header)
            return Ended(segment: segment, end: end, index: indexes[position])
        }
        begunAge = options.age() + earlierAge
        (index, kept) = (found.index, found.frames)
        (end, checksum, block) = (found.place.offset, found.checksum, found.block)
        syncedEnd =
            found.durable.segment == last.header.number
            ? found.durable.offset : SegmentHeader.byteCount
        try confirmHeader()
        try repairEnd()
        for segment in scan.void { try? files.remove(segment.name) }
        guard files.isCopyOnWrite else { return }
        for spare in takeSpares(keepingOne: false) { spare.remove(from: files) }
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
    package func append(_ contents: CodedCommits, at time: Int64) throws(StateError) {
        try append(at: time) { _ in contents }
    }

    /// Appends a frame of commits that somebody has seen, or is about to see, before they are durable:
    /// ``dropUnknown()`` leaves them.
    ///
    /// It is not appended if it has to go to another segment, or if a write has failed: then
    /// ``append(at:isPublished:encoding:)`` does more about that.
    ///
    /// - Parameters:
    ///   - contents: See ``CommitCoder``.
    ///   - line: The ``carryLine`` that they were made for.
    ///   - time: Milliseconds since 1970.
    /// - Returns: Whether it is appended.
    /// - Complexity: One write, which does not wait for a sync.
    package func appendBriefly(
        _ contents: CodedCommits,
        carryingBelow line: Int64,
        at time: Int64
    ) -> Bool {
        var frame = Frame(kind: .commits, durable: syncedPlace, time: time, commits: contents)
        frame.isPublished = true
        guard !isBroken, writeFailure == nil, !isEndNamed, !isOld, line == carryLine, fits(frame)
        else { return false }
        return writeWhole(frame) == nil
    }

    /// Writes a frame that somebody has seen: it is appended, or it is not, as what is appended again must not
    /// be there twice.
    ///
    /// - Returns: Why it is not; ``requireWhole()`` mends that.
    private func writeWhole(_ frame: Frame) -> LogFileFailure? {
        let before = (end, checksum, block, index)
        do throws(LogFileFailure) { try write(frame) } catch {
            (end, checksum, block, index) = before
            kept.removeLast()
            writeFailure = error
            return error
        }
        return nil
    }

    /// The same with contents that depend on the ``carryLine`` of the segment where the frame goes:
    /// `encode` is called with the line, again if the frame goes to the next segment.
    ///
    /// - Parameters:
    ///   - time: Milliseconds since 1970.
    ///   - isPublished: Whether ``dropUnknown()`` leaves them.
    ///   - encode: Makes the contents.
    /// - Throws: As ``append(_:at:)``.
    package func append(
        at time: Int64,
        isPublished: Bool = false,
        encoding encode: (_ carryLine: Int64) -> CodedCommits
    ) throws(StateError) {
        try append(.commits, at: time, isPublished: isPublished, encode)
    }

    /// Appends a frame that says how far the log is durable, so that the frames before it are known to
    /// be whole.
    package func mark(at time: Int64) throws(StateError) {
        try append(.mark, at: time) { _ in CodedCommits([]) }
    }

    private func append(
        _ kind: Frame.Kind,
        at time: Int64,
        isPublished: Bool = false,
        _ encode: (_ carryLine: Int64) -> CodedCommits
    ) throws(StateError) {
        try requireWhole()
        var frame = Frame(kind: kind, durable: syncedPlace, time: time, commits: encode(carryLine))
        frame.isPublished = isPublished
        while isEndNamed || isOld || !fits(frame) {
            do throws(StateError) { try takeNextSegment(for: frame.byteCount, at: time) } catch {
                // Where there is no room for another one, a segment goes on that is only old.
                guard error.code == .noSpace, !isEndNamed, fits(frame) else { throw error }
                break
            }
            frame.durable = syncedPlace
            frame.commits = encode(carryLine)
        }
        guard isPublished else {
            do throws(LogFileFailure) { try write(frame) } catch { try replace(after: error) }
            return
        }
        guard let failure = writeWhole(frame) else { return }
        throw StateError(
            failure.isNoSpace ? .noSpace : .readOnly,
            "nothing was appended to the log: \(failure.sentence)"
        )
    }

    /// - Throws: ``StateError/Code/readOnly`` if nobody can say yet what the log has: see
    ///   ``dropUnknown()``.
    package func requireDecided() throws(StateError) {
        guard !isBroken else { throw unknown("an earlier failure is not repaired") }
    }

    private func fits(_ frame: Frame) -> Bool {
        end + frame.byteCount + index.closingByteCount <= byteCount
    }

    /// - Throws: ``StateError/Code/readOnly`` if a failure is not repaired and cannot be.
    private func requireWhole() throws(StateError) {
        try requireDecided()
        guard let failure = writeFailure else { return }
        writeFailure = nil
        try replace(after: failure)
    }

    /// Writes whole blocks: the last one again, and the frame.
    private func write(_ frame: Frame) throws(LogFileFailure) {
        let place = LogPlace(segment: header.number, offset: end)
        kept.append(LogScan.Kept(offset: end, before: checksum, frame: frame))
        if frame.kind == .commits {
            if !frame.isPublished { untoldCount += 1 }
            index.note(frame.commits, at: end)
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(block.count + frame.byteCount + SegmentHeader.blockByteCount)
        bytes += block
        let new = frame.append(to: &bytes, at: place, seed: header.seed, after: checksum)
        let start = end - block.count
        end += frame.byteCount
        checksum = new
        block = Array(bytes[(StateLog.blockStart(of: end) - start)...])
        if !block.isEmpty {
            bytes += Array(repeating: 0, count: SegmentHeader.blockByteCount - block.count)
        }
        try segment.file.write(bytes, at: start)
    }

    /// Begins a life of the store, which is durable when this returns.
    ///
    /// - Throws: As ``append(_:at:)`` and ``sync()``.
    package func begin(_ life: LogLife, at time: Int64) throws(StateError) {
        try append(.life, at: time) { _ in CodedCommits(life.coded) }
        try syncFrames()
        self.life = life
    }

    /// Makes all frames durable.
    ///
    /// - Throws: ``StateError/Code/readOnly``, as ``append(_:at:)``.
    package func sync() throws(StateError) {
        try requireWhole()
        try syncFrames()
        (untoldCount, untoldDurableCount) = (0, 0)
    }

    /// A sync of the frames that are there now, which takes place without this log: another thread may
    /// append meanwhile, but only by ``appendBriefly(_:carryingBelow:at:)``.
    package struct Sync {
        fileprivate let file: any LogFile
        fileprivate let end: Int

        package func run() -> Result<Void, LogFileFailure> {
            do throws(LogFileFailure) { return .success(try file.sync()) } catch {
                return .failure(error)
            }
        }
    }

    /// - Returns: What to run, for ``end(_:_:)``; nil if everything is durable.
    /// - Throws: As ``sync()``.
    package func beginSync() throws(StateError) -> Sync? {
        try requireWhole()
        if syncedEnd < end { return Sync(file: segment.file, end: end) }
        (untoldCount, untoldDurableCount) = (0, 0)
        return nil
    }

    /// Takes what a sync did.
    ///
    /// - Throws: As ``sync()``.
    package func end(_ sync: Sync, _ result: Result<Void, LogFileFailure>) throws(StateError) {
        switch result {
        case .success: noteSynced(upTo: sync.end)
        case .failure(let failure): try replace(after: failure)
        }
        (untoldCount, untoldDurableCount) = (0, 0)
    }

    private func syncFrames() throws(StateError) {
        guard syncedEnd < end else { return }
        do throws(LogFileFailure) { try segment.file.sync() } catch {
            return try replace(after: error)
        }
        noteSynced(upTo: end)
    }

    private func noteSynced(upTo end: Int) {
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
        let needed = SegmentHeader.byteCount + frameByteCount + SegmentIndex().closingByteCount
        wasFullSoon = options.now() - begun < options.soon
        let (next, size) = try makeNext(needed)
        index.age = age
        let closing = Frame(
            kind: .closing,
            durable: syncedPlace,
            time: time,
            commits: CodedCommits(index.coded(next: next.header.number))
        )
        let (endBefore, checksumBefore, blockBefore) = (end, checksum, block)
        do throws(LogFileFailure) {
            try write(closing)
            try segment.file.sync()
        } catch {
            // The end that is named again is the one before the closing frame.
            (end, checksum, block) = (endBefore, checksumBefore, blockBefore)
            kept.removeLast()
            try replace(after: error)
            // The one that replaces it has a higher number.
            try? files.remove(next.name)
            return
        }
        let (file, fileEnd, fileByteCount) = (segment.file, end, byteCount)
        begin(next, size, frames: [])
        // A file that is as long as others may be used again once it is dropped.
        if fileEnd < fileByteCount / 4 * 3 { try? file.setByteCount(fileEnd) }
    }

    /// Ends the segment that is being written if its file is a large one, which then takes no more room
    /// than its frames, and can be dropped.
    ///
    /// - Throws: As ``append(_:at:)``.
    package func endLargeSegment(at time: Int64) throws(StateError) {
        guard !isBroken, byteCount > options.segmentByteCount, index.first > 0 else { return }
        try takeNextSegment(for: 0, at: time)
    }

    private func begin(_ next: LogScan.Segment, _ byteCount: Int, frames: [LogScan.Kept]) {
        let end = next.header.predecessor.offset
        namesVersion += 1
        index.cut(at: end)
        index.age = age
        ended.append(Ended(segment: segment, end: end, index: index))
        index = SegmentIndex()
        (segment, self.byteCount, begun) = (next, byteCount, options.now())
        begunAge = age
        isEndNamed = false
        let written = StateLog.coded(frames.map(\.frame), header)
        (self.end, checksum) = (written.end, written.checksum)
        let start = StateLog.blockStart(of: written.end) - SegmentHeader.byteCount
        block = Array(written.bytes[start..<written.end - SegmentHeader.byteCount])
        kept = written.kept
        for kept in kept where kept.frame.kind == .commits {
            index.note(kept.frame.commits, at: kept.offset)
        }
        noteSynced(upTo: self.end)
    }

    /// The header of a segment that follows a place of this one; no other has its number.
    private func makeHeader(
        after offset: Int,
        _ checksum: UInt32,
        carryLine: Int64
    ) -> SegmentHeader {
        var next = SegmentHeader(epoch: epoch, number: nextNumber)
        nextNumber += 1
        next.generation = life.number
        next.carryLine = carryLine
        next.predecessor = LogPlace(segment: header.number, offset: offset)
        next.predecessorChecksum = checksum
        return next
    }

    /// A segment behind the present end: a prepared one, or else a small one that is made now.
    ///
    /// Once a header may name the end, nothing may be written behind it.
    private func makeNext(_ needed: Int) throws(StateError) -> (LogScan.Segment, Int) {
        if let spare = takeSpare(needed) {
            let header = makeHeader(after: end, checksum, carryLine: nextCarryLine)
            isEndNamed = true
            do throws(LogFileFailure) {
                try StateLog.write(header, to: spare.file)
                return (
                    LogScan.Segment(name: spare.name, file: spare.file, header: header),
                    spare.byteCount
                )
            } catch {
                // Nobody can say whether it is a segment now: the next one has a higher number.
                spare.remove(from: files)
            }
        }
        // Where nothing is zeroed in advance, a long one is made as soon as a short one.
        let size = max(needed, files.isCopyOnWrite ? wantedByteCount : options.segmentByteCount)
        let available = files.availableByteCount() ?? .max
        guard available >= Int64(size) + Int64(settlingByteCount) else {
            throw StateError(
                .noSpace,
                "the log cannot go on in another file, and nothing was committed: the file system has "
                    + "\(available) bytes, less than settling may take"
            )
        }
        let deadline = options.now() + options.patience
        isEndNamed = true
        while true {
            // Nobody can say what became of a file that could not be made: each has another number.
            let header = makeHeader(after: end, checksum, carryLine: nextCarryLine)
            do throws(StateError) {
                return (try StateLog.make(header, size, [], files, slot: &nextSlot), size)
            } catch {
                guard error.code != .noSpace, options.now() < deadline else { throw error }
                options.pause()
            }
        }
    }

    /// Each segment takes a descriptor: where there are many, they are large.
    private var wantedByteCount: Int {
        let isLarge =
            (wasFullSoon || ended.count >= StateLog.smallSegmentLimit)
            && options.largeSegmentByteCount <= spareByteLimit
        return isLarge ? options.largeSegmentByteCount : options.segmentByteCount
    }

    private static let smallSegmentLimit = 64

    /// Whether files are prepared for later segments, and used again.
    private var preparesFiles: Bool { wantedByteCount <= spareByteLimit && !files.isCopyOnWrite }

    private func takeSpare(_ needed: Int) -> LogSpare? {
        while true {
            let index =
                spares.firstIndex { $0.byteCount >= needed && $0.byteCount == wantedByteCount }
                ?? spares.firstIndex { $0.byteCount >= needed }
            guard let spare = index.map({ spares.remove(at: $0) }) else { return nil }
            // No start finds a file that somebody removed. What is removed later is seen after the commit.
            if files.finding(among: [(spare.name, spare.file)]) == nil { return spare }
        }
    }

    /// A file for a later segment, which ``LogSpare/prepare()`` makes on any thread and
    /// ``offer(_:)`` takes; nil if there are enough.
    package func planSpare() -> LogSpare.Plan? {
        let count = spares.count { $0.byteCount == wantedByteCount }
        guard preparesFiles, count < (wasFullSoon ? StateLog.spareLimit : 1) else { return nil }
        var header = SegmentHeader(epoch: epoch, number: 0)
        header.generation = life.number
        defer { nextSlot += 1 }
        return LogSpare.Plan(
            files: files,
            name: "\(nextSlot)",
            header: header,
            byteCount: wantedByteCount
        )
    }

    /// Gives up the prepared files, but for one of the small ones if that is kept; removing them makes
    /// room.
    package func takeSpares(keepingOne keepsOne: Bool) -> [LogSpare] {
        let small = spares.firstIndex { $0.byteCount <= options.segmentByteCount }
        let kept = keepsOne ? small.map { [spares[$0]] } ?? [] : []
        defer { spares = kept }
        return spares.filter { spare in !kept.contains { $0.name == spare.name } }
    }

    /// Removes all prepared files from a directory of a log that nobody has open.
    package static func removeSpares(from files: any LogFiles) throws(StateError) {
        let names = try LogScan.reading { () throws(LogFileFailure) in try files.names() }
        for name in names where name.hasSuffix(LogScan.suffix) {
            guard try LogScan.open(name, files).header.number == 0 else { continue }
            try LogScan.reading { () throws(LogFileFailure) in try files.remove(name) }
        }
    }

    /// Takes a file for later segments.
    package func offer(_ spare: LogSpare) { spares.append(spare) }

    /// Prepares a file for a later segment, so that beginning one costs two syncs of its header.
    ///
    /// - Throws: ``StateError/Code/noSpace`` or ``StateError/Code/storage``; the log goes on without.
    package func prepareSpare() throws(StateError) {
        if let plan = planSpare() { offer(try plan.prepare()) }
    }

    /// Makes a file with a header and frames; its name is durable when this returns.
    ///
    /// Until then it has another name, so that a crash leaves no file without a header.
    private static func make(
        _ header: SegmentHeader,
        _ size: Int,
        _ frames: [Frame],
        _ files: any LogFiles,
        slot: inout Int
    ) throws(StateError) -> LogScan.Segment {
        let name = "\(slot)"
        slot += 1
        do throws(LogFileFailure) {
            let file = try write(header, size, frames, files, named: name)
            return LogScan.Segment(name: name + LogScan.suffix, file: file, header: header)
        } catch {
            StateLog.remove(name, from: files)
            throw refusal(error)
        }
    }

    /// Removes a file that could not be made, under either name: whatever becomes of that, others have higher
    /// numbers, or it is a spare.
    static func remove(_ name: String, from files: any LogFiles) {
        try? files.remove(name + LogScan.unfinishedSuffix)
        try? files.remove(name + LogScan.suffix)
    }

    private static func refusal(_ failure: LogFileFailure) -> StateError {
        StateError(
            failure.isNoSpace ? .noSpace : .readOnly,
            "the log cannot go on in another file, and nothing was committed: \(failure.sentence)"
        )
    }

    private static let zeros = [UInt8](repeating: 0, count: 256 << 10)

    /// Makes a file with a header and frames, zeros behind them, and a durable name.
    ///
    /// Each piece may be synced, so that the sync of a commit beside it does not wait for all of them.
    ///
    /// - Returns: The file.
    /// - Throws: The call that failed; the file may be there, under its unfinished name.
    static func write(
        _ header: SegmentHeader,
        _ size: Int,
        _ frames: [Frame],
        _ files: any LogFiles,
        named name: String,
        syncingPieces syncsPieces: Bool = false
    ) throws(LogFileFailure) -> any LogFile {
        let file = try files.create(name + LogScan.unfinishedSuffix)
        let coded = coded(frames, header)
        try file.write(coded.bytes, at: SegmentHeader.byteCount)
        var offset = SegmentHeader.byteCount + coded.bytes.count
        if files.isCopyOnWrite { try file.setByteCount(max(offset, size)) }
        // Zeros are written in advance: a sync of a file that grows costs twice as much.
        while !files.isCopyOnWrite, offset < size {
            let count = min(size - offset, zeros.count)
            try file.write(zeros.count == count ? zeros : Array(zeros[..<count]), at: offset)
            offset += count
            if syncsPieces { try file.sync() }
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

    // MARK: Reading and dropping

    /// Removes the files of the log of another store, durably.
    ///
    /// - Throws: ``StateError/Code/storage``; some may be left.
    package static func remove(_ epoch: Epoch, from files: any LogFiles) throws(StateError) {
        let names = try LogScan.reading { () throws(LogFileFailure) in try files.names() }
        for name in names where name.hasSuffix(LogScan.suffix) {
            guard try LogScan.open(name, files).header.epoch == epoch else { continue }
            try LogScan.reading { () throws(LogFileFailure) in try files.remove(name) }
        }
        try LogScan.reading { () throws(LogFileFailure) in try files.syncNames() }
    }

    /// Whether there are segments or prepared files in a directory.
    package static func exists(in files: any LogFiles) throws(StateError) -> Bool {
        let names = try LogScan.reading { () throws(LogFileFailure) in try files.names() }
        return names.contains { $0.hasSuffix(LogScan.suffix) }
    }

    /// The files of its segments, for any thread.
    package var names: LogNames {
        let segments = ended.map(\.segment) + [segment]
        return LogNames(files: files, segments: segments.map { ($0.name, $0.file) })
    }

    /// What is durable behind a place, which is behind a frame or ``LogPlace/none``, for a reader on any
    /// thread.
    package func snapshot(from place: LogPlace) -> LogSnapshot {
        var parts: [LogSnapshot.Part] = []
        for (segment, end) in ended.map({ ($0.segment, $0.end) }) + [(segment, syncedEnd)]
        where segment.header.number >= place.segment {
            let isFirst = segment.header.number == place.segment
            // A segment whose end was named anew may end before the place: what was behind is in the next
            // one.
            let start = isFirst ? place.offset : SegmentHeader.byteCount
            if start < end { parts.append(LogSnapshot.Part(segment: segment, range: start..<end)) }
        }
        return LogSnapshot(start: place, end: syncedPlace, parts: parts)
    }

    /// Takes the oldest segments out of the log; ``LogSpare/init(dropping:)`` makes their files void.
    ///
    /// Nothing in them may be needed after a crash any more.
    package func drop(_ count: Int) -> [LogSpare.Dropped] {
        namesVersion += 1
        defer { ended.removeFirst(count) }
        return ended.prefix(count).map { LogSpare.Dropped(segment: $0.segment, life: life.number) }
    }

    /// Ends the segment that is being written, if it has changes, so that it can be settled and written
    /// again.
    ///
    /// - Throws: As ``append(_:at:)``.
    package func endSegment(at time: Int64) throws(StateError) {
        guard index.changeCount > 0, !isBroken else { return }
        let wasFullSoon = wasFullSoon
        try takeNextSegment(for: 0, at: time)
        self.wasFullSoon = wasFullSoon
    }

    /// The revision of the last commit in the segments that are there; 0 without any.
    package var lastRevision: Int64 { indexes.map(\.last).max() ?? 0 }

    /// Whether the segment that is being written has changes up to the revision that somebody compacts to.
    package var hasUnwantedChanges: Bool { index.changeCount > 0 && leastFloor >= index.first }

    /// A segment that is written again without some of its changes; nil if it is not there, or is the one
    /// that is being written.
    package func planRewrite(of number: UInt64) -> SegmentRewrite? {
        guard let position = ended.firstIndex(where: { $0.segment.header.number == number }) else {
            return nil
        }
        defer { nextSlot += 1 }
        let later = ended[(position + 1)...].map(\.segment.header.number)
        return SegmentRewrite(
            files: files,
            name: "\(nextSlot)",
            segment: ended[position].segment,
            end: ended[position].end,
            index: ended[position].index,
            next: later.first ?? header.number
        )
    }

    /// Takes a segment that was written again.
    ///
    /// - Returns: The file that it replaces; nil if the segment was dropped meanwhile.
    package func take(_ rewritten: SegmentRewrite.Written) -> LogSpare.Dropped? {
        let number = rewritten.segment.header.number
        guard let position = ended.firstIndex(where: { $0.segment.header.number == number }) else {
            return nil
        }
        namesVersion += 1
        let former = ended[position].segment
        ended[position] = Ended(
            segment: rewritten.segment,
            end: rewritten.segment.header.rewrittenEnd,
            index: rewritten.index
        )
        return LogSpare.Dropped(segment: former, life: life.number)
    }

    /// Whether a dropped file of this length is of use, as a spare.
    package func wants(spareOf byteCount: Int) -> Bool {
        guard preparesFiles, byteCount == wantedByteCount else { return false }
        guard wasFullSoon, spares.count >= StateLog.spareLimit else {
            return spares.count < StateLog.spareLimit
        }
        let takesLittle = (spares.count + 1) * byteCount <= spareByteLimit
        return takesLittle && spares.count < StateLog.droppedSpareLimit
    }

    /// So many are prepared while segments are full soon.
    private static let spareLimit = 2
    /// So many are kept of those that are dropped: while a slice is settled, none is.
    private static let droppedSpareLimit = 3

    /// Gives up prepared files beyond those that would be prepared: nothing is written that takes them soon.
    package func takeExtraSpares() -> [LogSpare] {
        let kept = spares.prefix(StateLog.spareLimit)
        defer { spares = Array(kept) }
        return Array(spares.dropFirst(kept.count))
    }

    /// The files of the log and their bytes.
    package var segmentCount: Int { ended.count + 1 }
    /// What a commit needs of the file system once the present segment is full: the next one, and what
    /// the file of the present one has not been given yet.
    package var neededByteCount: Int {
        options.segmentByteCount + (files.isCopyOnWrite ? byteCount - end : 0)
    }
    package var fileByteCount: Int {
        let files = ended.map(\.segment.file) + [segment.file] + spares.map(\.file)
        return files.reduce(0) { $0 + ((try? $1.byteCount()) ?? 0) }
    }

    // MARK: The past

    /// What a reader on any thread may see.
    package func view() -> LogView {
        var parts = ended.map {
            LogView.Part(
                part: LogSnapshot.Part(
                    segment: $0.segment,
                    range: SegmentHeader.byteCount..<max(SegmentHeader.byteCount, $0.end)
                ),
                index: $0.index
            )
        }
        let range = SegmentHeader.byteCount..<syncedEnd
        parts.append(
            LogView.Part(part: LogSnapshot.Part(segment: segment, range: range), index: index)
        )
        return LogView(parts: parts, floor: floor, age: age)
    }

    /// From this revision on every state and every change is there.
    package var floor: Int64 { floor(dropping: 0) }

    /// Links to revisions below it have to be carried now (``ChangeLink``).
    package var carryLine: Int64 { header.carryLine }

    /// Whether the segment has lasted for an eighth of the age that is kept: only whole segments are
    /// dropped.
    private var isOld: Bool {
        !retention.isNone && index.first > 0 && age - begunAge > retention.age / 8
    }

    /// How long the daemon has run, over all of its starts, in milliseconds.
    private var age: Int64 { options.age() + earlierAge }

    private var indexes: [SegmentIndex] { ended.map(\.index) + [index] }

    /// The floor if so many of the oldest segments are dropped.
    ///
    /// A segment's links that are not carried lead to its line or above. So from the first segment on
    /// from which no line is below the first revision that is left, all links lead to something that is
    /// there. A later line may be lower: more is kept since then.
    private func floor(dropping count: Int) -> Int64 {
        max(leastFloor, ownFloor(dropping: count))
    }

    private func ownFloor(dropping count: Int) -> Int64 {
        // Nothing was before the first segment of all: it has everything from its line on.
        let first = ended.first?.segment.header ?? header
        if count == 0, first.predecessor.segment == 0 { return first.carryLine - 1 }
        let indexes = indexes
        let oldest = indexes[count...].first { $0.first > 0 }?.first ?? Int64.max
        let lines = ended.map(\.segment.header.carryLine) + [header.carryLine]
        let whole = lines[count...].reversed().prefix { $0 >= oldest }.count
        let revision = indexes.suffix(whole).first { $0.first > 0 }?.first
        return revision.map { $0 - 1 } ?? indexes.map(\.last).max() ?? 0
    }

    /// The oldest segment that a share of the retention reaches into.
    private func reach(of retention: LogRetention) -> Int {
        let (indexes, now) = (indexes, age)
        var position = indexes.count - 1
        var (changeCount, byteCount) = (indexes[position].changeCount, indexes[position].byteCount)
        while position > 0, changeCount < retention.changeCount, byteCount < retention.byteCount,
            now - indexes[position - 1].age <= retention.age
        {
            position -= 1
            changeCount += indexes[position].changeCount
            byteCount += indexes[position].byteCount
        }
        return position
    }

    /// Half a retention back, or above what nobody may ask for.
    ///
    /// So half of what is kept beyond the retention is what links lead to.
    private var nextCarryLine: Int64 {
        guard !retention.isNone else { return 0 }
        let first = indexes[reach(of: retention.halved)...].first { $0.first > 0 }?.first
        // Where nothing is so young, everything is carried.
        return max(first ?? lastRevision + 1, leastFloor + 1)
    }

    /// How many of the oldest segments may be dropped, and the floor that results, if everything before
    /// `place` is elsewhere, durably.
    package func planDrop(before place: LogPlace) -> (count: Int, floor: Int64) {
        let limit = ended.prefix { $0.segment.header.number < place.segment }.count
        guard !retention.isNone else { return (limit, floor(dropping: limit)) }
        let kept = indexes[reach(of: retention)...].first { $0.first > 0 }?.first ?? 1
        let wanted = max(kept - 1, floor)
        // It rises with the count.
        let count = (0...limit).prefix { floor(dropping: $0) <= wanted }.last ?? 0
        return (count, floor(dropping: count))
    }

    /// Lets all of the past go if the retention asks for no more than the last two segments have, and links
    /// of these lead to so many others that none can be dropped: they were made for a longer retention.
    ///
    /// - Returns: Whether segments can be dropped now that could not be before.
    package func giveUpHeldHistory() -> Bool {
        guard ended.count > 1, planDrop(before: syncedPlace).count == 0,
            reach(of: retention) >= indexes.count - 2
        else { return false }
        leastFloor = max(leastFloor, lastRevision)
        return planDrop(before: syncedPlace).count > 0
    }

    // MARK: Failures

    /// Writes everything since the last good sync again, into another file: its header makes what is
    /// behind the end that it names void.
    private func replace(after failure: LogFileFailure) throws(StateError) {
        let deadline = options.now() + options.patience
        while true {
            do throws(StateError) { return try replaceOnce() } catch {
                // Nobody makes room while this waits.
                guard error.code != .noSpace, options.now() < deadline else {
                    isBroken = true
                    throw unknown("\(failure.sentence); \(error.message)")
                }
                options.pause()
            }
        }
    }

    private func replaceOnce() throws(StateError) {
        let (made, size) = try makeReplacement(kept.map(\.frame))
        begin(made, size, frames: kept)
        replacedCount += 1
        (isBroken, writeFailure) = (false, nil)
    }

    /// A segment with frames of this one: in a new file, or where there is no room for one in a file that
    /// was prepared.
    private func makeReplacement(
        _ frames: [Frame]
    ) throws(StateError) -> (LogScan.Segment, byteCount: Int) {
        let needed = frames.reduce(SegmentHeader.byteCount + index.closingByteCount) {
            $0 + $1.byteCount
        }
        do throws(StateError) {
            let size = max(needed, options.segmentByteCount)
            let header = makeReplacementHeader()
            return (try StateLog.make(header, size, frames, files, slot: &nextSlot), size)
        } catch {
            guard error.code == .noSpace, let spare = takeSpare(needed) else { throw error }
            let header = makeReplacementHeader()
            do throws(LogFileFailure) {
                // Order matters: the frames are durable before the header by which they count.
                let bytes = StateLog.coded(frames, header).bytes
                try spare.file.write(bytes, at: SegmentHeader.byteCount)
                try spare.file.sync()
                try StateLog.write(header, to: spare.file)
            } catch {
                spare.remove(from: files)
                throw StateLog.refusal(error)
            }
            let segment = LogScan.Segment(name: spare.name, file: spare.file, header: header)
            return (segment, spare.byteCount)
        }
    }

    /// Each attempt has another number, and the highest counts: nobody can say what became of one that
    /// failed.
    private func makeReplacementHeader() -> SegmentHeader {
        // The frames were made for the line of the segment where they were.
        makeHeader(
            after: kept.first?.offset ?? end,
            kept.first?.before ?? checksum,
            carryLine: carryLine
        )
    }

    private func unknown(_ reason: String) -> StateError {
        StateError(.readOnly, "\(StateError.unknownOutcome): \(reason)")
    }

    /// Decides that frames of unknown outcome are void: those since the last good sync, but for those that
    /// are published, which are written again.
    ///
    /// - Returns: How many frames of commits that are not published, since the last ``sync()`` that
    ///   returned, are durable; the others will never be there.
    /// - Throws: ``StateError/Code/noSpace`` or ``StateError/Code/readOnly``: it is still unknown; call
    ///   this again.
    package func dropUnknown() throws(StateError) -> Int {
        let known = kept.filter { $0.end <= syncedEnd }
        let unknown = kept[known.count...]
        guard isBroken else { return untoldDurableCount }
        if let first = unknown.first { (end, checksum) = (first.offset, first.before) }
        kept = known + unknown.filter(\.frame.isPublished)
        if known.isEmpty, !kept.isEmpty { (kept[0].offset, kept[0].before) = (end, checksum) }
        untoldCount = untoldDurableCount
        try replaceOnce()
        defer { (untoldCount, untoldDurableCount) = (0, 0) }
        return untoldDurableCount
    }

    /// Makes the name and the header of the last segment durable: the one that wrote them may have ended
    /// before it could.
    private func confirmHeader() throws(StateError) {
        do throws(LogFileFailure) {
            try StateLog.write(header, to: segment.file)
            try files.syncNames()
        } catch {
            throw StateError(.storage, "the log cannot be made durable: \(error.sentence)")
        }
    }

    /// Writes both copies, the second once the first is durable: until then it is that of the life
    /// before.
    static func write(
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
        var bytes = try LogScan.contents(of: segment.file, start..<end)
        let rest = bytes.count % SegmentHeader.blockByteCount
        if rest > 0 {
            bytes += Array(repeating: 0, count: SegmentHeader.blockByteCount - rest)
        }
        do throws(LogFileFailure) {
            try segment.file.write(bytes, at: start)
            try segment.file.sync()
        } catch {
            return try replace(after: error)
        }
        noteSynced(upTo: end)
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

/// The names that the files of a log had at some moment.
package struct LogNames: Sendable {
    fileprivate let files: any LogFiles
    fileprivate let segments: [(name: String, file: any LogFile)]

    /// Which of the files was removed or replaced, as a sentence; nil if none was: what is appended would
    /// not be found by a start.
    package var finding: String? { files.finding(among: segments) }
}

/// How much of the past a log keeps: what meets all of it.
package struct LogRetention: Hashable, Sendable {
    package var changeCount = 0
    /// Bytes of the contents of frames.
    package var byteCount = 0
    /// Milliseconds that the daemon ran.
    package var age: Int64 = 0

    package init() {}

    package init(changeCount: Int, byteCount: Int, age: Int64) {
        (self.changeCount, self.byteCount, self.age) = (changeCount, byteCount, age)
    }

    package var isNone: Bool { changeCount <= 0 || byteCount <= 0 || age <= 0 }

    package var halved: LogRetention {
        LogRetention(changeCount: changeCount / 2, byteCount: byteCount / 2, age: age / 2)
    }

    /// What both keep.
    package func shared(with other: LogRetention) -> LogRetention {
        LogRetention(
            changeCount: min(changeCount, other.changeCount),
            byteCount: min(byteCount, other.byteCount),
            age: min(age, other.age)
        )
    }
}
