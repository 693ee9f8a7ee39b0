import StateEngine
import StateTestSupport
import StateWire

/// Compares what a watch was told with what was committed.
///
/// It finds: a snapshot whose pieces are not exactly the state at its `synced`; a commit that was told twice, not at all, not
/// whole or out of order.
struct WatchAudit {
    private var commits: [(revision: Int64, changes: [HeldBacking.Change])] = []
    private let patterns: PatternSet

    /// Prepares for watches of these patterns on a store that was empty; `kept` is what was committed, in order.
    init(_ kept: [HeldBacking.Change], _ patterns: String...) throws {
        self.patterns = PatternSet(try patterns.map { try Pattern($0) })
        for change in kept where change.key.withUnsafeBytes(self.patterns.matches) {
            if commits.last?.revision == change.revision {
                commits[commits.count - 1].changes.append(change)
            } else {
                commits.append((change.revision, [change]))
            }
        }
    }

    private typealias State = [[UInt8]: [UInt8]]

    private func state(at revision: Int64) -> State {
        var state: State = [:]
        for commit in commits where commit.revision <= revision {
            for change in commit.changes { state[change.key] = change.value }
        }
        return state
    }

    /// The first fault in the pushes of one watch; nil where there is none.
    ///
    /// The watch is live from revision `start` on, or where that is nil begins with a snapshot.
    func fault(in pushes: [Reply], liveFrom start: Int64?) -> String? {
        var told = start
        var pieces: State = [:]
        for push in pushes {
            guard let parts = push.elements, let revision = parts[2].integerValue else {
                return "no push of a watch: \(push.shown.prefix(200))"
            }
            switch (parts[0].textValue, told) {
            case ("state.change", .some(let last)):
                guard let next = commits.first(where: { $0.revision > last }) else {
                    return "commit \(revision) is told after the last"
                }
                guard revision == next.revision else {
                    return "after \(last) comes \(next.revision), told was \(revision)"
                }
                guard parts[3] == WatchAudit.rows(next.changes) else {
                    return "commit \(revision) is not whole"
                }
                told = revision
            case ("state.change", nil):
                guard revision == 0 else { return "commit \(revision) amid a snapshot" }
                WatchAudit.apply(parts[3], to: &pieces)
            case ("state.synced", nil):
                guard pieces == state(at: revision) else {
                    return "the pieces are not the state at \(revision)"
                }
                told = revision
            case ("state.progress", .some(let last)):
                // A bookmark says that all up to it was told.
                guard revision > last else { return "a bookmark at \(revision) after \(last)" }
                guard commits.first(where: { $0.revision > last })?.revision ?? .max > revision
                else { return "a bookmark at \(revision), but there is more after \(last)" }
                told = revision
            case ("state.gap", _):
                pieces = [:]
                told = nil
            default: return "\(push.shown.prefix(200)) after \(told ?? 0)"
            }
        }
        let last = commits.last?.revision ?? 0
        if let told, told >= last { return nil }
        return "told up to \(told ?? 0) of \(last)"
    }

    private static func rows(_ changes: [HeldBacking.Change]) -> Reply {
        .array(
            changes.map { .array([.bulk($0.key), $0.value.map(Reply.bulk) ?? .null]) }
        )
    }

    private static func apply(_ rows: Reply, to pieces: inout State) {
        for row in rows.elements ?? [] {
            guard let parts = row.elements, let key = parts[0].byteValue else { continue }
            pieces[key] = parts[1].byteValue
        }
    }
}
