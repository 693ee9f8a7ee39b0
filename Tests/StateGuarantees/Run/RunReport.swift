/// How much a run has seen: one that saw nothing shows nothing.
package struct RunReport: Sendable, CustomStringConvertible {
    package internal(set) var commitCount = 0
    package internal(set) var compactedRevision: Int64 = 0
    /// Sessions that had a reply, by where they began.
    package private(set) var sessionCounts: [String: Int] = [:]
    /// What they were told, by kind; a change counts once for each commit.
    package private(set) var eventCounts: [String: Int] = [:]
    /// The sessions that break a guarantee.
    package private(set) var brokenSessions: [WatchSession] = []

    /// Begins with nothing.
    package init() {}

    mutating func add(_ session: WatchSession, _ violations: [Violation]) {
        if !violations.isEmpty { brokenSessions.append(session) }
        guard session.reply != nil else { return }
        sessionCounts[session.request.kind, default: 0] += 1
        for event in session.events { eventCounts[event.kind, default: 0] += 1 }
    }

    /// How many sessions there were.
    package var sessionCount: Int { sessionCounts.values.reduce(0, +) }

    package var description: String {
        func list(_ counts: [String: Int]) -> String {
            counts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
                .joined(separator: ", ")
        }
        return """
            \(commitCount) commits, compacted up to \(compactedRevision)
            \(sessionCount) sessions: \(list(sessionCounts))
            they were told: \(list(eventCounts))
            """
    }
}

extension WatchSession.Request {
    /// The words of it that say what is told.
    fileprivate var kind: String {
        let begin =
            switch start {
            case .now: "plain"
            case .snapshot: "snapshot"
            case .from: isPolled ? "polled" : "from"
            }
        let words = [begin, isLatest ? "latest" : nil, includesPrevious ? "previous" : nil]
        return words.compactMap(\.self).joined(separator: "+")
    }
}

extension WatchSession.Event {
    fileprivate var kind: String {
        switch self {
        case .change: "commits"
        case .pieces: "pieces"
        case .synced: "synced"
        case .gap: "gaps"
        case .progress: "progress"
        }
    }
}
