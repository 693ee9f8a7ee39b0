import StateEngine

/// A watch that records its events.
final class ContractWatch: Sendable {
    /// One event in comparable form.
    enum Delivered: Hashable, Sendable {
        case commit(Int64, [Key: [UInt8]?])
        case state(Int64, [Pattern], [Key: [UInt8]?])
        case other(String)

        init(_ event: KeyspaceEvent) {
            switch event {
            case .commit(let revision, let changes, _):
                self = .commit(revision.number, Delivered.values(changes))
            case .state(let revision, let patterns, let changes):
                self = .state(revision.number, patterns, Delivered.values(changes))
            case .away(let error): self = .other("away: \(error)")
            case .resumed(let revision): self = .other("resumed at \(revision.number)")
            case .refused(let patterns, let error): self = .other("\(patterns) refused: \(error)")
            }
        }

        private static func values(_ changes: [KeyspaceChange]) -> [Key: [UInt8]?] {
            Dictionary(changes.map { ($0.key, $0.value) }) { _, _ in Array("twice".utf8) }
        }

        var commitRevision: Int64? { if case .commit(let number, _) = self { number } else { nil } }
    }

    private let received = StateLock<[Delivered]>([])
    private let included = StateLock<Set<Pattern>>([])
    private let semaphore = BlockingSemaphore()
    private let watch: StateLock<(any KeyspaceWatch)?> = StateLock(nil)

    /// Starts a watch of `patterns`.
    ///
    /// - Parameters:
    ///   - keyspace: The keyspace.
    ///   - patterns: The patterns to include.
    ///   - onEvent: Called with each event, after it was recorded.
    init(
        _ keyspace: any Keyspace,
        _ patterns: [Pattern],
        onEvent: @escaping @Sendable (KeyspaceEvent) -> Void = { _ in }
    ) {
        let begun = keyspace.watch { [weak self] event in
            guard let self else { return }
            received.withLock { $0.append(Delivered(event)) }
            onEvent(event)
            semaphore.signal()
        }
        watch.withLock { $0 = begun }
        if !patterns.isEmpty { include(patterns) }
    }

    deinit { cancel() }

    func include(_ patterns: [Pattern]) {
        included.withLock { $0.formUnion(patterns) }
        watch.withLock { $0 }?.include(patterns)
    }

    func exclude(_ patterns: [Pattern]) { watch.withLock { $0 }?.exclude(patterns) }

    func cancel() { watch.withLock { $0 }?.cancel() }

    /// The events so far.
    var delivered: [Delivered] { received.withLock { $0 } }

    /// The commits delivered so far.
    var commits: [Int64] { delivered.compactMap(\.commitRevision) }

    /// Waits until `isDone` returns true for the events.
    ///
    /// - Returns: The events.
    @discardableResult
    func wait(
        _ judge: Judge,
        for what: String,
        until isDone: ([Delivered]) -> Bool
    ) throws -> [Delivered] {
        try judge.wait(semaphore, for: "\(what), after \(delivered.suffix(3)),") {
            let delivered = delivered
            return isDone(delivered) ? delivered : nil
        }
    }

    func wait(_ judge: Judge, forCommit revision: Int64) throws {
        try wait(judge, for: "commit \(revision)") { delivered in
            delivered.contains { $0.commitRevision ?? 0 >= revision }
        }
    }

    /// Waits until the state of every included pattern was delivered; several may arrive as one.
    func waitForStates(_ judge: Judge) throws {
        let included = included.withLock { $0 }
        try wait(judge, for: "the state of \(included)") { delivered in
            let stated = delivered.flatMap { event -> [Pattern] in
                if case .state(_, let patterns, _) = event { patterns } else { [] }
            }
            return included.isSubset(of: stated)
        }
    }

    /// The values after a replay of the events, which must be in order.
    func replay(_ judge: Judge) throws -> [Key: [UInt8]] {
        var values: [Key: [UInt8]] = [:]
        var newest: Int64 = 0
        for event in delivered {
            switch event {
            case .commit(let revision, let changes):
                try judge.expect(
                    revision > newest,
                    "commit \(revision) was delivered after revision \(newest)"
                )
                newest = revision
                for (key, value) in changes { values[key] = value }
            case .state(let revision, let patterns, let changes):
                try judge.expect(
                    revision >= newest,
                    "the state of \(revision) was delivered after revision \(newest)"
                )
                newest = revision
                values = values.filter { entry in
                    !patterns.contains { $0.matches(entry.key) }
                }
                for (key, value) in changes { values[key] = value }
            case .other(let event): throw ContractViolation(judge.rule, "unexpected: \(event)")
            }
        }
        return values
    }
}

extension Pattern {
    func matches(_ key: Key) -> Bool { key.bytes.withUnsafeBytes { matches($0) } }
}
