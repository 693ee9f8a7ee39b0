import StateLinearizability
import StateTestSupport
import Testing

/// Histories of the real daemon under concurrent clients and kills.
@Suite(.serialized) struct LinearizabilityTests {
    /// `STATED_LINEAR_HISTORIES` histories, however long they take.
    @Test func `histories of 8 clients across kills of the daemon are linearizable`() throws {
        let count = Extent.named("STATED_LINEAR_HISTORIES", short: 20)
        var totals = Totals()
        var daemon = try Daemon()
        for index in 0..<count {
            // A history of its own for each daemon's start would only measure that.
            if index % 50 == 49 { daemon = try Daemon() }
            let seed = Seed.base &+ UInt64(index)
            let history = try record(seed, index, daemon, &totals)
            let faults = faults(in: history, &totals)
            guard faults.isEmpty else {
                Issue.record("\(report(faults, seed))")
                return
            }
        }
        print("linearizability: \(count) histories, \(totals)")
        #expect(count < 20 || totals.lost > 0, "no kill met a request under way")
    }

    /// A history in which one answer is replaced by a value that had been overwritten before the question.
    @Test func `a genuine history with one stale read in it is refuted`() throws {
        let daemon = try Daemon()
        var totals = Totals()
        var refutedCount = 0
        for index in 0..<4 where refutedCount < 300 {
            let seed = Seed.base &+ UInt64(index)
            let history = try record(seed, index, daemon, &totals)
            let faults = faults(in: history, &totals)
            try #require(faults.isEmpty, "\(report(faults, seed))")
            var random = SplitMix(seed: seed)
            for key in Set(history.map(\.key)).sorted() {
                let operations = history.filter { $0.key == key }
                for stale in StaleRead.all(in: operations).shuffled(using: &random).prefix(40) {
                    let verdict = LinearizabilityCheck().verdict(of: stale.applied(to: operations))
                    guard case .refuted = verdict else {
                        Issue.record("STATED_TEST_SEED=\(seed): \(stale) was accepted: \(verdict)")
                        continue
                    }
                    refutedCount += 1
                }
            }
        }
        print("linearizability: \(refutedCount) stale reads refuted")
        #expect(refutedCount >= 50)
    }

    // MARK: What both do

    /// What was looked at.
    private struct Totals: CustomStringConvertible {
        var kills = 0
        var operations = 0
        var lost = 0
        var configurations = 0
        var slowest = Duration.zero

        var description: String {
            "\(kills) kills, \(operations) operations, \(lost) of them lost, \(configurations) configurations, "
                + "slowest check \(slowest)"
        }
    }

    private func report(_ faults: [String], _ seed: UInt64) -> String {
        (["STATED_TEST_SEED=\(seed) begins with this history's plan"] + faults)
            .joined(separator: "\n")
    }

    private func record(
        _ seed: UInt64,
        _ index: Int,
        _ daemon: Daemon,
        _ totals: inout Totals
    ) throws -> [Operation] {
        var random = SplitMix(seed: seed)
        var plan = ConcurrentRun.Plan()
        plan.keyCount = Int.random(in: 3...5, using: &random)
        plan.requestCount = Int.random(in: 20...100, using: &random)
        plan.killCount = Int.random(in: 1...2, using: &random)
        plan.killsAtEnd = random.chance(50)
        totals.kills += plan.killCount + (plan.killsAtEnd ? 1 : 0)
        do {
            return try ConcurrentRun(plan, seed: seed, keyPrefix: "h\(index)", daemon).run(daemon)
        } catch {
            throw SystemFailure(
                "STATED_TEST_SEED=\(seed): \(error); the daemon wrote: \(daemon.log)"
            )
        }
    }

    private func faults(in history: [Operation], _ totals: inout Totals) -> [String] {
        var faults = RevisionOrder.faults(in: history)
        totals.operations += history.count
        totals.lost += history.count { $0.outcome == .unknown }
        let start = ContinuousClock.now
        for (_, verdict) in LinearizabilityCheck().verdicts(of: history) {
            if let fault = verdict.fault { faults.append(fault.description) }
            totals.configurations += verdict.configurationCount
        }
        totals.slowest = max(totals.slowest, ContinuousClock.now - start)
        return faults
    }
}

/// A GET whose answer is replaced by a value that no order allows there.
private struct StaleRead: CustomStringConvertible {
    let index: Int
    let value: String
    let description: String

    /// Every GET with every value that was surely overwritten before it was asked.
    ///
    /// Surely: the write of the value ended before another one began, which ended before the GET began, and
    /// nobody else wrote the value. That needs no checker to see.
    static func all(in operations: [Operation]) -> [StaleRead] {
        let writes = operations.filter { $0.writtenValue != nil && $0.outcome != .unknown }
        var overwritten: [(value: String, since: Int64)] = []
        for write in writes {
            let later = writes.filter { write.ended < $0.invoked }
            guard let value = write.writtenValue, let since = later.map(\.ended).min() else {
                continue
            }
            overwritten.append((value, since))
        }
        return operations.indices.flatMap { index -> [StaleRead] in
            let read = operations[index]
            guard case .value = read.outcome else { return [] }
            return overwritten.filter { $0.since < read.invoked }.map {
                let text = "client \(read.client) '\(read.key)' GET: \(read.outcome) as \($0.value)"
                return StaleRead(index: index, value: $0.value, description: text)
            }
        }
    }

    func applied(to operations: [Operation]) -> [Operation] {
        var operations = operations
        operations[index].outcome = .value(value)
        return operations
    }
}

extension Operation {
    /// The value that a SET or STATE.SET of this operation writes where it happens; no two write the same.
    fileprivate var writtenValue: String? {
        switch (request, outcome) {
        case (.set(let value), .done), (.set(let value), .unknown): value
        case (.setEntry(let value, _), .revision), (.setEntry(let value, _), .unknown): value
        default: nil
        }
    }
}
