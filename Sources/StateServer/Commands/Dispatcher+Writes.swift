import StateEngine
import StateWire

/// Redis's writing commands.
extension Dispatcher {
    func set(
        _ key: Bytes,
        _ value: Bytes,
        _ condition: Condition?,
        returnsOld: Bool,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        let start = connection.output.count
        let isConditional = condition != nil || returnsOld
        try write(connection, core, &receipt) { (receipt) throws(StateError) in
            let old =
                isConditional
                ? try core.look(at: key, for: restriction(connection, core), &receipt) : nil
            if returnsOld { write(old?.value, connection) }
            guard condition?.allows(old) ?? true else {
                if !returnsOld { connection.output.writeNull(connection.version) }
                return
            }
            try core.set(key, to: value, isConditional: isConditional)
        }
        if connection.output.count == start { connection.output.writeOK() }
    }

    func getDelete(
        _ key: Bytes,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        try write(connection, core, &receipt) { (receipt) throws(StateError) in
            let old = try core.look(at: key, for: restriction(connection, core), &receipt)
            write(old?.value, connection)
            try core.delete(key, &receipt)
        }
    }

    func multiSet(
        _ pairs: Arguments,
        onlyIfAllAbsent: Bool,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        let isDone = try write(connection, core, &receipt) { (receipt) throws(StateError) -> Bool in
            let places = stride(from: 0, to: pairs.count, by: 2)
            if onlyIfAllAbsent {
                let subject = restriction(connection, core)
                var isOneThere = false
                for index in places
                where try core.look(at: pairs[index], for: subject, &receipt) != nil {
                    isOneThere = true
                }
                if isOneThere { return false }
            }
            for index in places {
                try core.set(pairs[index], to: pairs[index + 1], isConditional: onlyIfAllAbsent)
            }
            return true
        }
        if onlyIfAllAbsent {
            connection.output.writeInteger(isDone ? 1 : 0)
        } else {
            connection.output.writeOK()
        }
    }

    func delete(
        _ keys: Arguments,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    )
        throws(StateError)
    {
        let count = try write(connection, core, &receipt) { (receipt) throws(StateError) -> Int64 in
            var count: Int64 = 0
            for index in 0..<keys.count where try core.delete(keys[index], &receipt) { count += 1 }
            return count
        }
        connection.output.writeInteger(count)
    }

    func append(
        _ suffix: Bytes,
        to key: Bytes,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    )
        throws(StateError)
    {
        let length = try write(connection, core, &receipt) { (receipt) throws(StateError) -> Int in
            let old = try core.look(at: key, for: restriction(connection, core), &receipt)
            let value = old?.value ?? Bytes(start: nil, count: 0)
            let length = value.count + suffix.count
            try core.set(key, to: value, appending: suffix, isConditional: true)
            return length
        }
        connection.output.writeInteger(Int64(length))
    }

    func add(
        _ number: Int64,
        to key: Bytes,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    )
        throws(StateError)
    {
        let sum = try write(connection, core, &receipt) { (receipt) throws(StateError) -> Int64 in
            let value = try core.look(at: key, for: restriction(connection, core), &receipt)?.value
            guard let old = value.map(\.decimal) ?? 0 else {
                throw StateError(.err, "value is not an integer or out of range")
            }
            let (sum, overflows) = old.addingReportingOverflow(number)
            guard !overflows else {
                throw StateError(.err, "increment or decrement would overflow")
            }
            var digits = String(sum)
            let result = digits.withUTF8 { bytes -> Swift.Result<Void, StateError> in
                Swift.Result { () throws(StateError) in
                    try core.set(key, to: Bytes(bytes), isConditional: true)
                }
            }
            try result.get()
            return sum
        }
        connection.output.writeInteger(sum)
    }
}

extension Condition {
    /// Whether NX or XX lets a SET happen.
    fileprivate func allows(_ old: Record?) -> Bool {
        switch self {
        case .isAbsent: old == nil
        case .isPresent: old != nil
        case .revision(let revision): (old?.revision ?? 0) == revision
        case .value(let value): old?.value.map { $0.isEqual(to: value) } ?? false
        }
    }
}
