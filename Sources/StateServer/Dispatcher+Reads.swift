import StateEngine
import StateWire

/// Redis's reading commands.
extension Dispatcher {
    func get(_ key: Bytes, _ connection: Connection, _ core: KeyspaceCore) throws(StateError) {
        let record = try core.look(at: key, for: restriction(connection, core))
        writeValue(record, of: key, connection, core)
    }

    /// What a key holds, or what a rule says that it is while nobody has set it.
    private func writeValue(
        _ record: Record?,
        of key: Bytes,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) {
        if let value = record?.value {
            connection.output.writeBulk(value)
        } else if let standard = core.rules?.rule(for: key)?.settings.standard {
            standard.value.withUnsafeBytes { connection.output.writeBulk($0) }
        } else {
            connection.output.writeNull(connection.version)
        }
    }

    func multiGet(
        _ keys: Arguments,
        _ connection: Connection,
        _ core: KeyspaceCore
    )
        throws(StateError)
    {
        let subject = restriction(connection, core)
        let start = connection.output.count
        connection.output.writeArray(keys.count)
        for index in 0..<keys.count {
            let record = try core.look(at: keys[index], for: subject)
            writeValue(record, of: keys[index], connection, core)
            try checkReply(connection.output.count - start)
        }
    }

    func exists(
        _ keys: Arguments,
        _ connection: Connection,
        _ core: KeyspaceCore
    )
        throws(StateError)
    {
        let subject = restriction(connection, core)
        var count: Int64 = 0
        for index in 0..<keys.count where try core.look(at: keys[index], for: subject) != nil {
            count += 1
        }
        connection.output.writeInteger(count)
    }

    func type(_ key: Bytes, _ connection: Connection, _ core: KeyspaceCore) throws(StateError) {
        let record = try core.look(at: key, for: restriction(connection, core))
        connection.output.writeSimple(record == nil ? "none" : "string")
    }

    func length(_ key: Bytes, _ connection: Connection, _ core: KeyspaceCore) throws(StateError) {
        let record = try core.look(at: key, for: restriction(connection, core))
        connection.output.writeInteger(Int64(record?.value?.count ?? 0))
    }

    func keys(_ glob: Bytes, _ connection: Connection, _ core: KeyspaceCore) throws(StateError) {
        var found: [Record] = []
        var byteCount = 0
        let subject = restriction(connection, core)
        core.forEach(PatternSet([Pattern(redisGlob: glob)])) { record in
            guard core.mayRead(record, subject) else { return true }
            found.append(record)
            byteCount += record.key.count + 8
            return byteCount <= options.replyByteCount
        }
        try checkReply(byteCount)
        connection.output.writeArray(found.count)
        for record in found { connection.output.writeBulk(record.key) }
    }

    /// Looks at `count` keys below the glob's literal part, in key order.
    func scan(
        _ cursor: UInt64,
        _ match: Bytes?,
        _ count: Int,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) throws(StateError) {
        var bound: [UInt8]?
        if cursor != 0 {
            guard let key = cursors.key(of: cursor) else {
                throw StateError(.err, "cursor \(cursor) is not known any more; begin again with 0")
            }
            bound = key
        }
        var found: [Record] = []
        var last: Record?
        var isWhole = true
        var seen = 0
        let subject = restriction(connection, core)
        let pattern = match.map { Pattern(redisGlob: $0) }
        let area =
            pattern.map { PatternSet([Pattern(literalPartOf: $0)]) } ?? PatternSet([.everything])
        func look(_ bound: Bytes?) {
            core.forEach(area, after: bound) { record in
                guard seen < count else {
                    isWhole = false
                    return false
                }
                seen += 1
                last = record
                if pattern?.matches(record.key) ?? true, core.mayRead(record, subject) {
                    found.append(record)
                }
                return true
            }
        }
        if let bound { bound.withUnsafeBytes { look($0) } } else { look(nil) }
        let next = isWhole ? 0 : last.map { cursors.make(after: Array($0.key)) } ?? 0
        connection.output.writeArray(2)
        connection.output.writeBulk(String(next))
        connection.output.writeArray(found.count)
        for record in found { connection.output.writeBulk(record.key) }
    }

    func write(_ value: Bytes?, _ connection: Connection) {
        if let value {
            connection.output.writeBulk(value)
        } else {
            connection.output.writeNull(connection.version)
        }
    }
}
