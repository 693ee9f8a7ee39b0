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
        let disk = try CuttableDisk(seed: seed)
        let keyspace = try LocalKeyspace(backing: disk.backing())
        try keyspace.mirror(Self.prefix)
        try keyspace.install(
            rules: deferringRules("app/", every: .milliseconds(2), backing: .cluster)
        )
        var random = SplitMix(seed: seed)
        disk.cutPower(Self.cutCount, eachWithin: 120, seed: random.next())
        var failedCount = 0
        let deadline = ContinuousClock.now + .seconds(60)
        while disk.cuts.count < Self.cutCount, ContinuousClock.now < deadline {
            if hasFailures, disk.files.failedCount >= failedCount {
                failedCount = disk.files.failedCount + 1
                disk.files.fail(.sync, number: Int.random(in: 1...30, using: &random))
            }
            // What is refused or undone comes again.
            try? Self.mirror(in: keyspace)
            if Int.random(in: 0..<4, using: &random) == 0 {
                _ = try? keyspace.apply([.set("other", [UInt8](repeating: 0, count: 300))])
            }
        }
        disk.files.heal()
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
        try #require(disk.cuts.count == Self.cutCount)
        let last = keyspace.withCore { core in
            var receipt = core.makeReceipt()
            return Self.position(core, &receipt).revision
        }
        keyspace.close()
        #expect(last > 100)
        if hasFailures { #expect(disk.files.failedCount > 2) }
        #expect(disk.findings == [])
        #expect(try position(disk.history()) == last)
        for cut in disk.cuts {
            let left = try disk.left(by: cut)
            let rows = left.rows.filter { $0.key.hasPrefix("app/") }.map { $0.value ?? "" }
            let expected = (0..<position(left)).map { "\($0 + 1)" }
            #expect(rows == expected, "call \(cut.place); STATED_TEST_SEED=\(seed)")
        }
    }

    private func position(_ left: StoredHistory) -> Int64 {
        let text = left.metadata[MirrorPosition.metadataName]
        return MirrorPosition(text, of: Self.prefix)?.revision ?? 0
    }
}
