import StateEngine
import StateWire

/// Counters of rate limits.
extension ScriptRun {
    func add(
        _ number: Int64,
        within milliseconds: Int64,
        _ transaction: inout Transaction
    ) throws(StateError) -> Result {
        let old = try transaction.look(at: try key(keys[0]))
        let sum = try sum(of: old, number)
        // The first of a window begins its time, also if the key was 0 before.
        let expiry: Expiry = sum == number ? .after(milliseconds) : .kept
        guard sum != number || milliseconds > 0 else {
            try transaction.delete(keys[0])
            return .number(sum)
        }
        try set(keys[0], to: sum, expiry, &transaction)
        return .number(sum)
    }

    func raise(_ transaction: inout Transaction) throws(StateError) -> Result {
        let next = try number(0)
        let old = try transaction.look(at: try key(keys[0]))?.value?.decimal
        guard old.map({ $0 < next }) ?? true else { return .null }
        try set(keys[0], to: next, .ruled, &transaction)
        return .number(next)
    }

    /// Moves the current window to the one before, if it is over.
    func slide(
        _ length: Int64,
        _ transaction: inout Transaction
    ) throws(StateError) {
        _ = try key(keys[0])
        guard let current = try transaction.look(at: try key(keys[1])), let value = current.value,
            let left = left(current), left > 0, left < length
        else { return }
        let (copy, expires) = (Array(value), current.expires)
        try copy.withBorrowed { (copy) throws(StateError) in
            let expiry = expires.map { Expiry.at($0) } ?? .ruled
            try transaction.set(keys[0], to: copy, expiry: expiry, operation: .renameTo)
        }
        try set(keys[1], to: 0, .after(left + length), &transaction)
    }

    func windowCounts(_ transaction: inout Transaction) throws(StateError) -> Result {
        try slide(try seconds(0), &transaction)
        var results: [Result] = []
        for index in 0..<2 {
            let record = try transaction.look(at: keys[index])
            results.append(record?.value.map { .bytes(Array($0)) } ?? .null)
            results.append(.number(record.map { left($0) ?? -1 } ?? -2))
        }
        return .values(results)
    }

    func acquireInWindow(_ transaction: inout Transaction) throws(StateError) -> Result {
        let (limit, length, amount) = (try number(0), try seconds(1), try number(2))
        guard amount <= limit, length > 0 else { return .null }
        try slide(length, &transaction)
        let before = try transaction.look(at: keys[0])
        let (count, rest) = (before?.value?.decimal ?? 0, before.flatMap { left($0) } ?? 0)
        let current = try transaction.look(at: keys[1])
        let weighted = (Double(count) * Double(rest) / Double(length)).rounded(.down)
        let now = current?.value?.decimal ?? 0
        guard weighted + Double(now) + Double(amount) <= Double(limit) else { return .null }
        let isFirst = current == nil
        let sum = try sum(of: current, amount)
        try set(keys[1], to: sum, isFirst ? .after(2 * length) : .kept, &transaction)
        return .number(1)
    }
}
