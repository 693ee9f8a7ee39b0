import StateWire

/// Compares a restarted server with the writers' log.
///
/// A writer's writes used one connection, one after the other. So after a crash, its keys must show
/// exactly its acknowledged writes and the first few of the unanswered ones. Then the log is
/// rewritten with what was found: what survived one crash must survive the next.
enum CheckCommand {
    static func run(_ options: Options) throws(BenchError) {
        let path = try options.text("log")
        guard let text = TextFile.read(path) else { throw .system("read '\(path)'") }
        let connection = try Connection(socket: options.text("socket"))
        var check = CrashCheck(
            log: try CrashLog(text),
            connection: connection,
            plain: options.has("plain")
        )
        try check.run()
        try TextFile.write(check.log.text, to: path)
        print("keys \(check.keyCount)")
        print("kept \(check.keptCount)")
        print("revision \(check.log.revision)")
    }
}

private struct CrashCheck {
    var log: CrashLog
    let connection: Connection
    let plain: Bool
    private(set) var keyCount = 0
    /// How many unanswered writes the server has made.
    private(set) var keptCount = 0

    init(log: CrashLog, connection: Connection, plain: Bool) {
        self.log = log
        self.connection = connection
        self.plain = plain
    }

    mutating func run() throws(BenchError) {
        if !plain { try checkRevision() }
        for number in log.writers.indices {
            let found = try readKeys(of: number)
            try checkGroups(of: number, found)
            log.writers[number] = try settled(number, found)
            keyCount += found.count
        }
        guard !plain else { return }
        try checkAcknowledgedRevisions()
        let listed = try connection.call("STATE.LIST", "crash/", "COUNT").integerValue.map(Int.init)
        guard listed == keyCount else {
            let text = "\(listed ?? -1) keys are listed, \(keyCount) were found by name"
            throw .broken(law: "only written keys exist", key: "crash/", text)
        }
    }

    private mutating func checkRevision() throws(BenchError) {
        let status = try connection.call("STATE.STATUS")
        guard let revision = status["revision"]?.integerValue.map(Int.init) else {
            throw .failed("STATE.STATUS has no revision: \(status)")
        }
        guard revision >= log.revision else {
            let text = "it is \(revision), but \(log.revision) was acknowledged"
            throw .broken(law: "a revision never goes back", key: "", text)
        }
        log.revision = revision
    }

    /// The stamp of each existing key.
    private func readKeys(of number: Int) throws(BenchError) -> [String: Int] {
        var found: [String: Int] = [:]
        for key in CrashWrite.allKeys(writer: number) {
            switch try connection.call("GET", key) {
            case .null: continue
            case .bulk(let bytes): found[key] = try CrashValue.stamp(of: bytes, key: key)
            case let other: throw .failed("GET \(key): \(other)")
            }
        }
        return found
    }

    private func checkGroups(of number: Int, _ found: [String: Int]) throws(BenchError) {
        for kind in CrashWrite.Kind.allCases where kind.isGroup {
            for index in 0..<CrashWrite.groupCount {
                let keys = CrashWrite(stamp: 0, kind: kind, index: index).keys(writer: number)
                for key in keys where found[key] != found[keys[0]] {
                    let stamps = keys.map { found[$0].map(String.init) ?? "absent" }
                    let text = "the group's stamps are \(stamps.joined(separator: ", "))"
                    throw .broken(law: "every \(kind.rawValue) is atomic", key: key, text)
                }
            }
        }
    }

    /// The state after the unanswered writes that the server has made.
    private mutating func settled(
        _ number: Int,
        _ found: [String: Int]
    ) throws(BenchError) -> CrashLog.Writer {
        var writer = log.writers[number]
        let unanswered = writer.unanswered
        writer.unanswered = []
        var closest = writer
        var next = 0
        while difference(writer, found, number) != nil {
            guard next < unanswered.count else {
                throw explained(closest, found, number)
            }
            writer.settle(unanswered[next], number: number)
            next += 1
            // Differences are reported against the newest prefix that some key shows.
            let keys = unanswered[next - 1].keys(writer: number)
            if found[keys[0]] == writer.stamp { closest = writer }
        }
        keptCount += next
        // A stamp is never used twice, even if its write was lost.
        writer.stamp = unanswered.last?.stamp ?? writer.stamp
        return writer
    }

    /// The first key that differs from `writer`.
    private func difference(
        _ writer: CrashLog.Writer,
        _ found: [String: Int],
        _ number: Int
    ) -> String? {
        CrashWrite.allKeys(writer: number).first { key in
            let state = writer.keys[key]
            return found[key] != (state?.isDeleted == true ? nil : state?.stamp)
        }
    }

    private func explained(
        _ expected: CrashLog.Writer,
        _ found: [String: Int],
        _ number: Int
    ) -> BenchError {
        guard let key = difference(expected, found, number) else {
            return .failed("writer \(number) differs in no key")
        }
        let shown = found[key].map { "stamp \($0)" } ?? "absent"
        let acknowledged = log.writers[number].keys[key]
        if let acknowledged, found[key].map({ $0 < acknowledged.stamp }) ?? !acknowledged.isDeleted
        {
            let text = "\(shown), but stamp \(acknowledged.stamp) was acknowledged"
            return .broken(law: "every acknowledged write is there", key: key, text)
        }
        let stamp = expected.keys[key].map { $0.isDeleted ? "absent" : "stamp \($0.stamp)" }
        let text = "\(shown), not \(stamp ?? "absent"): the writes are out of order"
        return .broken(law: "one order of commits", key: key, text)
    }

    /// Checks that each acknowledged revision is still the entry's.
    private func checkAcknowledgedRevisions() throws(BenchError) {
        for writer in log.writers {
            for (key, state) in writer.keys where state.revision > 0 {
                let entry = try connection.call("STATE.GET", key)
                guard entry["revision"]?.integerValue == Int64(state.revision) else {
                    let shown = entry["revision"]?.integerValue.map(String.init) ?? "absent"
                    let text = "its revision is \(shown), but \(state.revision) was acknowledged"
                    throw .broken(law: "a change keeps its revision", key: key, text)
                }
            }
        }
    }
}

extension CrashWrite {
    /// All keys that a writer uses.
    static func allKeys(writer: Int) -> [String] {
        var keys = (0..<singleCount).flatMap {
            CrashWrite(stamp: 0, kind: .set, index: $0).keys(writer: writer)
        }
        for kind in Kind.allCases where kind.isGroup {
            for index in 0..<groupCount {
                keys += CrashWrite(stamp: 0, kind: kind, index: index).keys(writer: writer)
            }
        }
        return keys
    }
}
