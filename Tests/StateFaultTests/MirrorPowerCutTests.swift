import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// What is left of a copy of a cluster where power fails: its changes are shown before they are stored here, and come again
/// from where the store is.
@Suite(.serialized) struct MirrorPowerCutTests {
    private static let cutCount = 25
    private static let runCount =
        (Extent.named("STATED_POWER_CUTS", short: 25) + cutCount - 1) / cutCount
    private static let prefix = MirroredPrefix(Array("app/".utf8))

    /// How far the copy is.
    private static func position(_ core: KeyspaceCore, _ receipt: inout Receipt) -> MirrorPosition {
        let text = core.metadataText(MirrorPosition.metadataName, &receipt)
        return MirrorPosition(text, of: prefix) ?? MirrorPosition(of: prefix)
    }

    /// The next commit of the cluster: its revision is the value of a key.
    private static func mirror(in keyspace: LocalKeyspace) throws {
        let cause = keyspace.withCore { $0.retainCause(.thisProcess) }
        defer { keyspace.withCore { $0.release(cause) } }
        try keyspace.withCore { (core) throws(StateError) in
            var receipt = core.makeReceipt()
            var position = position(core, &receipt)
            position.revision += 1
            let number = position.revision
            core.begin(cause, at: LocalKeyspace.now())
            do throws(StateError) {
                try core.setMetadata(
                    MirrorPosition.metadataName,
                    to: position.text,
                    isDeferrable: true
                )
                let value = Array("\(number)".utf8)
                try value.withBorrowed { (value) throws(StateError) in
                    try Array("app/k\(number % 7)".utf8).withBorrowed { (key) throws(StateError) in
                        try core.mirror(key, value, version: core.mirroredVersion(of: key) + 1)
                    }
                }
            } catch {
                core.rollBack()
                throw error
            }
            core.finish(&receipt)
        }
        keyspace.publish()
    }

    @Test(arguments: Seed.each(runCount), [false, true])
    func `atomic: after a power cut the position is that of the last change`(
        seed: UInt64,
        hasFailures: Bool
    ) throws {
        let directory = try TemporaryDirectory()
        let data = directory.path(of: "data")
        let faults = try Faults(below: data)
        var limits = LogLimits()
        limits.checkpointByteCount = 160 << 10
        limits.keptByteCount = 320 << 10
        let keyspace = try LocalKeyspace(
            backing: SQLiteBacking(directory: data, logLimits: limits)
        )
        try keyspace.mirror(Self.prefix)
        try keyspace.install(
            rules: deferringRules("app/", every: .milliseconds(2), backing: .cluster)
        )
        var random = SplitMix(seed: seed)
        var cuts: [String] = []
        var place = faults.place
        for number in 0..<Self.cutCount {
            place += Int64.random(in: 1...120, using: &random)
            cuts.append(directory.path(of: "cut-\(number)"))
            try faults.cutPower(at: place, leaving: cuts[number], seed: random.next())
        }
        var failedCount: Int64 = 0
        let deadline = ContinuousClock.now + .seconds(60)
        while faults.cutCount < Int64(Self.cutCount), ContinuousClock.now < deadline {
            if hasFailures, faults.failedCount >= failedCount {
                failedCount = faults.failedCount + 1
                let soon = Int64.random(in: 1...30, using: &random)
                faults.fail(.sync, number: soon, .reverting)
            }
            // What is refused or undone comes again.
            try? Self.mirror(in: keyspace)
            if Int.random(in: 0..<4, using: &random) == 0 {
                _ = try? keyspace.apply([.set("other", [UInt8](repeating: 0, count: 300))])
            }
        }
        faults.heal()
        // Writers are refused until the commit thread has the store open again.
        var refusal: (any Error)?
        let isTaken = eventually(within: .seconds(30)) {
            do { try keyspace.apply([.set("end", [])]) } catch {
                refusal = error
                return false
            }
            return true
        }
        try #require(isTaken, "\(String(describing: refusal))")
        try #require(faults.cutCount == Int64(Self.cutCount))
        let last = keyspace.withCore { core in
            var receipt = core.makeReceipt()
            return Self.position(core, &receipt).revision
        }
        keyspace.close()
        #expect(last > 100)
        if hasFailures { #expect(faults.failedCount > 2) }
        for directory in cuts + [data] {
            let left = try StoredHistory(directory)
            let text = left.loaded.metadata[MirrorPosition.metadataName]
            let position = MirrorPosition(text, of: Self.prefix)?.revision ?? 0
            let rows = left.rows.filter { $0.key.hasPrefix("app/") }.map { $0.value ?? "" }
            let expected = (0..<position).map { "\($0 + 1)" }
            #expect(rows == expected, "\(directory); STATED_TEST_SEED=\(seed)")
            if directory == data { #expect(position == last) }
        }
    }
}
