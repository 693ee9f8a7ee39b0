import Glibc
import StateEngine
import StateLog
import StateModel
import StateTestSupport
import Testing

/// A log, and what must be in it.
private final class Workload {
    private(set) var files: SimulatedFiles
    private var log: StateLog?
    private var random: SplitMix
    /// The contents of the frames, in order.
    private(set) var written: [[UInt8]] = []
    /// Those that somebody has seen before they were durable.
    private var published: Set<[UInt8]> = []
    /// Frames of these that could not be appended: one may be the last, if nothing has made it void.
    private var refused: Set<[UInt8]> = []
    /// How many of them are durable.
    private(set) var durableCount = 0
    private(set) var startCount = 0
    private(set) var replacedCount = 0
    private var number = 0

    init(sectorByteCount: Int, seed: UInt64) {
        files = SimulatedFiles(sectorByteCount: sectorByteCount, seed: seed)
        random = SplitMix(seed: seed &+ 1)
    }

    static var options: StateLog.Options {
        var options = StateLog.Options()
        options.segmentByteCount = 32 << 10
        options.largeSegmentByteCount = 48 << 10
        // Two attempts: time passes with each look at the clock.
        let time = Observed<Int64>(0)
        options.now = {
            time.update {
                $0 += 1
                return $0
            }
        }
        options.patience = 2
        options.pause = {}
        return options
    }

    /// Opens the log; what it has is a prefix of what was written, with all that was durable.
    func start() throws {
        var found: [[UInt8]] = []
        log = nil
        log = try StateLog(files, Self.options) { contents, _ in found.append(Array(contents)) }
        try #require(found.count >= durableCount, "\(found.count) of \(durableCount)")
        if let last = found.last, refused.contains(last) {
            written.removeLast(max(0, written.count - found.count + 1))
            written.append(last)
        }
        refused = []
        try #require(found.count <= written.count)
        for (index, contents) in found.enumerated() where contents != written[index] {
            Issue.record("frame \(index) is another one")
            throw StateError(.corrupt, "another frame")
        }
        // What a start has shown is durable.
        written = found
        durableCount = found.count
        startCount += 1
    }

    /// Ends the process, perhaps with the power of the machine.
    func crash(keepsCache: Bool) {
        replacedCount += log?.replacedCount ?? 0
        log = nil
        files = files.restarted(keepsCache: keepsCache)
    }

    private func makeContents() -> CodedCommits {
        number += 1
        let isLarge = random.next() % 40 == 0
        let count = Int(random.next() % (isLarge ? 70_000 : 600))
        let value = (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        return CodedCommits(Int64(number), value: value)
    }

    /// Appends a frame that somebody has seen already, if that is possible without more ado.
    private func appendBriefly(_ log: StateLog) {
        let contents = makeContents()
        guard log.appendBriefly(contents, carryingBelow: log.carryLine, at: 0) else {
            refused.insert(contents.bytes)
            return
        }
        written.append(contents.bytes)
        published.insert(contents.bytes)
    }

    /// Syncs, while another thread appends.
    private func syncBesideAppends(_ log: StateLog) throws(StateError) {
        let count = written.count
        guard let sync = try log.beginSync() else {
            durableCount = count
            return
        }
        if random.next() % 2 == 0 { appendBriefly(log) }
        let result = sync.run()
        if random.next() % 2 == 0 { appendBriefly(log) }
        try log.end(sync, result)
        durableCount = count
    }

    /// One step; returns false if the log can do nothing more.
    func step() throws -> Bool {
        guard let log else { return false }
        var isAppended = true
        do throws(StateError) {
            switch random.next() % 20 {
            case 0: try? log.prepareSpare()
            case 1: try log.mark(at: 0)
            case 6: try log.endLargeSegment(at: 0)
            case 7, 8: appendBriefly(log)
            case 9, 10: try syncBesideAppends(log)
            case 2..<6:
                try log.sync()
                durableCount = written.count
            default:
                let contents = makeContents()
                isAppended = false
                written.append(contents.bytes)
                try log.append(contents, at: 0)
                isAppended = true
                if random.next() % 3 > 0 {
                    try log.sync()
                    durableCount = written.count
                }
            }
        } catch {
            guard error.code == .readOnly || error.code == .noSpace else { throw error }
            guard !files.isOff else { return false }
            if !error.isOutcomeUnknown {
                if !isAppended { written.removeLast() }
                return true
            }
            // The frames since the last sync are unknown; once they are dropped, they are gone, but for those
            // that are published.
            for _ in 0..<5 {
                guard var kept = try? log.dropUnknown() else { continue }
                let known = written[..<durableCount]
                written =
                    known
                    + written[durableCount...].filter { contents in
                        if published.contains(contents) { return true }
                        kept -= 1
                        return kept >= 0
                    }
                durableCount = written.count
                return true
            }
            return false
        }
        return true
    }
}

struct StateLogTests {
    private func isPrefix(_ part: [[UInt8]], of whole: [[UInt8]]) -> Bool {
        part.count <= whole.count && part == Array(whole.prefix(part.count))
    }

    @Test func `a log on a disk gives back what was appended, in order`() throws {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        var expected: [[UInt8]] = []
        var options = StateLog.Options()
        options.segmentByteCount = 64 << 10
        for round in 0..<4 {
            var found: [[UInt8]] = []
            let files = try LogDirectory(directory.path(of: "log"))
            let log = try StateLog(files, options) { contents, _ in found.append(Array(contents)) }
            #expect(found == expected)
            if round == 1 { try log.prepareSpare() }
            for number in 0..<300 {
                let value =
                    Array("\(round).\(number)".utf8) + [UInt8](repeating: 7, count: number)
                let contents = CodedCommits(Int64(round * 300 + number + 1), value: value)
                try log.append(contents, at: 0)
                try log.sync()
                expected.append(contents.bytes)
            }
        }
    }

    /// Each call of a run, at which the power goes, and what a start finds then, and the start after it.
    @Test(arguments: [512, 4_096], 0..<40)
    func `durable before acknowledged: a power cut at any call loses nothing that was synced`(
        sectorByteCount: Int,
        seed: Int
    ) throws {
        let run = Workload(sectorByteCount: sectorByteCount, seed: UInt64(seed) * 77)
        var random = SplitMix(seed: UInt64(seed) + 9)
        try run.start()
        for _ in 0..<30 {
            let limit = Int(1 + random.next() % 120)
            let before = run.files.callCount
            run.files.fault = { $0 - before == limit ? .powerCut : nil }
            while try run.step() {}
            run.crash(keepsCache: false)
            // The next start may be cut short, too.
            let cut = Int(random.next() % 30)
            run.files.fault = { $0 == cut ? .powerCut : nil }
            while (try? run.start()) == nil {
                guard run.files.isOff else { return try run.start() }
                run.crash(keepsCache: false)
            }
        }
        #expect(run.startCount >= 30)
    }

    /// A process that is killed, a start that believes the page cache, and a power cut.
    @Test(arguments: 0..<40)
    func `durable before told: what a start has shown is there after a power cut`(seed: Int) throws
    {
        let run = Workload(sectorByteCount: 512, seed: UInt64(seed) * 31 + 5)
        var random = SplitMix(seed: UInt64(seed))
        try run.start()
        for round in 0..<40 {
            let before = run.files.callCount
            let failing = Int(1 + random.next() % 40)
            // A sync fails just before the process ends: the cache has what the disk has not.
            run.files.fault = { number in
                number - before >= failing ? .refuses(EIO) : nil
            }
            while run.files.callCount - before < failing + 3, try run.step() {}
            run.crash(keepsCache: round % 3 != 2)
            try run.start()
        }
    }

    @Test(arguments: 0..<60)
    func `never silent about storage: failed calls lose nothing, and most refuse nobody`(
        seed: Int
    ) throws {
        let run = Workload(sectorByteCount: seed % 2 == 0 ? 512 : 4_096, seed: UInt64(seed) * 13)
        let random = Observed(SplitMix(seed: UInt64(seed) &* 1_000_003))
        try run.start()
        for round in 0..<25 {
            let codes = [EIO, ENOSPC, EDQUOT]
            run.files.fault = { _ in
                random.update { random in
                    let code = codes[Int(random.next() % 3)]
                    switch random.next() % 60 {
                    case 0: return .refuses(code)
                    case 1: return .tears(code)
                    default: return nil
                    }
                }
            }
            for _ in 0..<60 where try !run.step() { break }
            run.files.fault = { _ in nil }
            run.crash(keepsCache: round % 2 == 0)
            try run.start()
        }
        #expect(run.replacedCount > 0)
    }

    @Test(arguments: [false, true], 0..<20)
    func
        `never silent about storage: a log on a full disk loses nothing, and goes on once there is room`(
            isCopyOnWrite: Bool,
            seed: Int
        ) throws
    {
        let run = Workload(sectorByteCount: 4_096, seed: UInt64(seed) * 19 + 3)
        run.files.isCopyOnWrite = isCopyOnWrite
        var random = SplitMix(seed: UInt64(seed) &+ 71)
        try run.start()
        for round in 0..<15 {
            run.files.capacity = run.files.usedByteCount + Int(random.next() % 90_000)
            for _ in 0..<60 { _ = try run.step() }
            run.files.capacity = nil
            let before = run.durableCount
            for _ in 0..<60 { _ = try run.step() }
            #expect(run.durableCount > before)
            run.crash(keepsCache: round % 2 == 0)
            try run.start()
        }
    }

    @Test func `nothing is zeroed in advance or used again where a write takes another block`()
        throws
    {
        let files = SimulatedFiles(sectorByteCount: 4_096, seed: 1)
        files.isCopyOnWrite = true
        let log = try StateLog(files, Workload.options) { _, _ in }
        #expect(files.usedByteCount == 8 << 10)
        #expect(files.byteCount(of: "1.log") == 32 << 10)
        #expect(log.planSpare() == nil && !log.wants(spareOf: 32 << 10))
        for revision in 1...200 as ClosedRange<Int64> {
            try log.append(CodedCommits(revision, value: Array(repeating: 7, count: 900)), at: 0)
            try log.sync()
        }
        #expect(log.planSpare() == nil)
        // Each block was taken by what was written to it.
        #expect(files.usedByteCount < 200 * 1_000 * 5 / 4)
        let number = Int64(log.segmentCount)
        #expect(number > 3)
        for dropped in log.drop(2) { dropped.remove(from: files) }
        #expect(try files.names().count == Int(number) - 2)
    }

    @Test func `dropped files are kept for later segments while much is written and there is room`()
        throws
    {
        let files = SimulatedFiles(sectorByteCount: 4_096, seed: 3)
        var options = Workload.options
        options.soon = .max
        let log = try StateLog(files, options) { _, _ in }
        for revision in 1...600 as ClosedRange<Int64> {
            try log.append(CodedCommits(revision, value: Array(repeating: 7, count: 900)), at: 0)
            try log.sync()
            try log.prepareSpare()
        }
        // Two are prepared at last.
        while log.planSpare() != nil { try log.prepareSpare() }
        #expect(log.segmentCount > 10)
        /// Drops segments, and keeps the files that the log wants.
        func drop(_ count: Int) throws -> Int {
            var keptCount = 0
            for dropped in log.drop(count) {
                guard log.wants(spareOf: try dropped.byteCount()) else {
                    dropped.remove(from: files)
                    continue
                }
                log.offer(try LogSpare(dropping: dropped))
                keptCount += 1
            }
            return keptCount
        }
        // The first ones are small.
        for dropped in log.drop(2) { dropped.remove(from: files) }
        log.spareByteLimit = 2 * 48 << 10
        #expect(try drop(2) == 0)
        log.spareByteLimit = .max
        #expect(try drop(3) == 1)
        #expect(log.planSpare() == nil)
        // Once little is written, it has as many as it would prepare.
        #expect(log.takeExtraSpares().count == 1)
        #expect(log.takeExtraSpares().isEmpty)
    }

    @Test func `a large segment that ends early takes no more room than its frames`() throws {
        let files = SimulatedFiles(sectorByteCount: 4_096, seed: 9)
        var options = Workload.options
        options.largeSegmentByteCount = 256 << 10
        options.soon = .max
        let log = try StateLog(files, options) { _, _ in }
        var written: [[UInt8]] = []
        func append(_ count: Int) throws {
            for _ in 0..<count {
                let revision = Int64(written.count + 1)
                let contents = CodedCommits(revision, value: Array(repeating: 7, count: 900))
                try log.append(contents, at: 0)
                try log.sync()
                written.append(contents.bytes)
            }
        }
        try append(20)
        try log.endLargeSegment(at: 0)
        #expect(log.segmentCount == 1)
        // The next one is full soon, and the one after it large.
        try append(20)
        try log.prepareSpare()
        try append(20)
        let before = files.usedByteCount
        try log.endLargeSegment(at: 0)
        #expect(files.usedByteCount < before - (150 << 10))
        try append(3)
        var found: [[UInt8]] = []
        for keepsCache in [true, false] {
            found = []
            let copy = files.restarted(keepsCache: keepsCache)
            _ = try StateLog(copy, options) { contents, _ in found.append(Array(contents)) }
            #expect(found == written)
        }
    }

    @Test func `nobody is refused where a failed sync meets a full disk and a file is prepared`()
        throws
    {
        let files = SimulatedFiles(sectorByteCount: 512, seed: 3)
        var written: [[UInt8]] = []
        let log = try StateLog(files, Workload.options) { _, _ in }
        try log.prepareSpare()
        files.capacity = files.usedByteCount
        for revision in 1...5 as ClosedRange<Int64> {
            let contents = CodedCommits(revision, value: [7, 7, UInt8(revision)])
            try log.append(contents, at: 0)
            written.append(contents.bytes)
            // The last sync of a round fails.
            if revision == 5 {
                let call = files.callCount + 1
                files.fault = { $0 == call ? .refuses(EIO) : nil }
            }
            try log.sync()
        }
        #expect(log.replacedCount == 1)
        var found: [[UInt8]] = []
        _ = try StateLog(files.restarted(keepsCache: false), Workload.options) { contents, _ in
            found.append(Array(contents))
        }
        #expect(found == written)
    }

    @Test func `a segment on a full disk goes on although a large one was to end early`() throws {
        let files = SimulatedFiles(sectorByteCount: 512, seed: 4)
        var options = Workload.options
        options.largeSegmentByteCount = 256 << 10
        options.soon = .max
        let log = try StateLog(files, options) { _, _ in }
        var revision: Int64 = 0
        func append() throws {
            revision += 1
            try log.append(CodedCommits(revision, value: Array(repeating: 7, count: 900)), at: 0)
            try log.sync()
        }
        for _ in 0..<40 { try append() }
        try log.prepareSpare()
        for _ in 0..<20 { try append() }
        files.capacity = files.usedByteCount
        #expect(throws: StateError.self) { try log.endLargeSegment(at: 0) }
        for _ in 0..<40 { try append() }
        var last: Int64 = 0
        _ = try StateLog(files.restarted(keepsCache: false), options) { contents, time in
            try CommitCoder.read(contents, at: time) { change, _ in last = change.revision }
        }
        #expect(last == revision)
    }

    @Test func `bounded: bytes that look like heads of frames cost a start few reads`() throws {
        let files = SimulatedFiles(sectorByteCount: 4_096, seed: 7)
        var options = Workload.options
        options.segmentByteCount = 512 << 10
        let log = try StateLog(files, options) { _, _ in }
        try log.append(CodedCommits(1, value: [1]), at: 0)
        try log.sync()
        // As a value that a client has chosen is left in a file that is used again: a length of more than is
        // read at once, and the kind of a frame.
        let head: [UInt8] = [0, 128, 4, 0, 7, 7, 7, 7, 7, 7, 7, 7, 1, 0, 0, 0]
        let value = (0..<(448 << 10)).map { head[$0 % head.count] }
        let file = try files.open(try #require(files.names().first))
        try value.withUnsafeBytes { try file.write($0, at: 64 << 10) }
        let next = files.restarted(keepsCache: true)
        var count = 0
        _ = try StateLog(next, options) { _, _ in count += 1 }
        #expect(count == 1 && next.callCount < 50, "\(next.callCount) calls")
    }

    @Test
    func `unique: what somebody has seen is in the log once, however often its write fails`() throws
    {
        let files = SimulatedFiles(sectorByteCount: 512, seed: 5)
        let log = try StateLog(files, Workload.options) { _, _ in }
        let seen = CodedCommits(1, value: [1])
        files.fault = { _ in .refuses(EIO) }
        #expect(throws: StateError.self) {
            try log.append(at: 0, isPublished: true) { _ in seen }
        }
        #expect(throws: StateError.self) { try log.sync() }
        files.fault = { _ in nil }
        #expect(try log.dropUnknown() == 0)
        try log.append(at: 0, isPublished: true) { _ in seen }
        try log.append(CodedCommits(2, value: [2]), at: 0)
        try log.sync()
        var revisions: [Int64] = []
        _ = try StateLog(files.restarted(keepsCache: false), Workload.options) { contents, time in
            try CommitCoder.read(contents, at: time) { change, _ in
                revisions.append(change.revision)
            }
        }
        #expect(revisions == [1, 2])
    }

    @Test func `bounded: a file that could not be made is not left behind`() throws {
        let files = SimulatedFiles(sectorByteCount: 512, seed: 6)
        let log = try StateLog(files, Workload.options) { _, _ in }
        try log.append(CodedCommits(1, value: [1]), at: 0)
        try log.sync()
        let before = try files.names().count
        // Each call of making a file fails in turn, that of the directory's sync, too.
        for failing in 1...40 {
            let call = files.callCount + failing
            files.fault = { $0 == call ? .refuses(EIO) : nil }
            try? log.prepareSpare()
            files.fault = { _ in nil }
            for spare in log.takeSpares(keepingOne: false) { spare.remove(from: files) }
            #expect(try files.names().count == before)
        }
    }

    @Test func `a flipped bit in what was durable is damage, and never an older state`() throws {
        var (damaged, unchanged) = (0, 0)
        for seed in 0..<400 {
            let run = Workload(sectorByteCount: 512, seed: 4)
            try run.start()
            for _ in 0..<150 { _ = try run.step() }
            run.crash(keepsCache: true)
            try run.start()
            let names = try run.files.names().sorted()
            var random = SplitMix(seed: UInt64(seed))
            let name = names[Int(random.next() % UInt64(names.count))]
            let offset = Int(random.next() % UInt64(run.files.byteCount(of: name)))
            let whole = run.written
            run.crash(keepsCache: true)
            run.files.flip(name, offset, Int(random.next() % 8))
            var found: [[UInt8]] = []
            do {
                _ = try StateLog(run.files, Workload.options) { contents, _ in
                    found.append(Array(contents))
                }
                // The flip was in a copy of a header, in what is void, or in the last frames, which
                // nothing proves to have been durable.
                #expect(isPrefix(found, of: whole))
                #expect(
                    whole.count - found.count <= 12,
                    "\(name) \(offset): \(found.count) of \(whole.count)"
                )
                unchanged += 1
            } catch {
                #expect(error.code == .corrupt, "\(error)")
                damaged += 1
            }
        }
        #expect(damaged > 100 && unchanged > 20, "\(damaged) \(unchanged)")
    }

    @Test func `a segment that is missing is named`() throws {
        let run = Workload(sectorByteCount: 512, seed: 8)
        try run.start()
        for _ in 0..<400 { _ = try run.step() }
        run.crash(keepsCache: true)
        let names = try run.files.names().filter { $0.hasSuffix(".log") }.sorted()
        var missed = 0
        for name in names {
            let copy = run.files.restarted(keepsCache: true)
            copy.forget(name)
            var found: [[UInt8]] = []
            do {
                _ = try StateLog(copy, Workload.options) { contents, _ in
                    found.append(Array(contents))
                }
                #expect(found == run.written, "\(name) was a spare")
            } catch {
                #expect(error.code == .corrupt)
                missed += 1
            }
        }
        #expect(missed > 3)
    }

    /// The frames that are left of a log, and how often some are missing.
    private func remains(_ files: SimulatedFiles) throws -> (frames: [[UInt8]], gaps: [String]) {
        var (frames, gaps): ([[UInt8]], [String]) = ([], [])
        _ = try LogRemains(files).read { part in
            switch part {
            case .frame(let contents, _, _): frames.append(Array(contents))
            case .gap(let sentence): gaps.append(sentence)
            case .damaged, .end: break
            }
        }
        return (frames, gaps)
    }

    @Test(arguments: 0..<20)
    func `what is left of a log is every frame that is whole, and none that is void`(
        seed: Int
    ) throws {
        let run = Workload(sectorByteCount: 512, seed: UInt64(seed) * 19 + 3)
        var random = SplitMix(seed: UInt64(seed) &* 1_000_003)
        try run.start()
        for round in 0..<6 {
            run.files.fault = { _ in
                switch random.next() % 40 {
                case 0: .refuses(EIO)
                case 1: .tears(EIO)
                default: nil
                }
            }
            for _ in 0..<40 { guard try run.step() else { break } }
            run.files.fault = { _ in nil }
            run.crash(keepsCache: round % 2 == 0)
            try run.start()
        }
        run.crash(keepsCache: true)
        let whole = try remains(run.files)
        #expect(whole.frames == run.written && whole.gaps.isEmpty, "\(whole.gaps)")
        let names = try run.files.names().filter { $0.hasSuffix(".log") }.sorted()
        for _ in 0..<20 {
            let name = names[Int(random.next() % UInt64(names.count))]
            let place = Int(random.next() % UInt64(run.files.byteCount(of: name)))
            run.files.flip(name, place, 3)
            defer { run.files.flip(name, place, 3) }
            let found = try remains(run.files)
            let missing = run.written.filter { !found.frames.contains($0) }
            #expect(found.frames == run.written.filter { !missing.contains($0) })
            #expect(missing.count <= 1, "\(name), byte \(place)")
            let isLast = missing == [run.written.last ?? []]
            #expect(missing.isEmpty || isLast || !found.gaps.isEmpty, "\(name), byte \(place)")
        }
    }

    @Test func `a check finds nothing in a log that is whole, and each flip that a start finds`()
        throws
    {
        var (found, missed) = (0, 0)
        for seed in 0..<80 {
            let run = Workload(sectorByteCount: 512, seed: 5)
            try run.start()
            for _ in 0..<120 { _ = try run.step() }
            run.crash(keepsCache: true)
            try run.start()
            run.crash(keepsCache: true)
            let whole = try LogCheck(run.files)
            try #require(whole.findings.isEmpty, "\(whole.findings)")
            #expect(whole.changeCount == run.written.count && whole.segmentCount > 1)
            let names = try run.files.names().sorted()
            var random = SplitMix(seed: UInt64(seed) &+ 77)
            let name = names[Int(random.next() % UInt64(names.count))]
            let offset = Int(random.next() % UInt64(run.files.byteCount(of: name)))
            run.files.flip(name, offset, Int(random.next() % 8))
            let check = try LogCheck(run.files)
            let isDamaged: Bool
            do {
                _ = try StateLog(run.files, Workload.options) { _, _ in }
                isDamaged = false
            } catch {
                isDamaged = true
            }
            // A check reads what a start need not, such as an index.
            #expect(!isDamaged || !check.findings.isEmpty, "\(name) \(offset)")
            if check.findings.isEmpty { missed += 1 } else { found += 1 }
        }
        #expect(found > 20 && missed > 2, "\(found) \(missed)")
    }
}
