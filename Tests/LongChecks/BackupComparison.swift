import Glibc
import StateTestSupport
import StateWire

/// Compares a restored store with the daemon that the backup is of, as of the revision of the backup.
///
/// Both are asked over the socket, and then stopped.
struct BackupComparison {
    private let daemon: Daemon
    private let copy: Daemon
    private let revision: Int64
    private let keyCount: Int
    private static let pageCount = 20_000

    /// Starts a daemon on what was restored.
    init(
        _ daemon: Daemon,
        _ directory: TemporaryDirectory,
        configuration: String,
        revision: Int64,
        keyCount: Int
    ) throws {
        (self.daemon, self.revision, self.keyCount) = (daemon, revision, keyCount)
        copy = try Daemon(
            "--config",
            configuration,
            directory: directory,
            within: .seconds(300)
        )
    }

    /// Stops both.
    ///
    /// - Throws: ``Failure`` that names the first difference.
    func run() throws -> String {
        let (wire, other) = (try Wire(daemon.socketPath), try Wire(copy.socketPath))
        let (entries, owners) = try compareEntries(wire, other)
        // Odd, so that those with deadlines are among them as they are among all.
        let keys = stride(from: 2, to: keyCount, by: keyCount / 20_000 | 1).map { "k/\($0)" }
        let deadlines = try compareDeadlines(keys, wire, other)
        let changes = try compareHistory(keys, wire, other)
        try daemon.stop(within: .seconds(120))
        try copy.stop(within: .seconds(120))
        return
            "at revision \(revision) as restored: \(entries) entries of \(owners) users, \(deadlines) deadlines and "
            + "\(changes) changes of \(keys.count) keys"
    }

    /// Values, revisions, owners, times and causes; and the pairs, that the revision is one.
    private func compareEntries(_ wire: Wire, _ other: Wire) throws -> (Int, owners: Int) {
        var last: String?
        var count = 0
        var owners: Set<Reply> = []
        var values: [Int: Reply] = [:]
        while true {
            let page = ["LIMIT", "\(BackupComparison.pageCount)", "LONG"]
            let rest = (last.map { ["AFTER", $0] } ?? []) + page
            let rows = try ask(wire, ["STATE.LIST", "/"] + rest + ["AT", "\(revision)"])
            guard try ask(other, ["STATE.LIST", "/"] + rest) == rows, let rows = rows.elements
            else {
                throw Failure(
                    "entries after '\(last ?? "")' differ from those of revision \(revision)"
                )
            }
            guard let key = rows.last?.elements?.first?.textValue else { break }
            for row in rows.compactMap(\.elements) {
                owners.insert(row[6])
                guard
                    let number = row[0].textValue.flatMap({
                        $0.hasPrefix("k/") ? Int($0.dropFirst(2)) : nil
                    })
                else { continue }
                if let pair = values.removeValue(forKey: keyCount - 1 - number),
                    number != keyCount - 1 - number
                {
                    let isPair = !BackupFill.singles(of: keyCount).contains(number)
                    guard !isPair || pair == row[1] else {
                        throw Failure("k/\(number) and its pair are of different revisions")
                    }
                } else {
                    values[number] = row[1]
                }
            }
            count += rows.count
            last = key
        }
        guard count >= keyCount else { throw Failure("only \(count) entries are listed") }
        return (count, owners.count)
    }

    /// - Returns: How many of the keys have one.
    private func compareDeadlines(_ keys: [String], _ wire: Wire, _ other: Wire) throws -> Int {
        var count = 0
        try compare(keys, wire, other) {
            ["STATE.GET", $0, "AT", "\(revision)"]
        } _: {
            ["STATE.GET", $0]
        } _: {
            if $0["expires"]?.integerValue ?? 0 > 0 { count += 1 }
        }
        guard count >= keys.count / 50 else { throw Failure("only \(count) keys have a deadline") }
        return count
    }

    /// - Returns: The number of changes.
    private func compareHistory(_ keys: [String], _ wire: Wire, _ other: Wire) throws -> Int {
        var count = 0
        try compare(keys, wire, other) {
            ["STATE.HISTORY", $0, "LIMIT", "1000", "BEFORE", "\(revision + 1)"]
        } _: {
            ["STATE.HISTORY", $0, "LIMIT", "1000"]
        } _: {
            count += $0.elements?.count ?? 0
        }
        guard count >= keys.count else { throw Failure("\(keys.count) keys have \(count) changes") }
        return count
    }

    private func compare(
        _ keys: [String],
        _ wire: Wire,
        _ other: Wire,
        _ then: (String) -> [String],
        _ now: (String) -> [String],
        _ note: (Reply) -> Void
    ) throws {
        for start in stride(from: 0, to: keys.count, by: 100) {
            let piece = keys[start..<min(start + 100, keys.count)]
            try wire.send(piece.flatMap { Wire.command(then($0)) })
            try other.send(piece.flatMap { Wire.command(now($0)) })
            for key in piece {
                let (old, new) = (try wire.next(), try other.next())
                guard old == new else { throw Failure("\(then(key)): \(old); restored: \(new)") }
                if case .error(let error) = old { throw Failure("\(then(key)): \(error)") }
                note(old)
            }
        }
    }

    private func ask(_ wire: Wire, _ words: [String]) throws -> Reply {
        try wire.send(Wire.command(words))
        let reply = try wire.next()
        if case .error(let error) = reply { throw Failure("\(words): \(error)") }
        return reply
    }
}
