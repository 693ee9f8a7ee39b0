import StateEngine
import StateTestSupport

/// Keeps what a watch is told, and checks that it comes in order.
final class WatchRecorder: Sendable {
    /// What was told, and what is wrong with it.
    struct Told {
        var events: [KeyspaceEvent] = []
        /// The keys and values that the events make up.
        var values: [String: String] = [:]
        var revision: Revision?
        var faults: [String] = []
        var isAway = false
    }

    let told = Observed(Told())

    /// Takes an event; what a watch is begun with.
    func take(_ event: KeyspaceEvent) {
        told.update { told in
            told.events.append(event)
            switch event {
            case .commit(let revision, let changes, _):
                if !(told.revision.map { revision.isNewer(than: $0) } ?? false) {
                    told.faults.append("commit \(revision) after \(told.revision as Any)")
                }
                told.revision = revision
                for change in changes { told.put(change) }
            case .state(let revision, let patterns, let changes):
                if let last = told.revision, last.isNewer(than: revision) {
                    told.faults.append("state \(revision) after \(last)")
                }
                told.revision = revision
                told.isAway = false
                let set = PatternSet(patterns)
                told.values = told.values.filter { entry in
                    !Array(entry.key.utf8).withUnsafeBytes { set.matches($0) }
                }
                for change in changes { told.put(change) }
            case .away:
                if told.isAway { told.faults.append("away twice") }
                told.isAway = true
            case .resumed(let revision):
                if !told.isAway { told.faults.append("resumed, and was not away") }
                if told.revision.map({ $0.isNewer(than: revision) }) ?? true {
                    told.faults.append("resumed at \(revision) after \(told.revision as Any)")
                }
                told.isAway = false
            case .refused: break
            }
        }
    }

    /// Waits until the events make up so much.
    func waits(for condition: (Told) -> Bool) -> Bool { told.wait(until: condition) }

    /// Waits until one of the events is shown so.
    func waits(forEvent shown: String) -> Bool {
        told.wait { $0.events.contains { $0.shown == shown } }
    }

    var shown: [String] { told.current.events.map(\.shown) }
}

extension WatchRecorder.Told {
    fileprivate mutating func put(_ change: KeyspaceChange) {
        values["\(change.key)"] = change.value.map { String(decoding: $0, as: UTF8.self) }
    }
}

extension KeyspaceEvent {
    /// `commit 3 k=v gone`, `state 2 of k a/: k=v`, `away`, `refused k`; the keys in order.
    var shown: String {
        switch self {
        case .commit(let revision, let changes, _):
            "commit \(revision.number) \(Self.shown(changes))"
        case .state(let revision, let patterns, let changes):
            "state \(revision.number) of \(Self.shown(patterns)): \(Self.shown(changes))"
        case .away: "away"
        case .resumed(let revision): "resumed at \(revision.number)"
        case .refused(let patterns, _): "refused \(Self.shown(patterns))"
        }
    }

    private static func shown(_ patterns: [Pattern]) -> String {
        patterns.map(\.description).sorted().joined(separator: " ")
    }

    private static func shown(_ changes: [KeyspaceChange]) -> String {
        changes.sorted { $0.key < $1.key }
            .map { change in
                "\(change.key)"
                    + (change.value.map { "=\(String(decoding: $0, as: UTF8.self))" } ?? "")
            }
            .joined(separator: " ")
    }
}

extension [UInt8] {
    init(text: some CustomStringConvertible) { self = Array(text.description.utf8) }
}
