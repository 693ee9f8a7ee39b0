import StateEngine
import StateWire

/// Commands of Redis about values.
struct StringCommands {
    let settings: Settings

    // MARK: Reading

    func get(_ key: Bytes, _ context: inout CommandContext) throws(StateError) {
        let record = try context.look(at: key)
        writeValue(record, of: key, context)
    }

    /// The value of a key, or its default if it is absent.
    @inline(__always)
    private func writeValue(
        _ record: Record?,
        of key: Bytes,
        _ context: borrowing CommandContext
    ) {
        if let value = record?.value {
            context.output.writeBulk(value)
        } else if let standard = context.core.rules?.standards[key] {
            standard.value.withUnsafeBytes { context.output.writeBulk($0) }
        } else {
            context.output.writeNull(context.version)
        }
    }

    func multiGet(_ keys: Arguments, _ context: inout CommandContext) throws(StateError) {
        let start = context.output.count
        context.output.writeArray(keys.count)
        for index in 0..<keys.count {
            let record = try context.look(at: keys[index])
            writeValue(record, of: keys[index], context)
            try settings.options.checkReply(context.output.count - start)
        }
    }

    func length(_ key: Bytes, _ context: inout CommandContext) throws(StateError) {
        let record = try context.look(at: key)
        context.output.writeInteger(Int64(record?.value?.count ?? 0))
    }

    // MARK: Writing

    func set(
        _ key: Bytes,
        _ value: Bytes,
        _ condition: Condition?,
        _ expiry: Expiry,
        returnsOld: Bool,
        _ context: inout CommandContext
    ) throws(StateError) {
        guard condition == nil, !returnsOld else {
            return try set(key, to: value, expiry, returnsOld: returnsOld, &context) { old in
                condition?.allows(old) ?? true
            }
        }
        try context.write { (transaction) throws(StateError) in
            try transaction.set(
                key,
                to: value,
                isConditional: expiry == .kept,
                expiry: expiry,
                operation: expiry.operation
            )
        }
        context.output.writeOK()
    }

    /// Sets a value if that is allowed beside the present one.
    func set(
        _ key: Bytes,
        to value: Bytes,
        _ expiry: Expiry,
        returnsOld: Bool,
        _ context: inout CommandContext,
        if allows: (Record?) -> Bool
    ) throws(StateError) {
        let connection = context.connection
        let start = connection.outbound.bytes.count
        try context.write { (transaction) throws(StateError) in
            let old = try transaction.look(at: key)
            if returnsOld {
                connection.outbound.bytes.writeValue(old?.value, connection.session.version)
            }
            guard allows(old) else {
                if !returnsOld { connection.outbound.bytes.writeNull(connection.session.version) }
                return
            }
            try transaction.set(
                key,
                to: value,
                isConditional: true,
                expiry: expiry,
                operation: expiry.operation
            )
        }
        if connection.outbound.bytes.count == start { connection.outbound.bytes.writeOK() }
    }

    func getDelete(_ key: Bytes, _ context: inout CommandContext) throws(StateError) {
        let connection = context.connection
        try context.write { (transaction) throws(StateError) in
            let old = try transaction.look(at: key)
            connection.outbound.bytes.writeValue(old?.value, connection.session.version)
            try transaction.delete(key)
        }
    }

    func multiSet(
        _ pairs: Arguments,
        onlyIfAllAbsent: Bool,
        _ context: inout CommandContext
    ) throws(StateError) {
        let isDone = try context.write { (transaction) throws(StateError) -> Bool in
            let places = stride(from: 0, to: pairs.count, by: 2)
            if onlyIfAllAbsent {
                var isOneThere = false
                for index in places where try transaction.look(at: pairs[index]) != nil {
                    isOneThere = true
                }
                if isOneThere { return false }
            }
            for index in places {
                try transaction.set(
                    pairs[index],
                    to: pairs[index + 1],
                    isConditional: onlyIfAllAbsent
                )
            }
            return true
        }
        if onlyIfAllAbsent {
            context.output.writeInteger(isDone ? 1 : 0)
        } else {
            context.output.writeOK()
        }
    }

    func delete(_ keys: Arguments, _ context: inout CommandContext) throws(StateError) {
        let count = try context.write { (transaction) throws(StateError) -> Int64 in
            var count: Int64 = 0
            for index in 0..<keys.count where try transaction.delete(keys[index]) { count += 1 }
            return count
        }
        context.output.writeInteger(count)
    }

    func append(
        _ suffix: Bytes,
        to key: Bytes,
        _ context: inout CommandContext
    ) throws(StateError) {
        let length = try context.write { (transaction) throws(StateError) -> Int in
            let value = try transaction.look(at: key)?.value ?? Bytes(start: nil, count: 0)
            let length = value.count + suffix.count
            try transaction.set(
                key,
                to: value,
                appending: suffix,
                isConditional: true,
                expiry: .kept,
                operation: .append
            )
            return length
        }
        context.output.writeInteger(Int64(length))
    }

    func add(
        _ number: Int64,
        to key: Bytes,
        _ context: inout CommandContext
    ) throws(StateError) {
        let sum = try context.write { (transaction) throws(StateError) -> Int64 in
            let value = try transaction.look(at: key)?.value
            guard let old = value.map(\.decimal) ?? 0 else {
                throw StateError(.err, "value is not an integer or out of range")
            }
            let (sum, overflows) = old.addingReportingOverflow(number)
            guard !overflows else {
                throw StateError(.err, "increment or decrement would overflow")
            }
            var digits = String(sum)
            let result = digits.withUTF8 { bytes in
                Result { () throws(StateError) in
                    try transaction.set(
                        key,
                        to: Bytes(bytes),
                        isConditional: true,
                        expiry: .kept,
                        operation: .add
                    )
                }
            }
            try result.get()
            return sum
        }
        context.output.writeInteger(sum)
    }
}

extension Condition {
    /// Whether NX or XX allows a SET.
    fileprivate func allows(_ old: Record?) -> Bool {
        switch self {
        case .isAbsent: old == nil
        case .isPresent: old != nil
        case .revision(let revision): (old?.revision ?? 0) == revision
        case .value(let value): old?.value.map { $0.isEqual(to: value) } ?? false
        }
    }
}

extension Expiry {
    /// What a set with this time is announced as.
    var operation: ChangeOperation {
        switch self {
        case .after, .at: .timedSet
        case .ruled, .kept, .never, .with: .plain
        }
    }
}
