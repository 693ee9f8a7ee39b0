import StateEngine
import StateTestSupport
import StateWire

/// A transaction of 1 to 20 keys, in one of the ways in which several keys are written at once.
struct WriterTransaction: Sendable {
    enum Form: Sendable {
        /// STATE.SET of one key.
        case set
        /// STATE.APPLY of sets and deletes.
        case apply
        /// MULTI with SET, MSET and DEL, and a STATE.SET at the end, which tells the revision.
        case multi
    }

    /// What became of it.
    enum Outcome: Sendable {
        case committed(Int64)
        /// It was to fail, or there was nothing to delete.
        case nothing
        case unexpected(String)
    }

    /// How many keys one has at most.
    static let keyLimit = 20

    let form: Form
    /// A condition that cannot hold stands in it: it must not happen.
    let isRefused: Bool
    /// What it does, in this order.
    let steps: [RecordedChange]

    /// Draws one; `name` is that of all its values.
    init(named name: String, _ random: inout SplitMix) {
        form = [.set, .apply, .apply, .multi, .multi].randomElement(using: &random) ?? .set
        isRefused = random.chance(5)
        let count = form == .set ? 1 : Int.random(in: 1...Self.keyLimit, using: &random)
        let onlyDeletes = form == .apply && random.chance(10)
        var keys = (0..<count).map { _ in RunPlan.keys.randomElement(using: &random) ?? "a/1" }
        // The last is named once: by its value the transaction is known again after a crash.
        if let last = keys.last { keys = keys.dropLast().filter { $0 != last } + [last] }
        steps = keys.enumerated().map { index, key in
            let isLast = index == keys.count - 1
            let deletes = onlyDeletes || !isLast && random.chance(25)
            return RecordedChange(key, deletes ? nil : name)
        }
    }

    /// One that sets every key there is.
    init(settingAllKeysTo name: String) {
        form = .apply
        isRefused = false
        steps = RunPlan.keys.map { RecordedChange($0, name) }
    }

    /// No transaction has this revision.
    private static let noRevision = "4503599627370496"

    /// What is sent for it.
    var requests: [[[UInt8]]] {
        switch form {
        case .set: [stateSet(steps[0])]
        case .apply: [apply]
        case .multi:
            [["MULTI"].bytes] + steps.dropLast().map(request) + [stateSet(steps[steps.count - 1])]
                + [["EXEC"].bytes]
        }
    }

    private func request(_ step: RecordedChange) -> [[UInt8]] {
        guard let value = step.value else { return ["DEL", step.key].bytes }
        let verb = step.key.utf8.count % 2 == 0 ? "SET" : "MSET"
        return [verb, step.key].bytes + [RunValue.make(value, key: step.key)]
    }

    private func stateSet(_ step: RecordedChange) -> [[UInt8]] {
        let value = RunValue.make(step.value ?? "", key: step.key)
        let condition = isRefused ? ["IFREV", Self.noRevision] : []
        return ["STATE.SET", step.key].bytes + [value] + condition.bytes
    }

    private var apply: [[UInt8]] {
        let count = steps.count + (isRefused ? 1 : 0)
        var words = ["STATE.APPLY", "\(count)"].bytes
        for step in steps {
            if let value = step.value {
                words += ["SET", step.key].bytes + [RunValue.make(value, key: step.key)]
            } else {
                words += ["DELETE", step.key].bytes
            }
        }
        return words + (isRefused ? ["CHECK", steps[0].key, Self.noRevision].bytes : [])
    }

    /// What the last of its replies says.
    func outcome(of reply: Reply) -> Outcome {
        if case .error(let error) = reply {
            let isMeant = isRefused && (error.code == .conflict || error.code == .executionAborted)
            return isMeant ? .nothing : .unexpected("\(error)")
        }
        guard !isRefused else { return .unexpected("a transaction that had to fail: \(reply)") }
        let counted = form == .multi ? reply.elements?.last : reply
        guard let revision = counted?["revision"]?.integerValue else {
            return .unexpected("no revision: \(reply)")
        }
        return counted?["count"]?.integerValue == 0 ? .nothing : .committed(revision)
    }
}

extension [String] {
    var bytes: [[UInt8]] { map { [UInt8]($0.utf8) } }
}
