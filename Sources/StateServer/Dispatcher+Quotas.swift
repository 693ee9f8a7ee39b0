import CLinux
import StateEngine

/// Limits of what one uid may have at once, as the rules say them.
extension Dispatcher {
    /// Refuses a connection of a uid that has as many as it may.
    ///
    /// - Throws: ``StateError/Code/limit``, naming the uid, the number and the rule.
    func checkConnections(of uid: UInt32, _ core: KeyspaceCore) throws(StateError) {
        // What is said of everything is said of the empty key.
        guard let rule = core.rules?.rule(for: Bytes(start: nil, count: 0)) else { return }
        try check(.connections, of: rule, uid) { _ in
            registry.memory.connectionCount(of: uid)
        } _: {
            "uid \(uid) has \(counted($0, "connection")) already"
        }
    }

    /// Refuses a watch of a uid that has as many as it may of the keys of a rule.
    ///
    /// A watch counts for the rule that holds for the literal part of one of its patterns.
    ///
    /// - Throws: ``StateError/Code/limit``, naming the uid, the number and the rule.
    func checkWatches(
        _ patterns: PatternSet,
        of uid: UInt32,
        _ core: KeyspaceCore
    ) throws(StateError) {
        guard let rules = core.rules else { return }
        for pattern in patterns.patterns {
            let rule = pattern.literal.withUnsafeBytes { rules.rule(for: $0) }
            guard let rule else { continue }
            try check(.watches, of: rule, uid) { isLimited in
                countWatches(of: uid) { watched in
                    watched.literal.withUnsafeBytes { rules.rule(for: $0) }.map(isLimited) ?? false
                }
            } _: {
                "uid \(uid) has \(counted($0, "watch", "watches")) of keys of the rule already"
            }
        }
    }

    private func countWatches(of uid: UInt32, _ isMeant: (Pattern) -> Bool) -> Int {
        registry.connections.lazy.filter { $0.peer.uid == uid }
            .reduce(0) { count, connection in
                count
                    + connection.watchers.values.count {
                        $0.watcher.patterns.patterns.contains(where: isMeant)
                    }
            }
    }

    /// Refuses one more, or only says so.
    ///
    /// - Parameters:
    ///   - limit: What is limited.
    ///   - rule: What holds for the new one.
    ///   - uid: Whose it is.
    ///   - count: How many there are among those whose rules are what it is handed.
    ///   - sentence: What is said of so many.
    /// - Throws: ``StateError/Code/limit``, naming the number and the rule.
    private func check(
        _ limit: KeyLimit,
        of rule: KeyRule,
        _ uid: UInt32,
        _ count: (_ isLimited: (KeyRule) -> Bool) -> Int,
        _ sentence: (Int) -> String
    ) throws(StateError) {
        if let hard = rule.settings.limits[limit] {
            let used = count { $0.settings.limits[limit]?.rule == hard.rule }
            guard used < hard.value else {
                throw StateError(
                    .limit,
                    "\(sentence(used)), of at most \(hard.value) (rule \(hard.rule + 1), limits.\(limit.rawValue))"
                )
            }
        }
        if let soft = rule.settings.softLimits[limit] {
            let used = count { $0.settings.softLimits[limit]?.rule == soft.rule }
            guard used == soft.value else { return }
            let subject = RepeatedLines.Kind.Subject.softLimit(limit, rule: soft.rule)
            repeated.write(
                .init(subject: subject, uid: uid),
                .warning,
                at: Clock.monotonicMilliseconds(),
                to: options.log
            ) {
                "\(sentence(used)), and begins one more (rule \(soft.rule + 1), softLimits.\(limit.rawValue))"
            }
        }
    }
}

/// `1 watch`, `2 watches`.
private func counted(_ count: Int, _ one: String, _ many: String? = nil) -> String {
    "\(count) \(count == 1 ? one : many ?? one + "s")"
}
