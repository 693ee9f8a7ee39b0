package import StateEngine
package import StateModel

/// Reads all of a log, which may be in use, and says what is wrong with it; changes nothing.
package struct LogCheck: Hashable, Sendable {
    package private(set) var segmentCount = 0
    package private(set) var changeCount = 0
    /// The last revision.
    package private(set) var revision: Int64 = 0
    /// That of the last change of lives: a database that belongs to the log has it, or the one before.
    package private(set) var life: LogLife?
    /// A sentence for each fault, one of each segment at most.
    package private(set) var findings: [String] = []

    /// How often a log is read again whose segments changed meanwhile.
    private static let attemptLimit = 10

    /// Checks the log in a directory.
    ///
    /// - Parameters:
    ///   - files: The directory.
    ///   - start: Where the database beside it is; nil without one.
    ///   - begin: Called before the log is read, and again before it is read once more.
    ///   - receive: Called with each change, whose bytes are borrowed, and the place of its frame.
    /// - Throws: ``StateError/Code/storage`` if it cannot be read, ``StateError/Code/newerFormat``.
    /// - Complexity: O(*n*) in the bytes of the log.
    package init(
        _ files: any LogFiles,
        from start: LogStart? = nil,
        beginning begin: () -> Void = {},
        _ receive: (borrowing StoredChange, LogPlace) -> Void = { _, _ in }
    ) throws(StateError) {
        // What is found while a segment ends or is used for another one, or while a frame is written, is
        // no fault: a fault is found again.
        var found: [String]?
        for attempt in 1... {
            let before: Found
            do throws(StateError) { before = try LogCheck.headers(files, start) } catch {
                // A file may go between two calls.
                guard attempt < LogCheck.attemptLimit, error.code == .storage else { throw error }
                continue
            }
            self = LogCheck()
            begin()
            read(before, receive)
            if findings.isEmpty { return }
            if found == findings, try LogCheck.headers(files, start) == before { return }
            if let found, attempt >= LogCheck.attemptLimit {
                findings.removeAll { !found.contains($0) }
                return
            }
            found = findings
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

    private mutating func read(
        _ found: Found,
        _ receive: (borrowing StoredChange, LogPlace) -> Void
    ) {
        switch found {
        case .fault(let fault): findings.append(fault)
        case .log(var scan):
            scan.includesAll = true
            for (index, segment) in scan.segments.enumerated() {
                let next = index + 1 < scan.segments.count ? scan.segments[index + 1] : nil
                do throws(StateError) { try read(segment, next, scan, receive) } catch {
                    findings.append(error.message)
                }
            }
        }
    }

    private mutating func read(
        _ segment: LogScan.Segment,
        _ next: LogScan.Segment?,
        _ scan: LogScan,
        _ receive: (borrowing StoredChange, LogPlace) -> Void
    ) throws(StateError) {
        segmentCount += 1
        var index = SegmentIndex()
        let known = try next.map { next throws(StateError) in try segment.end(before: next.header) }
        let end = try scan.read(segment, upTo: known, life) {
            (frame, place) throws(LogDamage) in
            guard frame.kind == .commits else { return }
            index.note(try CodedCommits(reading: frame.contents, at: frame.time), at: place.offset)
            try CommitCoder.read(frame.contents, at: frame.time, comparingRows: false) {
                change,
                _ in
                receive(change, place)
            }
        }
        life = end.life
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
