import StateLinearizability
import StateTestSupport
import Testing

/// The checker on histories drawn at random: against a search that tries everything, and for what it costs.
struct RandomHistoryTests {
    @Test(arguments: Seed.each(4))
    func `small histories get the verdict that trying every order gives`(seed: UInt64) {
        var random = SplitMix(seed: seed)
        var counts = (explained: 0, refuted: 0)
        for _ in 0..<Extent.rounds(20_000) {
            let history = (0..<Int.random(in: 1...5, using: &random))
                .map { _ in anyOperation(&random) }
                .sorted { $0.invoked < $1.invoked }
            let isExplained = Exhaustive.explains(history, value: nil, revision: 0)
            let verdict = LinearizabilityCheck().verdict(of: history)
            if isExplained { counts.explained += 1 } else { counts.refuted += 1 }
            guard isExplained != (verdict.fault == nil) else { continue }
            Issue.record("STATED_TEST_SEED=\(seed): \(history) is explained: \(isExplained)")
            return
        }
        #expect(counts.explained > 100 && counts.refuted > 100)
    }

    /// Whether or not it makes sense among the others.
    private func anyOperation(_ random: inout SplitMix) -> Operation {
        let value = ["1", "2", "w"].randomElement(using: &random) ?? "1"
        let revision = Int64.random(in: 0...4, using: &random)
        let condition = random.chance(60) ? revision : nil
        let told = Int64.random(in: 1...4, using: &random)
        let isThere = random.chance(60)
        let (request, outcome): (Operation.Request, Operation.Outcome) =
            switch Int.random(in: 0..<8, using: &random) {
            case 0: (.get, .value(isThere ? value : nil))
            case 1: (.getEntry, .entry(isThere ? .init(value, at: told) : nil))
            case 2, 3: (.set(value), .done)
            case 4: (.setEntry(value, ifRevision: condition), .revision(told))
            case 5: (.setEntry(value, ifRevision: condition), .conflict(isThere ? told : 0))
            case 6: (.delete, .deleted(isThere))
            default: (.add(1), isThere ? .sum(told) : .notANumber)
            }
        let invoked = Int64.random(in: 0...9, using: &random)
        let length = Int64.random(in: 0...5, using: &random)
        let isLost = random.chance(20)
        let isBounded = random.chance(50)
        return Operation(
            client: Int.random(in: 0...2, using: &random),
            key: "k",
            request,
            isLost ? .unknown : outcome,
            invoked: invoked,
            ended: isLost && !isBounded ? .max : invoked + length
        )
    }

    @Test(arguments: Seed.each(4))
    func `800 operations of 8 clients take few configurations more than operations`(
        seed: UInt64
    ) {
        var random = SplitMix(seed: seed)
        let history = simulated(800, &random)
        let verdict = LinearizabilityCheck().verdict(of: history)
        #expect(verdict.fault == nil, "STATED_TEST_SEED=\(seed): \(verdict)")
        #expect(verdict.configurationCount < 50 * history.count, "\(verdict.configurationCount)")
    }

    /// What 8 clients see of a register, each operation happening at a moment between its ends.
    private func simulated(_ count: Int, _ random: inout SplitMix) -> [Operation] {
        var history: [Operation] = []
        var value: String?
        var freeFrom = [Int64](repeating: 0, count: 8)
        for index in 0..<count {
            let moment = Int64(index) * 10
            guard
                let client = freeFrom.indices.filter({ freeFrom[$0] < moment }).randomElement(
                    using: &random
                )
            else { continue }
            let invoked = Int64.random(in: freeFrom[client]...moment, using: &random)
            let ended = moment + Int64.random(in: 0...60, using: &random)
            freeFrom[client] = ended + 1
            let isLost = random.chance(3)
            let request: Operation.Request
            var outcome: Operation.Outcome
            switch Int.random(in: 0..<10, using: &random) {
            case ..<4: (request, outcome) = (.get, .value(value))
            case ..<6:
                (request, outcome) = (.delete, .deleted(value != nil))
                if !isLost { value = nil }
            default:
                (request, outcome) = (.set("\(index)"), .done)
                if !isLost || random.chance(50) { value = "\(index)" }
            }
            if isLost { outcome = .unknown }
            history.append(
                Operation(
                    client: client,
                    key: "k",
                    request,
                    outcome,
                    invoked: invoked,
                    ended: ended
                )
            )
        }
        return history
    }
}

/// Tries every order of a history, and every revision that nobody told.
private enum Exhaustive {
    /// Whether an order of the operations, sorted by the time at which they were sent, explains them from this state on.
    static func explains(_ left: [Operation], value: String?, revision: Int64) -> Bool {
        guard left.contains(where: { $0.outcome != .unknown }) else { return true }
        for (index, next) in left.enumerated() {
            var mayBeNext = true
            var rest: [Operation] = []
            for (place, other) in left.enumerated() where place != index {
                let comesBefore =
                    other.ended < next.invoked || other.client == next.client && place < index
                if !comesBefore { rest.append(other) }
                if comesBefore, other.outcome != .unknown { mayBeNext = false }
            }
            guard mayBeNext else { continue }
            for (value, revision) in states(after: next, value, revision)
            where explains(rest, value: value, revision: revision) { return true }
        }
        return false
    }

    /// The states that the operation can leave where it happens, its answer being what it is.
    private static func states(
        after operation: Operation,
        _ value: String?,
        _ revision: Int64
    ) -> [(String?, Int64)] {
        let current = value == nil ? 0 : revision
        let same = [(value, revision)]
        let isLost = operation.outcome == .unknown
        /// Nobody tells more than 4, and there are 5 operations at most.
        func changes(to new: String?) -> [(String?, Int64)] {
            (revision + 1...revision + 10).filter { $0 <= 10 }.map { (new, $0) }
        }
        switch operation.request {
        case .get: return operation.outcome == .value(value) ? same : []
        case .getEntry:
            let entry = value.map { Operation.Entry($0, at: revision) }
            return operation.outcome == .entry(entry) ? same : []
        case .set(let new): return changes(to: new)
        case .setEntry(let new, let expected):
            let holds = expected == nil || expected == current
            if case .conflict(let found) = operation.outcome {
                return !holds && found == current ? same : []
            }
            guard holds else { return [] }
            guard case .revision(let told) = operation.outcome else { return changes(to: new) }
            return told > revision ? [(new, told)] : []
        case .delete:
            if value == nil { return operation.outcome == .deleted(false) ? same : [] }
            return isLost || operation.outcome == .deleted(true) ? changes(to: nil) : []
        case .add(let number):
            guard let old = Int64(value ?? "0") else {
                return operation.outcome == .notANumber ? same : []
            }
            guard isLost || operation.outcome == .sum(old + number) else { return [] }
            return changes(to: String(old + number))
        }
    }
}
