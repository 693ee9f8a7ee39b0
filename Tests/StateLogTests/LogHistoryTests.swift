import Glibc
import StateEngine
import StateLog
import StateModel
import StateTestSupport
import Testing

/// A log with a history, beside every state that it ever had.
private final class Past {
    struct Version: Equatable {
        var revision: Int64
        var ordinal: Int32
        var value: [UInt8]?
        /// The place of the version that it superseded, deletes included.
        var previous: HistoryPlace?
    }

    private var files: SimulatedFiles
    private(set) var log: StateLog
    private var random: SplitMix
    private(set) var states: [[String: Version]] = [[:]]
    private(set) var carriedCount = 0
    private(set) var droppedCount = 0
    private(set) var replacedCount = 0
    private(set) var highestFloor: Int64 = 0
    private var start: LogStart?
    private let age = Observed<Int64>(0)
    var retention: LogRetention { didSet { log.retention = retention } }

    var revision: Int64 { Int64(states.count - 1) }

    init(seed: UInt64, _ retention: LogRetention) throws {
        files = SimulatedFiles(sectorByteCount: 512, seed: seed)
        random = SplitMix(seed: seed &+ 5)
        self.retention = retention
        log = try StateLog(files, Past.options(age)) { _, _ in }
        log.retention = retention
    }

    private static func options(_ age: Observed<Int64>) -> StateLog.Options {
        var options = StateLog.Options()
        options.segmentByteCount = 20 << 10
        options.largeSegmentByteCount = 80 << 10
        let time = Observed<Int64>(0)
        options.now = {
            time.update {
                $0 += 30_000_000_000
                return $0
            }
        }
        options.age = { age.update { $0 } }
        return options
    }

    /// Ends the process, and begins again from a place up to which everything is elsewhere.
    func restart() throws {
        let place = start
        replacedCount += log.replacedCount
        files = files.restarted(keepsCache: random.next() & 1 == 0)
        log = try StateLog(files, Past.options(age), from: place) { _, _ in }
        log.retention = retention
    }

    func commit() throws {
        age.update { $0 += 1 }
        let revision = revision + 1
        var state = states[states.count - 1]
        var changes: [(key: String, version: Version, before: Version?)] = []
        for ordinal in 0..<Int32(1 + random.next() % 3) {
            // Some keys change seldom, and others all the time.
            let key = random.next() % 4 == 0 ? "slow\(random.next() % 300)" : "fast\(ordinal)"
            let before = state[key]
            if before?.revision == revision { continue }
            let isDelete = before?.value != nil && random.next() % 5 == 0
            let value = (0..<Int(random.next() % 200)).map { UInt8(truncatingIfNeeded: $0) }
            let version = Version(
                revision: revision,
                ordinal: ordinal,
                value: isDelete ? nil : value,
                previous: before.map { HistoryPlace(revision: $0.revision, ordinal: $0.ordinal) }
            )
            changes.append((key, version, before))
            state[key] = version
        }
        try log.append(at: 0) { carryLine in
            var coder = CommitCoder(at: 0)
            let cause = Array("tester".utf8)
            cause.withUnsafeBytes { coder.begin(revision, at: 0, cause: $0) }
            for (key, version, before) in changes {
                append(key, version, before, cause, carryLine, to: &coder)
            }
            return coder.commits
        }
        if random.next() % 97 == 0 {
            // Another file takes over.
            let next = files.callCount + 1
            files.fault = { $0 == next ? .refuses(EIO) : nil }
        }
        try log.sync()
        states.append(state)
    }

    private func append(
        _ key: String,
        _ version: Version,
        _ before: Version?,
        _ cause: [UInt8],
        _ carryLine: Int64,
        to coder: inout CommitCoder
    ) {
        var link = ChangeLink()
        link.isAfterDelete = before.map { $0.value == nil } ?? false
        if let before, let value = before.value, before.revision < carryLine {
            carriedCount += 1
            link.carried = PastChange(
                at: HistoryPlace(revision: before.revision, ordinal: before.ordinal),
                created: before.revision,
                owner: 0,
                version: 1,
                time: 0,
                expires: nil,
                cause: cause,
                value: value
            )
        }
        func borrow(_ bytes: [UInt8]?, _ body: (Bytes?) -> Void) {
            guard let bytes else { return body(nil) }
            bytes.withUnsafeBytes { body($0) }
        }
        Array(key.utf8).withUnsafeBytes { key in
            cause.withUnsafeBytes { cause in
                borrow(version.value) { value in
                    let change = StoredChange(
                        revision: version.revision,
                        ordinal: version.ordinal,
                        key: key,
                        value: value,
                        created: version.revision,
                        owner: 0,
                        version: 1,
                        time: 0,
                        cause: cause,
                        previousRevision: version.previous?.revision ?? 0,
                        previousOrdinal: version.previous?.ordinal ?? 0
                    )
                    coder.append(change, link, cause: cause)
                }
            }
        }
    }

    /// Drops what nobody needs; everything is elsewhere.
    func drop() throws {
        // Only prepared files are large.
        try log.prepareSpare()
        let plan = log.planDrop(before: log.syncedPlace)
        start = LogStart(epoch: log.epoch, place: log.syncedPlace)
        for dropped in log.drop(plan.count) {
            droppedCount += 1
            if random.next() & 1 == 0 {
                if let spare = try? LogSpare(dropping: dropped) { log.offer(spare) }
            } else {
                dropped.remove(from: files)
            }
        }
        #expect(log.floor == plan.floor)
        #expect(log.floor >= highestFloor)
        highestFloor = log.floor
    }

    /// Compares the state at a revision with what the log says of it and of the newest versions.
    func check(at revision: Int64) throws {
        let view = log.view()
        var first: [String: (place: HistoryPlace, previous: HistoryPlace?, isAfterDelete: Bool)] =
            [:]
        let isWhole = try view.forEachChange(
            after: .end(of: revision),
            through: self.revision
        ) { change, link in
            let key = String(decoding: change.key, as: UTF8.self)
            if first[key] == nil {
                first[key] = (change.place, change.previousPlace, link.isAfterDelete)
            }
            return true
        }
        try #require(isWhole)
        let newest = states[states.count - 1]
        let expected = states[Int(revision)].compactMapValues(\.value)
        var found: [String: [UInt8]] = [:]
        var known = LogView.KnownFrames()
        for (key, version) in newest {
            guard let change = first[key] else {
                found[key] = version.value
                continue
            }
            guard let place = change.previous, !change.isAfterDelete else { continue }
            let isThere = try view.withChange(
                at: place,
                supersededBy: change.place,
                remembering: &known
            ) {
                found[key] = $0.value.map { Array($0) }
            }
            try #require(isThere, "\(key) at \(revision), floor \(view.floor)")
        }
        try #require(found == expected, "revision \(revision), floor \(view.floor)")
    }

    /// The check of all that is on the disk.
    func checkFiles() throws {
        let check = try LogCheck(files, from: start)
        #expect(check.findings.isEmpty, "\(check.findings)")
        #expect(check.revision == revision && check.segmentCount == log.segmentCount)
    }

    /// All changes since a revision, in order.
    func checkChanges(since revision: Int64) throws {
        var last = HistoryPlace.end(of: revision)
        var revisions: Set<Int64> = []
        _ = try log.view().forEachChange(after: last, through: .max) { change, _ in
            #expect(change.place > last)
            last = change.place
            revisions.insert(change.revision)
            return true
        }
        let expected = (revision + 1..<self.revision + 1).filter { revision in
            states[Int(revision)].values.contains { $0.revision == revision }
        }
        #expect(revisions == Set(expected))
    }
}

struct LogHistoryTests {
    @Test(
        arguments: [
            LogRetention(changeCount: 600, byteCount: 1 << 30, age: 1 << 30),
            LogRetention(changeCount: 1 << 30, byteCount: 90_000, age: 1 << 30),
            LogRetention(changeCount: 1 << 30, byteCount: 1 << 30, age: 250),
        ],
        0..<2
    )
    func `every state from the floor on is there, whatever was dropped`(
        retention: LogRetention,
        seed: Int
    ) throws {
        let past = try Past(seed: UInt64(seed) * 3 + 1, retention)
        var random = SplitMix(seed: UInt64(seed))
        for _ in 0..<30 {
            for _ in 0..<100 { try past.commit() }
            if random.next() % 3 > 0 { try past.drop() }
            if random.next() % 4 == 0 { try past.restart() }
            let floor = past.log.floor
            #expect(floor < past.revision)
            try past.check(at: floor)
            for _ in 0..<4 {
                let count = UInt64(past.revision - floor)
                try past.check(at: floor + Int64(random.next() % count))
            }
            try past.checkChanges(since: floor)
            try past.checkFiles()
        }
        #expect(past.droppedCount > 10 && past.carriedCount > 50 && past.replacedCount > 2)
        // What is kept is the retention and half of it more, about.
        #expect(past.revision - past.highestFloor >= 200)
        #expect(past.highestFloor > 1_000)
    }

    @Test(arguments: 0..<4)
    func `a gap is never silent: every state from the floor on is there, however much is kept`(
        seed: Int
    ) throws {
        func retention(_ count: Int) -> LogRetention {
            LogRetention(changeCount: count, byteCount: 1 << 30, age: 1 << 30)
        }
        let past = try Past(seed: UInt64(seed) * 5 + 2, retention(600))
        var random = SplitMix(seed: UInt64(seed))
        for round in 0..<60 {
            for _ in 0..<50 { try past.commit() }
            if round % 7 == 3 { past.retention = retention(random.chance(50) ? 1_000 : 250) }
            try past.drop()
            let floor = past.log.floor
            try past.check(at: floor)
            for _ in 0..<12 {
                let count = UInt64(min(300, past.revision - floor))
                try past.check(at: floor + Int64(random.next() % count))
            }
        }
        #expect(past.droppedCount > 10 && past.carriedCount > 50)
    }

    @Test func `a log has all of the past from where it began, whatever its first change is`()
        throws
    {
        let files = SimulatedFiles(sectorByteCount: 512, seed: 1)
        let log = try StateLog(files, after: 10) { _, _ in }
        #expect(log.floor == 10)
        try log.append(CodedCommits(15, value: [1]), at: 0)
        try log.sync()
        #expect(log.floor == 10 && log.view().floor == 10)
    }

    @Test func `a segment ends after an eighth of the age that is kept`() throws {
        let age = Observed<Int64>(0)
        var options = StateLog.Options()
        options.age = { age.update { $0 } }
        let files = SimulatedFiles(sectorByteCount: 512, seed: 1)
        let log = try StateLog(files, options) { _, _ in }
        log.retention = LogRetention(changeCount: 1_000_000, byteCount: 1 << 30, age: 8_000)
        for revision in 1...80 {
            try log.append(CodedCommits(Int64(revision), value: [1]), at: 0)
            try log.sync()
            age.update { $0 += 300 }
        }
        // Each lasts for four commits: the fifth comes after more than 1,000.
        #expect(log.segmentCount == 20)
        // What is older than 8,000 may go: its floor is not above what the age keeps.
        let plan = log.planDrop(before: log.syncedPlace)
        #expect(plan.count > 0 && plan.floor <= 80 - 8_000 / 300)
    }

    @Test func `a large commit after a quiet time, into a segment of its own, costs no history`()
        throws
    {
        let age = Observed<Int64>(0)
        var options = StateLog.Options()
        options.segmentByteCount = 20 << 10
        options.age = { age.update { $0 } }
        let files = SimulatedFiles(sectorByteCount: 512, seed: 1)
        let log = try StateLog(files, options) { _, _ in }
        log.retention = LogRetention(changeCount: 1_000_000, byteCount: 1 << 30, age: 8_000)
        for revision in 1...80 {
            try log.append(CodedCommits(Int64(revision), value: [1]), at: 0)
            try log.sync()
            age.update { $0 += 300 }
        }
        for dropped in log.drop(log.planDrop(before: log.syncedPlace).count) {
            dropped.remove(from: files)
        }
        let floor = log.floor
        try #require(floor > 0 && floor < 60)
        // Nothing is as young as half of what is kept, and the segment that is being written has nothing.
        try log.endSegment(at: 0)
        age.update { $0 += 5_000 }
        let value = [UInt8](repeating: 1, count: 30 << 10)
        try log.append(CodedCommits(81, value: value), at: 0)
        try log.sync()
        #expect(log.floor == floor)
    }
}
