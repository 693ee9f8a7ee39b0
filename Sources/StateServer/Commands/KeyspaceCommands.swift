import CLinux
import StateEngine
import StateWire

/// Commands of Redis about keys.
struct KeyspaceCommands {
    let settings: Settings
    let listings: Listings
    let cursors: ScanCursors

    func exists(_ keys: Arguments, _ context: inout CommandContext) throws(StateError) {
        var count: Int64 = 0
        for index in 0..<keys.count where try context.look(at: keys[index]) != nil { count += 1 }
        context.output.writeInteger(count)
    }

    func type(_ key: Bytes, _ context: inout CommandContext) throws(StateError) {
        let record = try context.look(at: key)
        context.output.writeSimple(record == nil ? "none" : "string")
    }

    /// DBSIZE.
    ///
    /// - Throws: ``StateError/Code/noPermission``, if keys may be hidden from the connection, as
    ///   their number is hidden then, too.
    func databaseSize(_ context: borrowing CommandContext) throws(StateError) {
        guard context.showsEverything else {
            throw StateError(
                .noPermission,
                "DBSIZE would count keys that uid \(context.connection.peer.uid) may not read; use "
                    + "STATE.LIST / COUNT to count the others"
            )
        }
        context.output.writeInteger(Int64(context.core.entries.durableCount))
    }

    func keys(_ glob: Bytes, _ context: inout CommandContext) throws(StateError) {
        try KeyspaceCommands.checkGlob(glob)
        let request = Listing.Request(
            patterns: PatternSet([Pattern(redisGlob: glob)]),
            byteLimit: settings.options.replyByteCount,
            subject: context.restriction,
            form: .key
        )
        try listings.list(request, &context) { listing, context in
            context.output.writeArray(listing.listedCount)
            listing.writeRows(to: &context.output)
        }
    }

    /// Visits `count` keys below the glob's literal part, in key order, and lists those that match.
    ///
    /// Keys that the client may not read do not count, so that no cursor reveals them.
    func scan(_ scan: Command.Scan, _ context: inout CommandContext) throws(StateError) {
        let (uid, connection) = (context.connection.peer.uid, context.connection.number)
        let (cursor, count) = (scan.cursor, scan.count)
        var bound: [UInt8]?
        if cursor != 0 {
            guard let key = cursors.key(of: cursor, uid) else {
                throw StateError(.err, "cursor \(cursor) is no longer valid; begin again with 0")
            }
            bound = key
        }
        if let match = scan.match { try KeyspaceCommands.checkGlob(match) }
        guard scan.includesStrings else { return writePage(0, of: 0, &context) }
        let pattern = scan.match.map { Pattern(redisGlob: $0) }
        let area = pattern.map { Pattern(literalPartOf: $0) } ?? .everything
        let request = Listing.Request(
            patterns: PatternSet([area]),
            after: bound,
            // One more shows whether there are more.
            limit: min(count, .max - 1) + 1,
            // COUNT is a hint: a page ends at the size limit of a reply.
            byteLimit: settings.options.replyByteCount,
            endsAtByteLimit: true,
            subject: context.restriction,
            form: .key,
            rowsOf: pattern,
            isOneMoment: false
        )
        try listings.list(request, &context) { [self] listing, context in
            if listing.count > count { listing.removeLast() }
            let last = listing.isWhole ? nil : listing.lastKey
            let next = cursors.advance(to: last, from: cursor, connection, uid)
            writePage(next, of: listing.rowCount, &context)
            listing.writeRows(to: &context.output)
        }
    }

    private func writePage(
        _ cursor: UInt64,
        of count: Int,
        _ context: inout CommandContext
    ) {
        context.output.writeArray(2)
        context.output.writeBulk(String(cursor))
        context.output.writeArray(count)
    }

    /// Refuses a glob that is longer than a key can be: its cost grows with its length.
    static func checkGlob(_ glob: Bytes) throws(StateError) {
        guard glob.count > Key.maximumByteCount else { return }
        throw StateError(
            .tooBig,
            "the glob has \(glob.count) bytes; the limit is \(Key.maximumByteCount), as for keys"
        )
    }
}
