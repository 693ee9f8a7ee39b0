import StateTestSupport
import StateWire

/// Finds out what the daemon committed, by what it answered and by what it kept.
struct RunHistory {
    typealias Entry = CommitRecord.Entry

    /// So many changes of a key are read at once.
    private static let pageCount = 64

    private let ask: ([[UInt8]]) throws -> Reply

    init(_ socketPath: String) throws { ask = try RunStore.asking(socketPath) }

    /// Adds to the record what was written; where no answer came, the history says whether it happened.
    ///
    /// - Throws: ``SystemFailure`` where the store is another than what was written makes it.
    func settle(_ written: [RunBoard.Written], into record: inout CommitRecord) throws {
        var commits: [Int64: WriterTransaction] = [:]
        for written in written {
            guard let revision = written.revision else { continue }
            if let other = commits.updateValue(written.transaction, forKey: revision) {
                throw SystemFailure(
                    "two commits were told \(revision): \(other), \(written.transaction)"
                )
            }
        }
        let unanswered = written.filter { $0.revision == nil }
        for (revision, changes) in try changes(of: unanswered) where commits[revision] == nil {
            let names = Set(changes.compactMap(\.value))
            let made = unanswered.first { written in
                let keys = Set(written.transaction.steps.map(\.key))
                return names.isSubset(of: written.transaction.steps.compactMap(\.value))
                    && changes.allSatisfy { keys.contains($0.key) }
            }
            guard let made, revision > record.revision else {
                throw SystemFailure("nobody made the commit \(revision): \(changes)")
            }
            commits[revision] = made.transaction
        }
        for (revision, transaction) in commits.sorted(by: { $0.key < $1.key }) {
            guard revision > record.revision else {
                throw SystemFailure("\(revision) was told after \(record.revision)")
            }
            record.append(revision, transaction.steps)
        }
        try compareState(with: record)
    }

    /// The commits that may be those of transactions without an answer.
    private func changes(
        of unanswered: [RunBoard.Written]
    ) throws -> [Int64: [RecordedChange]] {
        guard let after = unanswered.map(\.after).min() else { return [:] }
        var found: [Int64: [RecordedChange]] = [:]
        for key in Set(unanswered.flatMap { $0.transaction.steps.map(\.key) }) {
            for change in try history(of: key, after: after) {
                found[change.revision, default: []].append(RecordedChange(key, change.value))
            }
        }
        return found
    }

    private func history(
        of key: String,
        after revision: Int64
    ) throws -> [(revision: Int64, value: String?)] {
        var limit = Self.pageCount
        while true {
            let changes = try history(of: key, limit: limit)
            let isEnough = changes.count < limit || changes.last?.revision ?? 0 <= revision
            guard !isEnough else { return changes.filter { $0.revision > revision } }
            limit *= 8
        }
    }

    /// The last changes of a key, newest first.
    private func history(
        of key: String,
        limit: Int
    ) throws -> [(revision: Int64, value: String?)] {
        let reply = try ask(["STATE.HISTORY", key, "LIMIT", "\(limit)"].bytes)
        guard let maps = reply.elements else { throw SystemFailure("STATE.HISTORY: \(reply)") }
        return try maps.map { map in
            guard let revision = map["revision"]?.integerValue, let value = map["value"] else {
                throw SystemFailure("STATE.HISTORY: \(map)")
            }
            return (revision, value.valueName(key))
        }
    }

    /// Compares what the daemon has with what the commits make.
    private func compareState(with record: CommitRecord) throws {
        let reply = try ask(["STATE.LIST", "/"].bytes)
        guard let items = reply.elements?.compactMap(\.elements) else {
            throw SystemFailure("STATE.LIST: \(reply)")
        }
        let pieces = items.compactMap { parts -> WatchSession.Piece? in
            guard let key = parts[0].textValue, let revision = parts[2].integerValue else {
                return nil
            }
            return .init(key, parts[1].valueName(key), revision)
        }
        let state = record.state(at: record.revision)
        if let difference = StateComparison(state, told: pieces).difference {
            throw SystemFailure(
                "the state at \(record.revision) is not what was written: \(difference)"
            )
        }
    }

    /// Compares what is left of every key's history with the commits; compaction may have taken the older changes.
    func compareHistory(with record: CommitRecord, limit: Int = 400) throws {
        for key in RunPlan.keys {
            let kept = try history(of: key, limit: limit)
            let made = record.changes(of: key).prefix(kept.count)
            guard zip(kept, made).allSatisfy({ $0 == $1 }), kept.count == made.count else {
                throw SystemFailure("the history of '\(key)' is \(kept), made was \(Array(made))")
            }
        }
    }
}
