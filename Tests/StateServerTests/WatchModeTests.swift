import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// Watches of every mode that stall, go and resume at random beside writers, audited against what was committed.
///
/// `STATED_WATCH_STEPS=20000` is the long form.
struct WatchModeTests {
    private let steps = Extent.named("STATED_WATCH_STEPS", short: 600)

    /// One watch through all its connections.
    private final class Follower {
        let pattern: String
        let begin: String
        let isLatest: Bool
        var peer: Peer?
        var pushes: [Reply] = []
        /// The state at this revision is known; nil while it is not.
        var told: Int64?
        /// Pushes up to the last `synced`: what comes behind it in a round is told again after a resumption.
        var settledCount = 0
        private(set) var resumeCount = 0

        init(_ pattern: String, _ begin: String, _ epoch: String, _ stored: StoredServer) throws {
            (self.pattern, self.begin) = (pattern, begin)
            isLatest = begin.contains("LATEST")
            told = begin.contains("SNAPSHOT") ? nil : 0
            try connect(epoch, stored)
        }

        func connect(_ epoch: String, _ stored: StoredServer) throws {
            let peer = try stored.connect()
            var option = begin
            if let told {
                let latest = isLatest ? "LATEST" : ""
                option = "FROM \(told) EPOCH \(epoch) \(latest)"
                resumeCount += 1
                if isLatest { pushes.removeSubrange(settledCount...) }
            } else {
                // An unfinished state is begun anew: as after a gap.
                pushes = []
                settledCount = 0
            }
            try peer.send("STATE.WATCH \(pattern) \(option)")
            self.peer = peer
        }

        /// What is whole: a round that is not closed yet may be told again.
        var settled: [Reply] { Array(pushes[..<settledCount]) }

        func read() throws { for reply in try peer?.arrived() ?? [] { take(reply) } }

        func readOn() throws { if let peer { take(try peer.next()) } }

        private func take(_ reply: Reply) {
            guard let kind = reply.pushKind else { return }
            pushes.append(reply)
            switch kind {
            case "state.gap": told = nil
            case "state.synced":
                told = reply.pushRevision
                settledCount = pushes.count
            case "state.progress": told = reply.pushRevision
            default: if !isLatest, told != nil { told = reply.pushRevision }
            }
        }
    }

    private static let modes = [
        ("/", "FROM 0"), ("/", "SNAPSHOT"), ("a/", "FROM 0"), ("a/*3", "SNAPSHOT"),
        ("b/1", "FROM 0"),
        ("/", "FROM 0 LATEST"), ("/", "SNAPSHOT LATEST"), ("b/", "FROM 0 LATEST"),
        ("a/", "SNAPSHOT LATEST"),
    ]

    @Test(arguments: Seed.each(3))
    func
        `ordered, unique, reliable, atomic, resumable, bookmarkable: watches of every mode that stall and resume`(
            seed: UInt64
        ) throws
    {
        var random = SplitMix(seed: seed)
        let stored = try StoredServer {
            $0.outputByteCount = 400 << 10
            $0.progressMilliseconds = 5
        }
        let writers = try (0..<4).map { _ in try stored.connect(2) }
        let followers = try WatchModeTests.modes.map { pattern, begin in
            try Follower(pattern, begin, stored.epoch, stored)
        }
        for step in 0..<steps {
            let writer = writers[step % 4]
            let count = Int.random(in: 1...8, using: &random)
            try writer.send((0..<count).map { _ in WatchModeTests.transaction(&random) })
            _ = try writer.next(count)
            for follower in followers {
                // A stalled one is let be most of the time.
                if random.chance(8) { try follower.read() }
                if random.chance(1) {
                    follower.peer = nil
                    try follower.connect(stored.epoch, stored)
                }
            }
        }
        let last = try #require(try writers[0].ask("STATE.SET a/end3 x")["revision"]?.integerValue)
        _ = try writers[0].ask("SET b/1 end")
        let committed = try stored.committed()
        for follower in followers {
            while follower.told ?? 0 < last { try follower.readOn() }
        }
        #expect(followers.reduce(0) { $0 + $1.resumeCount } > 0)
        for follower in followers {
            let kept = committed.filter { $0.revision <= follower.told ?? 0 }
            let fault =
                follower.isLatest
                ? try LatestAudit(kept, follower.pattern).fault(in: follower.settled)
                : try WatchAudit(kept, follower.pattern)
                    .fault(in: follower.pushes, liveFrom: follower.begin == "SNAPSHOT" ? nil : 0)
            #expect(fault == nil, "\(follower.pattern) \(follower.begin)")
        }
    }

    /// One to three changes of keys all over the keyspace, as one command.
    private static func transaction(_ random: inout SplitMix) -> [[UInt8]] {
        let keys = (0..<Int.random(in: 1...3, using: &random)).map { _ in
            "\(random.chance(50) ? "a" : "b")/\(Int.random(in: 0..<300, using: &random))"
        }
        if random.chance(25) { return Peer.words("DEL " + keys.joined(separator: " ")) }
        let value = String(random.next(), radix: 36)
        let size = random.chance(20) ? 20_000 : 20
        return Peer.words(
            "MSET "
                + keys.map { "\($0) \(String(repeating: value, count: size / 10))" }
                .joined(separator: " ")
        )
    }
}
