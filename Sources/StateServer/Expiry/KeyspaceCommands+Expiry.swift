import StateEngine
import StateWire

/// Commands of Redis about the deadlines of keys.
///
/// A change of a deadline is a change like any other: a commit with the same value.
extension KeyspaceCommands {
    func run(
        _ step: Command.ExpiryStep,
        of key: Bytes,
        _ context: inout CommandContext
    ) throws(StateError) {
        switch step {
        case .report(let form): try report(form, of: key, &context)
        case .get(nil):
            let record = try context.look(at: key)
            context.output.writeValue(record?.value, context.version)
        case .get(let expiry?): try get(key, changingTo: expiry, &context)
        case .change(let expiry, let conditions):
            let isChanged = try change(key, to: expiry, conditions, &context)
            context.output.writeInteger(isChanged ? 1 : 0)
        }
    }

    /// Writes -2 for an absent key and -1 for one that does not expire.
    private func report(
        _ form: Command.ExpiryForm,
        of key: Bytes,
        _ context: inout CommandContext
    ) throws(StateError) {
        guard let record = try context.look(at: key) else { return context.output.writeInteger(-2) }
        let time = form.isTimeLeft ? context.core.millisecondsLeft(of: record) : record.expires
        guard let time else { return context.output.writeInteger(-1) }
        // Redis rounds to the nearest second.
        let isInSeconds = form.unit == .seconds
        context.output.writeInteger(isInSeconds ? time / 1_000 + (time % 1_000) / 500 : time)
    }

    private func get(
        _ key: Bytes,
        changingTo expiry: Expiry,
        _ context: inout CommandContext
    ) throws(StateError) {
        let connection = context.connection
        try context.write { (transaction) throws(StateError) in
            let old = try transaction.look(at: key)
            connection.outbound.bytes.writeValue(old?.value, connection.session.version)
            guard let old, expiry != .never || old.hasDeadline else { return }
            try transaction.renew(key, old, expiry)
        }
    }

    /// - Returns: Whether the key is present and the conditions hold.
    private func change(
        _ key: Bytes,
        to expiry: Expiry,
        _ conditions: Command.ExpiryConditions,
        _ context: inout CommandContext
    ) throws(StateError) -> Bool {
        let time = expiry.time(from: context.time)
        return try context.write { (transaction) throws(StateError) in
            guard let old = try transaction.look(at: key) else { return false }
            // Nobody knows when the client ends with which the key does.
            let end = old.isHeld ? .max : old.expires
            guard conditions.allow(end, time) else { return false }
            try transaction.renew(key, old, expiry)
            return true
        }
    }
}

extension Command.ExpiryConditions {
    /// Whether a deadline may be changed; nil is the latest of all.
    fileprivate func allow(_ old: Int64?, _ new: Int64?) -> Bool {
        if contains(.isAbsent), old != nil { return false }
        if contains(.isPresent), old == nil { return false }
        if contains(.isEarlier), (old ?? .max) >= (new ?? .max) { return false }
        if contains(.isLater), let old, (new ?? .max) >= old { return false }
        return true
    }
}
