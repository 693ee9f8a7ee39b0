import CLinux
import StateEngine
import StateWire

/// Redis's reading commands.
extension Dispatcher {
    func get(
        _ key: Bytes,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        let record =
            if let subject = restriction(connection, core) {
                try core.look(at: key, for: subject, &receipt)
            } else {
                core.read(key, &receipt)
            }
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
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    )
        throws(StateError)
    {
        let subject = restriction(connection, core)
        let start = connection.output.count
        connection.output.writeArray(keys.count)
        for index in 0..<keys.count {
            let record = try core.look(at: keys[index], for: subject, &receipt)
            writeValue(record, of: keys[index], connection, core)
            try checkReply(connection.output.count - start)
        }
    }

    func exists(
        _ keys: Arguments,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    )
        throws(StateError)
    {
        let subject = restriction(connection, core)
        var count: Int64 = 0
        for index in 0..<keys.count
        where try core.look(at: keys[index], for: subject, &receipt) != nil {
            count += 1
        }
        connection.output.writeInteger(count)
    }

    func type(
        _ key: Bytes,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        let record = try core.look(at: key, for: restriction(connection, core), &receipt)
        connection.output.writeSimple(record == nil ? "none" : "string")
    }

    func length(
        _ key: Bytes,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        let record = try core.look(at: key, for: restriction(connection, core), &receipt)
        connection.output.writeInteger(Int64(record?.value?.count ?? 0))
    }

    func keys(
        _ glob: Bytes,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        try checkGlob(glob)
        let request = Listing.Request(
            patterns: PatternSet([Pattern(redisGlob: glob)]),
            byteLimit: options.replyByteCount,
            subject: restriction(connection, core),
            form: .key
        )
        try list(request, for: connection, core, &receipt) { listing, _, _ in
            connection.output.writeArray(listing.listedCount)
            listing.writeRows(to: &connection.output)
        }
    }

    /// Counts `count` keys below the glob's literal part, in key order, and lists those of them that match.
    ///
    /// Keys that the client may not read do not count, so that no cursor says that they are there.
    func scan(
        _ cursor: UInt64,
        _ match: Bytes?,
        _ count: Int,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        let uid = connection.peer.uid
        var bound: [UInt8]?
        if cursor != 0 {
            guard let key = cursors.key(of: cursor, uid) else {
                throw StateError(.err, "cursor \(cursor) is no longer known; begin again with 0")
            }
            bound = key
        }
        if let match { try checkGlob(match) }
        let pattern = match.map { Pattern(redisGlob: $0) }
        let area = pattern.map { Pattern(literalPartOf: $0) } ?? .everything
        let request = Listing.Request(
            patterns: PatternSet([area]),
            after: bound,
            // One more tells whether there are more.
            limit: min(count, .max - 1) + 1,
            // COUNT is a hint: a page ends where a reply may not be longer.
            byteLimit: options.replyByteCount,
            endsAtByteLimit: true,
            subject: restriction(connection, core),
            form: .key,
            rowsOf: pattern,
            isOneMoment: false
        )
        try list(request, for: connection, core, &receipt) { [unowned self] listing, _, _ in
            if listing.count > count { listing.removeLast() }
            let last = listing.isWhole ? nil : listing.lastKey
            let next = last.map { cursors.make(after: $0, uid) } ?? 0
            connection.output.writeArray(2)
            connection.output.writeBulk(String(next))
            connection.output.writeArray(listing.rowCount)
            listing.writeRows(to: &connection.output)
        }
    }

    /// Refuses a glob that is longer than a key can be: what it costs grows with it.
    func checkGlob(_ glob: Bytes) throws(StateError) {
        guard glob.count > Key.maximumByteCount else { return }
        throw StateError(
            .tooBig,
            "a glob of \(glob.count) bytes; the limit is that of keys, \(Key.maximumByteCount)"
        )
    }

    func write(_ value: Bytes?, _ connection: Connection) {
        if let value {
            connection.output.writeBulk(value)
        } else {
            connection.output.writeNull(connection.version)
        }
    }
}
