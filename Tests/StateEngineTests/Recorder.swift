import StateEngine

/// Keeps what a watcher is told, with bytes of its own.
final class Recorder: WatchReceiver {
    struct Change: Hashable {
        var key: String
        var value: String?
        var previous: String?
    }

    enum Told: Hashable {
        case commit(Int64, [Change])
        case piece([Change])
        case synced(Int64)
        case gap(Int64)
        case latest([Change], isPiece: Bool)
    }

    let watcher: Watcher
    private(set) var told: [Told] = []
    /// How many times it was asked whether there is room.
    private(set) var roomCount = 0
    var room = true
    /// Called with each notice, under the keyspace's lock.
    var onTold: (Told) -> Void = { _ in }

    init(
        _ patterns: PatternSet,
        _ start: Watcher.Start,
        _ manner: Watcher.Manner = .everyCommit,
        for subject: Subject? = nil,
        in core: KeyspaceCore
    ) {
        watcher = Watcher(patterns, start, manner, for: subject, in: core)
        watcher.receiver = self
    }

    var hasRoom: Bool {
        roomCount += 1
        return room
    }

    func receive(_ notice: Watcher.Notice, in core: KeyspaceCore) {
        let notice: Told =
            switch notice {
            case .commit(let revision, let changes): .commit(revision, changes.map(Recorder.copy))
            case .piece(let records): .piece(records.map(Recorder.copy))
            case .synced(let revision): .synced(revision)
            case .gap(let revision): .gap(revision)
            case .latest(let latest):
                .latest(
                    latest.values.map {
                        Change(
                            key: String(decoding: $0.key, as: UTF8.self),
                            value: $0.value.map { String(decoding: $0, as: UTF8.self) }
                        )
                    },
                    isPiece: latest.isPiece
                )
            }
        told.append(notice)
        onTold(notice)
    }

    /// What was told since the last call.
    func take() -> [Told] {
        defer { told = [] }
        return told
    }

    private static func copy(_ record: Record) -> Change {
        Change(
            key: record.key.text,
            value: record.value?.text,
            previous: record.older?.value?.text
        )
    }
}

extension Stage {
    /// Watches from now on.
    func watch(
        _ patterns: String...,
        snapshot: Bool = false,
        _ manner: Watcher.Manner = .everyCommit,
        for subject: Subject? = nil
    ) throws -> Recorder {
        let set = PatternSet(try patterns.map { try Pattern($0) })
        let start: Watcher.Start = snapshot ? .snapshot : .now
        return withCore { core in
            let recorder = Recorder(set, start, manner, for: subject, in: core)
            core.hub.add(recorder.watcher)
            return recorder
        }
    }

    /// Brings a watcher one step nearer to the present; returns whether there is another.
    @discardableResult
    func advance(_ recorder: Recorder, byteLimit: Int = 1) -> Bool {
        withCore { core in
            recorder.watcher.advance(in: core, byteLimit: byteLimit)
            return recorder.watcher.canAdvance
        }
    }
}
