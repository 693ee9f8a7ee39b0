extension WatchSession {
    /// The session in lines, one for each event.
    package var transcript: String {
        let replied = reply.map { "at \($0.revision), epoch \($0.epoch)" } ?? "none"
        var lines = [
            "watcher \(watcher), session \(number), epoch \(epoch)",
            "asked: \(request.words.joined(separator: " "))", "reply: \(replied)",
        ]
        lines += events.map(\.description)
        switch end {
        case .left: lines.append("left")
        case .silent(let revision): lines.append("waited for \(revision) in vain")
        }
        return lines.joined(separator: "\n") + "\n"
    }
}

extension WatchSession.Request {
    /// As it stands on the wire; the options of a poll are another matter with each call.
    var words: [String] {
        var words = [isPolled ? "STATE.CHANGES" : "STATE.WATCH"] + patterns.map(\.text)
        switch start {
        case .now: break
        case .snapshot: words.append("SNAPSHOT")
        case .from(let revision, let epoch):
            words += ["FROM", "\(revision)"] + (epoch.map { ["EPOCH", $0] } ?? [])
        }
        if isLatest { words.append("LATEST") }
        if includesPrevious { words.append("PREVIOUS") }
        return words
    }
}

extension WatchSession.Event: CustomStringConvertible {
    package var description: String {
        switch self {
        case .change(let revision, let changes):
            "change \(revision): \(changes.map(\.description).joined(separator: ", "))"
        case .pieces(let pieces):
            "pieces: \(pieces.map(\.description).joined(separator: ", "))"
        case .synced(let revision): "synced \(revision)"
        case .gap(let revision, let compacted): "gap \(revision), compacted up to \(compacted)"
        case .progress(let revision): "progress \(revision)"
        }
    }
}

extension WatchSession.Change: CustomStringConvertible {
    package var description: String {
        let now = value.map { "\(key) = \($0)" } ?? "\(key) deleted"
        return switch previous {
        case .untold: now
        case .absent: "\(now) (was absent)"
        case .value(let value): "\(now) (was \(value))"
        }
    }
}

extension WatchSession.Piece: CustomStringConvertible {
    package var description: String {
        (value.map { "\(key) = \($0)" } ?? "\(key) deleted") + " at \(revision)"
    }
}
