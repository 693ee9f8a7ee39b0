import StateEngine
import StateTestSupport
import StateWire
import Synchronization
import Testing

/// Fifty clients write while a rule changes from one bound to another and back.
struct ReloadLoadTests {
    private static let clientCount = 50
    private static let pipelineCount = 16
    private static let reloadCount = 24

    /// What became of one SET.
    private struct Outcome: Sendable {
        let value: Int
        /// Nil where it was refused.
        let revision: Int64?
    }

    /// What one client sent, and what it was answered.
    private struct Record: Sendable {
        var outcomes: [Outcome] = []
        var failure: String?
    }

    /// The revisions from which the bound was 1, up to the one from which it was 2 again.
    private struct Window {
        let first: Int64
        var end = Int64.max
    }

    private static func text(maximum: Int) -> String {
        "{ rules: [ { keys: 'load/', schema: { type: 'integer', maximum: \(maximum) } } ] }"
    }

    @Test func `no connection is dropped, no reply is lost, and a rule binds from one revision on`()
        throws
    {
        let directory = try TemporaryDirectory()
        let path = try directory.write(Self.text(maximum: 2), to: "stated.json5")
        let daemon = try Daemon("--config", path)
        let socket = daemon.socketPath
        let isDone = Atomic(false)
        let records = Mutex([Record](repeating: Record(), count: Self.clientCount))
        let windows = Mutex(Result<[Window], any Error>.success([]))
        onThreads(Self.clientCount + 1) { number in
            guard number < Self.clientCount else {
                let result = Result { try Self.reload(directory, socket) }
                windows.withLock { $0 = result }
                isDone.store(true, ordering: .relaxed)
                return
            }
            var record = Record()
            do {
                try Self.write(number, socket, into: &record) { isDone.load(ordering: .relaxed) }
            } catch {
                record.failure = "\(error)"
            }
            records.withLock { [record] in $0[number] = record }
        }
        try Self.check(records.withLock { $0 }, windows.withLock { $0 }.get())
        #expect(
            eventually {
                daemon.log.split(separator: "\n").count { $0.contains("; not reloaded; ") } > 0
            }
        )
    }

    /// Writes 1 and 2 in turns that are no others' until it is over.
    private static func write(
        _ number: Int,
        _ socket: String,
        into record: inout Record,
        until isDone: () -> Bool
    ) throws {
        let peer = try Peer(socket)
        _ = try peer.ask("HELLO 3")
        var random = SplitMix(seed: UInt64(number))
        while !isDone() {
            let values = (0..<pipelineCount).map { _ in Int(random.next() % 2) + 1 }
            try peer.send(values.map { Peer.words("STATE.SET load/\(number) \($0)") })
            for value in values {
                let reply = try peer.next()
                if let revision = reply["revision"]?.integerValue {
                    record.outcomes.append(Outcome(value: value, revision: revision))
                } else if reply.errorText
                    == "REJECTED key 'load/\(number)': 2 is above 1 (rule 1, line 1, schema)"
                {
                    record.outcomes.append(Outcome(value: value, revision: nil))
                } else {
                    throw SystemFailure("client \(number): \(reply.shown)")
                }
            }
        }
    }

    /// Reloads with the one bound and the other; each third file is a bad one before.
    private static func reload(
        _ directory: TemporaryDirectory,
        _ socket: String
    ) throws -> [Window] {
        let peer = try Peer(socket)
        _ = try peer.ask("HELLO 3")
        var windows: [Window] = []
        for number in 0..<reloadCount {
            try awaitCommits(200, peer)
            if number % 3 == 0 {
                try directory.write("{ rules: [ { keys: 'load/', } ", to: "stated.json5")
                let refusal = try peer.ask("STATE.RELOAD").errorText
                guard refusal?.contains("stated.json5:1:31: expected ']'") == true else {
                    throw SystemFailure("a bad file: \(refusal ?? "no error")")
                }
            }
            let isStrict = number % 2 == 0
            try directory.write(text(maximum: isStrict ? 1 : 2), to: "stated.json5")
            let reply = try peer.ask("STATE.RELOAD")
            guard let revision = reply["revision"]?.integerValue,
                reply["changed"]?.elements?.count == 1
            else { throw SystemFailure("reload \(number): \(reply.shown)") }
            if isStrict {
                windows.append(Window(first: revision))
            } else {
                windows[windows.count - 1].end = revision
            }
        }
        try awaitCommits(200, peer)
        return windows
    }

    /// Waits until the others have made so many commits.
    private static func awaitCommits(_ count: Int64, _ peer: Peer) throws {
        func revision() throws -> Int64 {
            try #require(try peer.ask("STATE.STATUS")["revision"]?.integerValue)
        }
        let (first, deadline) = (try revision(), ContinuousClock.now + .seconds(60))
        while try revision() < first + count {
            guard ContinuousClock.now < deadline else { throw SystemFailure("nobody commits") }
        }
    }

    private static func check(_ records: [Record], _ windows: [Window]) throws {
        #expect(windows.count == reloadCount / 2)
        var (refusedCount, acceptedCount) = (0, 0)
        for (number, record) in records.enumerated() {
            try #require(record.failure == nil, "\(record.failure ?? "")")
            #expect(!record.outcomes.isEmpty && record.outcomes.count % pipelineCount == 0)
            let next = revisionsAfter(record.outcomes)
            var before: Int64 = 0
            for (outcome, after) in zip(record.outcomes, next) {
                if let revision = outcome.revision {
                    #expect(revision > before, "client \(number)")
                    before = revision
                    guard outcome.value == 2 else { continue }
                    acceptedCount += 1
                    let window = windows.first { $0.first <= revision && revision < $0.end }
                    #expect(window == nil, "client \(number): 2 at revision \(revision)")
                } else {
                    refusedCount += 1
                    // The next revision when it was refused lay in here, and the bound was 1 then.
                    let window = windows.first { $0.first <= after && before + 1 <= $0.end }
                    #expect(window != nil, "client \(number): refused in \(before)..<\(after)")
                }
            }
        }
        #expect(refusedCount > 100 && acceptedCount > 100)
    }

    /// For each outcome the revision of the next one that was accepted.
    private static func revisionsAfter(_ outcomes: [Outcome]) -> [Int64] {
        var next = Int64.max
        return Array(
            outcomes.reversed().map { outcome in
                defer { next = outcome.revision ?? next }
                return next
            }.reversed()
        )
    }
}
