import StateEngine
import StateTestSupport
import Testing

/// What a reply is held behind.
@Suite struct ObservingTests {
    private let stage: Stage

    init() throws { stage = try Stage() }

    @Test func `a read of a key in flight looks at its newest revision, of another at none`() throws
    {
        try stage.set("durable", "1")
        try stage.commit()
        let first = try stage.set("k", "a")
        try stage.set("other", "x")
        #expect(stage.observed(reading: "k") == first)
        #expect(stage.observed(reading: "durable") == 0)
        #expect(stage.observed(reading: "absent") == 0)
        try stage.commit()
        #expect(stage.observed(reading: "k") == 0)
    }

    @Test func `that a key is absent is looked at too, while its delete is in flight`() throws {
        try stage.set("k", "a")
        try stage.commit()
        let gone = try stage.delete("k")
        #expect(stage.observed(reading: "k") == gone)
        try stage.commit()
        #expect(stage.observed(reading: "k") == 0)
    }

    @Test func `a refused condition and a delete of nothing look at what they found`() throws {
        try stage.set("gone", "a")
        try stage.commit()
        let gone = try stage.delete("gone")
        let set = try stage.set("k", "a")
        #expect(
            observing { (core, receipt) throws(StateError) in try core.delete("gone", &receipt) }
                == gone
        )
        #expect(
            observing { (core, receipt) throws(StateError) in
                try core.check(.isAbsent, "k", &receipt)
            } == set
        )
        #expect(
            observing { (core, receipt) throws(StateError) in
                try core.check(.isAbsent, "x", &receipt)
            } == 0
        )
    }

    @Test func `what a transaction saw of itself alone is not waited for`() throws {
        let seen = observing { (core, receipt) throws(StateError) in
            try core.set("k", "a")
            _ = core.read("k", &receipt)
            throw StateError(.err, "rolled back")
        }
        #expect(seen <= stage.withCore { $0.revisions.durable })
        let flying = try stage.set("other", "x")
        let again = observing { (core, receipt) throws(StateError) in
            _ = core.read("other", &receipt)
            try core.set("k", "a")
            _ = core.read("k", &receipt)
            throw StateError(.err, "rolled back")
        }
        #expect(again == flying)
    }

    @Test func `a listing looks at everything in flight`() throws {
        try stage.set("a", "1")
        try stage.commit()
        let newest = try stage.set("b", "1")
        let seen = stage.withCore { core in
            var receipt = core.makeReceipt()
            var budget = Int.max
            _ = core.forEach(
                PatternSet([.everything]),
                after: nil,
                comparing: &budget,
                &receipt
            ) { _ in true }
            return receipt.revision
        }
        #expect(seen == newest)
        try stage.commit()
        let after = stage.withCore { core in
            var receipt = core.makeReceipt()
            core.observeAll(&receipt)
            return receipt.revision
        }
        #expect(after == 0)
    }

    @Test func `after a failed commit nothing is in flight to be looked at`() throws {
        try stage.set("k", "a")
        try stage.publish()
        try stage.fail()
        #expect(stage.observed(reading: "k") == 0)
        let all = stage.withCore { core in
            var receipt = core.makeReceipt()
            core.observeAll(&receipt)
            return receipt.revision
        }
        #expect(all == 0)
    }

    /// The newest provisional revision that a transaction, which changes nothing, looks at.
    private func observing(
        _ body: (KeyspaceCore, inout Receipt) throws(StateError) -> Void
    ) -> Int64 {
        stage.report(body).0.awaited
    }
}
