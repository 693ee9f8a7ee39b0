import StateEngine
import StateWire

/// One call of a known script.
struct ScriptRun {
    enum Result {
        case number(Int64)
        case null
        case ok
        case values([Result])
        case bytes([UInt8])
    }

    let keys: Arguments
    let arguments: Arguments
    let time: Int64

    /// The failure that a script of aioredlock returns.
    static let failure = StateError(StateError.Code("ERROR"), "the lock is not held")

    mutating func carryOut(
        _ script: KnownScript,
        _ transaction: inout Transaction
    ) throws(StateError) -> Result {
        switch script {
        case .release: return .number(try release(keys[0], &transaction) ? 1 : 0)
        case .releaseAll:
            var count: Int64 = 0
            for index in 0..<keys.count where try release(keys[index], &transaction) { count += 1 }
            return .number(count)
        case .unlock: return .number(try release(keys[0], &transaction) ? 0 : 1)
        case .resetLock: return .number(try transaction.delete(try key(keys[0])) ? 1 : 0)
        case .expireInMilliseconds:
            return .number(try expire(after: try number(1), &transaction) ? 1 : 0)
        case .expireInSeconds:
            return .number(try expire(after: try seconds(1), &transaction) ? 1 : 0)
        case .extend: return .number(try extend(&transaction) ? 1 : 0)
        case .relock: return try relock(&transaction)
        case .acquireAll: return try setAll(&transaction) { $0 == nil }
        case .extendAll:
            let token = arguments[0]
            return try setAll(&transaction) { $0?.value?.isEqual(to: token) ?? false }
        case .acquireOrRenew, .acquireOrFail, .releaseOrFail: return try own(script, &transaction)
        case .timeLeft, .anyTimeLeft, .timeLeftOrMinus3, .timeLeftOrFail:
            return try timeLeft(script, &transaction)
        case .addWithin: return try add(try number(1), within: try seconds(0), &transaction)
        case .countInSeconds: return try add(1, within: try seconds(0), &transaction)
        case .countInMilliseconds: return try add(1, within: try number(0), &transaction)
        case .raise: return try raise(&transaction)
        case .windowCounts: return try windowCounts(&transaction)
        case .acquireInWindow: return try acquireInWindow(&transaction)
        case .deleteMatches, .resetLocks:
            preconditionFailure("\(script) lists keys: it is a command of StateCommands")
        }
    }

    // MARK: Locks

    /// The entry of the first key, if its value is the first argument.
    func held(
        _ name: Bytes,
        _ transaction: inout Transaction
    ) throws(StateError) -> Record? {
        guard let record = try transaction.look(at: try key(name)),
            record.value?.isEqual(to: arguments[0]) ?? false
        else { return nil }
        return record
    }

    func release(
        _ name: Bytes,
        _ transaction: inout Transaction
    ) throws(StateError) -> Bool {
        guard try held(name, &transaction) != nil else { return false }
        return try transaction.delete(name)
    }

    func expire(
        after milliseconds: Int64,
        _ transaction: inout Transaction
    ) throws(StateError) -> Bool {
        guard let record = try held(keys[0], &transaction) else { return false }
        try transaction.renew(keys[0], record, .after(milliseconds))
        return true
    }

    func extend(_ transaction: inout Transaction) throws(StateError) -> Bool {
        guard let record = try held(keys[0], &transaction), let left = left(record) else {
            return false
        }
        let isAdded = arguments[2].text == "0"
        let (sum, overflows) = try number(1).addingReportingOverflow(isAdded ? left : 0)
        guard !overflows else { throw ScriptRun.notANumber }
        try transaction.renew(keys[0], record, .after(sum))
        return true
    }

    func relock(_ transaction: inout Transaction) throws(StateError) -> Result {
        guard let record = try held(keys[0], &transaction) else { return .number(1) }
        guard record.expires != nil else { return .number(2) }
        try transaction.renew(keys[0], record, .after(try seconds(1)))
        return .number(0)
    }

    func setAll(
        _ transaction: inout Transaction,
        _ isFree: (Record?) -> Bool
    ) throws(StateError) -> Result {
        for index in 0..<keys.count {
            guard isFree(try transaction.look(at: try key(keys[index]))) else { return .number(0) }
        }
        let expiry = try timed(try number(1))
        for index in 0..<keys.count {
            try set(keys[index], to: arguments[0], expiry, &transaction)
        }
        return .number(Int64(keys.count))
    }

    func own(
        _ script: KnownScript,
        _ transaction: inout Transaction
    ) throws(StateError) -> Result {
        let record = try transaction.look(at: try key(keys[0]))
        let isHeld = record?.value?.isEqual(to: arguments[0]) ?? false
        switch script {
        case .acquireOrRenew:
            guard let record else {
                let expiry = try timed(try seconds(1))
                try set(keys[0], to: arguments[0], expiry, &transaction)
                return .number(1)
            }
            guard isHeld else { return .number(0) }
            try transaction.renew(keys[0], record, .after(try seconds(1)))
            return .number(2)
        case .acquireOrFail:
            guard record == nil || isHeld else { throw ScriptRun.failure }
            try set(keys[0], to: arguments[0], try timed(try number(1)), &transaction)
            return .ok
        default:
            guard record != nil else { return .ok }
            guard isHeld else { throw ScriptRun.failure }
            return .number(try transaction.delete(keys[0]) ? 1 : 0)
        }
    }

    func timeLeft(
        _ script: KnownScript,
        _ transaction: inout Transaction
    ) throws(StateError) -> Result {
        guard let record = try held(keys[0], &transaction) else {
            switch script {
            case .timeLeftOrFail: throw ScriptRun.failure
            case .timeLeftOrMinus3: return .number(-3)
            default: return .number(0)
            }
        }
        let left = left(record)
        switch script {
        case .timeLeftOrFail: return .number(left.map { ($0 + 500) / 1_000 } ?? -1)
        case .timeLeft: return .number(left ?? 0)
        default: return .number(left ?? -1)
        }
    }

    // MARK: Values

    static let notANumber = StateError(.err, "value is not an integer or out of range")

    func number(_ index: Int) throws(StateError) -> Int64 {
        guard let number = arguments[index].decimal else { throw ScriptRun.notANumber }
        return number
    }

    func seconds(_ index: Int) throws(StateError) -> Int64 {
        let (milliseconds, overflows) = try number(index).multipliedReportingOverflow(by: 1_000)
        // Scripts add and double times.
        guard !overflows, milliseconds.magnitude < 1 << 53 else { throw ScriptRun.notANumber }
        return milliseconds
    }

    func timed(_ milliseconds: Int64) throws(StateError) -> Expiry {
        guard milliseconds > 0 else {
            throw StateError(.err, "invalid expire time in 'set' command")
        }
        return .after(milliseconds)
    }

    func key(_ name: Bytes) throws(StateError) -> Bytes {
        if let fault = Key.fault(of: name) { throw fault.error(for: name) }
        return name
    }

    func left(_ record: Record) -> Int64? { record.expires.map { max(0, $0 - time) } }

    func sum(of record: Record?, _ number: Int64) throws(StateError) -> Int64 {
        guard let old = record?.value.map(\.decimal) ?? 0 else { throw ScriptRun.notANumber }
        let (sum, overflows) = old.addingReportingOverflow(number)
        guard !overflows else {
            throw StateError(.err, "increment or decrement would overflow")
        }
        return sum
    }

    func set(
        _ name: Bytes,
        to value: Bytes,
        _ expiry: Expiry,
        _ transaction: inout Transaction
    ) throws(StateError) {
        try transaction.set(
            name,
            to: value,
            isConditional: true,
            expiry: expiry,
            operation: expiry.operation
        )
    }

    func set(
        _ name: Bytes,
        to number: Int64,
        _ expiry: Expiry,
        _ transaction: inout Transaction
    ) throws(StateError) {
        try Array(String(number).utf8).withBorrowed { (value) throws(StateError) in
            try set(name, to: value, expiry, &transaction)
        }
    }
}
