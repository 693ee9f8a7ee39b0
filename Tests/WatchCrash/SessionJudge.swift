import Glibc
import StateGuarantees

/// Judges sessions that another program has recorded: `watchcrash judge`.
///
/// It reads lines whose fields are divided by tabs: commits of one store, sessions, and after each session what came in it.
///
/// ```
/// commit    REVISION  [KEY VALUE]…
/// session   WATCHER NUMBER EPOCH START OPTIONS PATTERN…     START is now, snapshot, from:REVISION or from:REVISION:EPOCH
/// reply     REVISION EPOCH                                  OPTIONS is -, latest or previous
/// change    REVISION  [KEY VALUE]…                          with previous: [KEY VALUE PREVIOUS]…
/// pieces    [KEY VALUE REVISION]…
/// synced    REVISION
/// gap       REVISION COMPACTED
/// progress  REVISION
/// silent    REVISION
/// check
/// ```
///
/// A value is `=` and the text, or `-` if there is none. At `check` the sessions are held against the commits, and forgotten: it
/// prints a line for each violation, and then `checked SESSIONS EVENTS`.
struct SessionJudge {
    private var record = CommitRecord()
    private var sessions: [WatchSession] = []

    /// Reads to the end.
    ///
    /// - Returns: A line that cannot be read; nil if there is none.
    mutating func run() -> String? {
        while let line = readLine() {
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(
                String.init
            )
            guard take(fields) else { return line }
        }
        return nil
    }

    private mutating func take(_ fields: [String]) -> Bool {
        switch fields[0] {
        case "check":
            check()
            return true
        case "commit":
            guard let revision = fields.number(1), revision > record.revision,
                let changes = fields.rows(from: 2, of: 2)
            else { return false }
            record.append(revision, changes.map { RecordedChange($0[0], $0[1].value) })
            return true
        case "session":
            guard let session = WatchSession(fields) else { return false }
            sessions.append(session)
            return true
        default:
            guard !sessions.isEmpty else { return false }
            return sessions[sessions.count - 1].take(fields)
        }
    }

    private mutating func check() {
        var eventCount = 0
        for session in sessions {
            let violations = SessionCheck(session, against: record).violations()
            for violation in violations { print("violation \(violation)") }
            eventCount += session.events.count
        }
        print("checked \(sessions.count) \(eventCount)")
        fflush(nil)
        sessions = []
    }
}

extension WatchSession {
    /// Begins with the fields of a `session` line.
    fileprivate init?(_ fields: [String]) {
        guard fields.count > 6, let watcher = fields.number(1), let number = fields.number(2),
            let start = Start(fields[4])
        else { return nil }
        let request = Request(
            fields[6...].map { WatchPattern($0) },
            start,
            isLatest: fields[5] == "latest",
            includesPrevious: fields[5] == "previous"
        )
        self.init(watcher: Int(watcher), number: Int(number), request, epoch: fields[3])
    }

    /// Takes a line that belongs to it.
    fileprivate mutating func take(_ fields: [String]) -> Bool {
        if fields[0] == "pieces" {
            guard let pieces = fields.rows(from: 1, of: 3)?.compactMap(Piece.init),
                pieces.count * 3 == fields.count - 1
            else { return false }
            events.append(.pieces(pieces))
            return true
        }
        guard let revision = fields.number(1) else { return false }
        switch (fields[0], fields.count) {
        case ("reply", 3): reply = Reply(revision: revision, epoch: fields[2])
        case ("synced", 2): events.append(.synced(revision))
        case ("progress", 2): events.append(.progress(revision))
        case ("silent", 2): end = .silent(revision)
        case ("gap", 3):
            guard let compacted = fields.number(2) else { return false }
            events.append(.gap(revision, compacted: compacted))
        case ("change", _):
            guard let rows = fields.rows(from: 2, of: request.includesPrevious ? 3 : 2) else {
                return false
            }
            events.append(.change(revision, rows.map(Change.init)))
        default: return false
        }
        return true
    }
}

extension WatchSession.Start {
    fileprivate init?(_ text: String) {
        let parts = text.split(separator: ":").map(String.init)
        switch (parts.first, parts.count) {
        case ("now", 1): self = .now
        case ("snapshot", 1): self = .snapshot
        case ("from", 2...3):
            guard let revision = parts.number(1) else { return nil }
            self = .from(revision, epoch: parts.count == 3 ? parts[2] : nil)
        default: return nil
        }
    }
}

extension WatchSession.Change {
    fileprivate init(_ fields: [String]) {
        self.init(fields[0], fields[1].value)
        guard fields.count > 2 else { return }
        previous = fields[2].value.map { .value($0) } ?? .absent
    }
}

extension WatchSession.Piece {
    fileprivate init?(_ fields: [String]) {
        guard let revision = fields.number(2) else { return nil }
        self.init(fields[0], fields[1].value, revision)
    }
}

extension [String] {
    fileprivate func number(_ index: Int) -> Int64? {
        indices.contains(index) ? Int64(self[index]) : nil
    }

    /// The fields from an index on, so many in each row; nil if some are left over.
    fileprivate func rows(from start: Int, of length: Int) -> [[String]]? {
        guard count >= start, (count - start) % length == 0 else { return nil }
        return stride(from: start, to: count, by: length).map { Array(self[$0..<$0 + length]) }
    }
}

extension String {
    /// What a field says of a value: nil if there is none.
    fileprivate var value: String? { first == "=" ? String(dropFirst()) : nil }
}
