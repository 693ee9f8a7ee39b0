import StateEngine
import StateTestSupport
import StateWire

/// Compares what a watch with LATEST was told with what was committed.
///
/// It finds: a value that was never committed, one that is older than one told before, and a `synced` at which what was told is not
/// exactly the state.
struct LatestAudit {
    private let commits: [HeldBacking.Change]

    init(_ kept: [HeldBacking.Change], _ patterns: String...) throws {
        let set = PatternSet(try patterns.map { try Pattern($0) })
        commits = kept.filter { $0.key.withUnsafeBytes(set.matches) }
    }

    private struct Value: Equatable {
        var value: [UInt8]?
        var revision: Int64
    }

    /// The first fault in the pushes of one watch that knows the state at revision `start`, and of its resumptions; nil where there
    /// is none.
    func fault(in pushes: [Reply], from start: Int64 = 0) -> String? {
        var model: [[UInt8]: Value] = [:]
        var next = 0
        func advance(to revision: Int64) {
            while next < commits.count, commits[next].revision <= revision {
                let change = commits[next]
                model[change.key] = Value(value: change.value, revision: change.revision)
                next += 1
            }
        }
        advance(to: start)
        var told = model
        var synced = start
        for push in pushes {
            switch push.pushKind {
            case "state.change":
                for row in push.elements?[3].elements ?? [] {
                    if let fault = LatestAudit.take(row, push.pushRevision, &told) { return fault }
                }
            case "state.gap": told = [:]
            case "state.synced":
                guard push.pushRevision >= synced else { return "\(push.shown) after \(synced)" }
                synced = push.pushRevision
                advance(to: synced)
                // A state has no row of what is absent.
                let seen = told.filter { $0.value.value != nil }
                let want = model.filter { $0.value.value != nil }
                guard seen == want else {
                    return "at \(synced): \(LatestAudit.difference(seen, want))"
                }
                told = model
            default: return "unexpected: \(push.shown.prefix(200))"
            }
        }
        return nil
    }

    private static func take(
        _ row: Reply,
        _ revision: Int64,
        _ told: inout [[UInt8]: Value]
    ) -> String? {
        guard let parts = row.elements, let key = parts[0].byteValue else {
            return "no row: \(row.shown.prefix(100))"
        }
        let revision = revision == 0 ? parts[2].integerValue ?? 0 : revision
        if let known = told[key], known.revision > revision {
            return "\(row.shown.prefix(100)) of \(revision) after \(known.revision)"
        }
        told[key] = Value(value: parts[1].byteValue, revision: revision)
        return nil
    }

    private static func difference(_ seen: [[UInt8]: Value], _ want: [[UInt8]: Value]) -> String {
        let keys = Set(seen.keys).union(want.keys).filter { seen[$0] != want[$0] }
        let key = keys.first ?? []
        return "\(keys.count) keys differ, \(String(decoding: key, as: UTF8.self)) is told at "
            + "\(seen[key]?.revision ?? 0), committed at \(want[key]?.revision ?? 0)"
    }
}
