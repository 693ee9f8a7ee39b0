package import StateModel

/// A file for a later segment: it has a header that says that it is none, and anything behind it.
///
/// What is behind it never passes for a frame: a segment has a secret of its own in all checksums.
package struct LogSpare: Sendable {
    let name: String
    let file: any LogFile
    package let byteCount: Int

    private init(_ name: String, _ file: any LogFile, _ byteCount: Int) {
        (self.name, self.file, self.byteCount) = (name, file, byteCount)
    }

    init(_ segment: LogScan.Segment) throws(StateError) {
        let count = try LogScan.reading { () throws(LogFileFailure) in
            try segment.file.byteCount()
        }
        self.init(segment.name, segment.file, count)
    }

    /// Removes the file; a crash may bring it back, as another spare.
    package func remove(from files: any LogFiles) { try? files.remove(name) }

    /// A file that is not there yet.
    package struct Plan: Sendable {
        let files: any LogFiles
        let name: String
        let header: SegmentHeader
        let byteCount: Int

        /// Makes the file, full of zeros, in pieces that are synced one after the other.
        ///
        /// - Throws: ``StateError/Code/noSpace`` or ``StateError/Code/readOnly``; the file is removed.
        package func prepare() throws(StateError) -> LogSpare {
            do throws(LogFileFailure) {
                let file = try StateLog.write(
                    header,
                    byteCount,
                    [],
                    files,
                    named: name,
                    syncingPieces: true
                )
                return LogSpare(name + LogScan.suffix, file, byteCount)
            } catch {
                StateLog.remove(name, from: files)
                throw StateError(
                    error.isNoSpace ? .noSpace : .readOnly,
                    "no file can be prepared for the log: \(error.sentence)"
                )
            }
        }
    }

    /// A segment that is not in the log any more.
    package struct Dropped: Sendable {
        let segment: LogScan.Segment
        let life: UInt64

        package func byteCount() throws(StateError) -> Int { try LogSpare(segment).byteCount }

        /// Removes the file; a crash may bring it back, as the oldest segment of the log.
        package func remove(from files: any LogFiles) { try? files.remove(segment.name) }
    }

    /// Makes a dropped segment void, durably; until then it is the oldest one of the log.
    ///
    /// - Throws: ``StateError/Code/readOnly``; it may be either.
    package init(dropping dropped: Dropped) throws(StateError) {
        var header = SegmentHeader(epoch: dropped.segment.header.epoch, number: 0)
        header.generation = dropped.life
        do throws(LogFileFailure) {
            try StateLog.write(header, to: dropped.segment.file)
        } catch {
            throw StateError(.readOnly, "the log cannot use a segment again: \(error.sentence)")
        }
        try self.init(dropped.segment)
    }
}
