package import StateModel

/// Reads all of a log, which may be in use, and says what is wrong with it; changes nothing.
package struct LogCheck: Hashable, Sendable {
    package private(set) var segmentCount = 0
    package private(set) var changeCount = 0
    /// The last revision.
    package private(set) var revision: Int64 = 0
    /// A sentence for each fault, one of each segment at most.
    package private(set) var findings: [String] = []

    /// How often a log is read again whose segments changed meanwhile.
    private static let attemptLimit = 5

    /// Checks the log in a directory.
    ///
    /// - Parameters:
    ///   - files: The directory.
    ///   - start: Where the database beside it is; nil without one.
    /// - Throws: ``StateError/Code/storage`` if it cannot be read, ``StateError/Code/newerFormat``.
    /// - Complexity: O(*n*) in the bytes of the log.
    package init(_ files: any LogFiles, from start: LogStart? = nil) throws(StateError) {
        for _ in 0..<LogCheck.attemptLimit {
            let before = try LogCheck.headers(files, start)
            self = LogCheck()
            read(before)
            // What is found while a segment is used for another one is no fault.
            guard !findings.isEmpty, try LogCheck.headers(files, start) != before else { return }
        }
    }

    private init() {}

    /// What there is, or why it cannot be told.
    private enum Found: Equatable {
        case log(LogScan)
        case fault(String)

        static func == (one: Found, other: Found) -> Bool {
            switch (one, other) {
            case (.log(let one), .log(let other)):
                one.segments.map(\.header) == other.segments.map(\.header)
            case (.fault(let one), .fault(let other)): one == other
            default: false
            }
        }
    }

    private static func headers(
        _ files: any LogFiles,
        _ start: LogStart?
    ) throws(StateError) -> Found {
        do throws(StateError) { return .log(try LogScan(files, from: start)) } catch {
            guard error.code == .corrupt else { throw error }
            return .fault(error.message)
        }
    }

    private mutating func read(_ found: Found) {
        switch found {
        case .fault(let fault): findings.append(fault)
        case .log(var scan):
            scan.includesAll = true
            for (index, segment) in scan.segments.enumerated() {
                let next = index + 1 < scan.segments.count ? scan.segments[index + 1] : nil
                do throws(StateError) { try read(segment, next, scan) } catch {
                    findings.append(error.message)
                }
            }
        }
    }

    private mutating func read(
        _ segment: LogScan.Segment,
        _ next: LogScan.Segment?,
        _ scan: LogScan
    ) throws(StateError) {
        segmentCount += 1
        var index = SegmentIndex()
        let known = try next.map { next throws(StateError) in try segment.end(before: next.header) }
        let end = try scan.read(segment, upTo: known) {
            (frame, place) throws(LogDamage) in
            guard frame.kind == .commits else { return }
            index.note(try CodedCommits(reading: frame.contents, at: frame.time), at: place.offset)
        }
        changeCount += index.changeCount
        revision = max(revision, index.last)
        guard let next else { return }
        guard segment.isRewritten || end.checksum == next.header.predecessorChecksum else {
            throw StateError(
                .corrupt,
                "segment \(segment.header.number) of the log does not end as \(next.name) says that it does"
            )
        }
        let written = try segment.index(upTo: end.place.offset)
        if segment.isRewritten { index.keepRange(of: written) }
        index.age = written.age
        guard written == index else {
            throw StateError(
                .corrupt,
                "segment \(segment.header.number) of the log has an index that is not its own"
            )
        }
    }
}
