/// What a daemon serves.
struct Observation {
    var epoch = ""
    var compacted: Int64 = 0
    var entries: [String: Entry] = [:]
    var memory: [String: Entry] = [:]
    /// The transactions that its history still has, but for those of memory.
    var commits: [Commit] = []
    /// Why some of it could not be had.
    var refusals: [String] = []

    init(_ connection: Connection) throws(Failure) {
        entries = try Observation.entries(Keys.storedPatterns, connection)
        memory = try Observation.entries([Keys.memoryPattern], connection)
        // Compaction may go on meanwhile.
        for _ in 0..<100 {
            let status = try connection.ask("STATE.STATUS")
            epoch = status["epoch"]?.string ?? ""
            compacted = status["compacted"]?.number ?? 0
            try readCommits(connection)
            if refusals.isEmpty { break }
            let isCompacted = try connection.ask("STATE.STATUS")["compacted"]?.number != compacted
            guard isCompacted else { break }
        }
    }

    static func entries(
        _ patterns: [String],
        _ connection: Connection
    ) throws(Failure) -> [String: Entry] {
        var entries: [String: Entry] = [:]
        for pattern in patterns {
            let answer = try connection.ask("STATE.LIST", pattern)
            guard let rows = answer.list else { throw Failure("STATE.LIST \(pattern): \(answer)") }
            for row in rows {
                guard let row = row.list, row.count == 3, let key = row[0].string,
                    let value = row[1].bytes, let revision = row[2].number
                else { throw Failure("STATE.LIST \(pattern): \(row)") }
                entries[key] = Entry(value: value, revision: revision)
            }
        }
        return entries
    }

    private mutating func readCommits(_ connection: Connection) throws(Failure) {
        var since = compacted
        (commits, refusals) = ([], [])
        while true {
            connection.send(["STATE.CHANGES", "SINCE", "\(since)"] + Keys.storedPatterns)
            let answer = try connection.read().value
            guard let parts = answer.list, parts.count == 3, parts[0].string == "ok",
                let next = parts[1].number, let rows = parts[2].list
            else {
                refusals.append(
                    "STATE.CHANGES SINCE \(since): " + (answer.list?.first?.string ?? "\(answer)")
                )
                return
            }
            for row in rows {
                guard let row = row.list, row.count == 2,
                    let commit = Observation.commit(revision: row[0], changes: row[1])
                else { throw Failure("STATE.CHANGES: \(row)") }
                commits.append(commit)
            }
            if rows.isEmpty || next == since { return }
            since = next
        }
    }

    static func commit(revision: Value, changes: Value) -> Commit? {
        guard let revision = revision.number, let rows = changes.list else { return nil }
        var commit = Commit(revision: revision, changes: [:])
        for row in rows {
            guard let row = row.list, row.count >= 2, let key = row[0].string else { return nil }
            commit.changes[key] = .some(row[1].bytes)
        }
        return commit
    }
}
