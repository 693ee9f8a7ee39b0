import StateClient
import StateModel

extension Statectl {
    /// `wait KEY`: ends when the key meets the condition.
    static func wait(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let condition = try WaitCondition(invocation)
        let key = try invocation.key().bytes
        var watch = try watch(key, invocation)
        var value: [UInt8]?
        var revision: Int64 = 0
        // Before the snapshot is complete, a key that was not in it yet may still be present.
        var isComplete = false
        while let event = try watch.next() {
            switch event {
            case .commit(_, _, let changes), .piece(_, let changes):
                for change in changes { (value, revision) = (change.value, change.revision) }
            case .gap: (value, isComplete) = (nil, false)
            case .synced(_, let synced):
                isComplete = true
                if value == nil { revision = synced }
            case .progress, .away, .current: continue
            }
            guard isComplete, condition.holds(of: value) else { continue }
            guard invocation.isJSON else { return }
            return output.write(json: [
                "revision": .number(revision), "op": .text(value == nil ? "delete" : "set"),
                "key": .bytes(key), "value": value.map { .value($0) },
            ])
        }
        throw .negative
    }

    private static func watch(
        _ key: [UInt8],
        _ invocation: Invocation
    ) throws(Failure) -> ResumedWatch {
        try ResumedWatch(
            invocation,
            // Literal: a key may contain characters that make a pattern.
            [try attempt(try Pattern(literal: key))],
            from: .snapshot,
            until: try invocation.duration("--timeout").map { Deadline(after: $0) },
            needsReader: false
        )
    }
}

/// The condition that `wait` waits for.
private enum WaitCondition {
    case present
    case absent
    case value([UInt8])

    init(_ invocation: Invocation) throws(Failure) {
        let given = ["--present", "--absent", "--value"].filter { invocation.has($0) }
        guard given.count <= 1 else {
            throw .usage("wait: give only one of \(given.joined(separator: " and "))")
        }
        if let value = invocation.value("--value") {
            self = .value(value)
        } else {
            self = invocation.has("--absent") ? .absent : .present
        }
    }

    func holds(of value: [UInt8]?) -> Bool {
        switch self {
        case .present: value != nil
        case .absent: value == nil
        case .value(let expected): value == expected
        }
    }
}
