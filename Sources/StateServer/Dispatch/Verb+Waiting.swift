import StateEngine
import StateWire

/// What a verb waits for.
extension Verb {
    /// Whether the verb begins or ends watches or subscriptions.
    ///
    /// Pushes of a new watch must not overtake the reply with its number, and a watch that ends
    /// still gets what the connection wrote before. The same applies to handlers, whose positions
    /// must be durable.
    var isAboutWatches: Bool {
        switch name {
        case .stateWatch, .stateUnwatch, .hello, .reset, .stateHandler: true
        case .subscribe, .unsubscribe, .psubscribe, .punsubscribe, .ssubscribe, .sunsubscribe: true
        default: false
        }
    }

    /// Whether its reply may have the largest allowed size.
    var asksForMuch: Bool {
        switch name {
        case .mget, .keys, .scan, .exec, .pubsub, .stateList, .stateHistory, .stateChanges,
            .stateWatches, .stateHandlers, .stateCheck, .stateBackup:
            true
        default: false
        }
    }

    /// Whether the verb returns only durable data, which must include what the connection wrote
    /// before, and every change that was acknowledged.
    @inline(never)  // A SET does not need it.
    func looksBack(_ arguments: Arguments) -> Bool {
        switch name {
        case .stateHistory, .stateRevert, .stateChanges, .stateBackup: true
        case .stateGet, .stateList:
            (2..<max(2, arguments.count)).contains { arguments.isWord($0, "AT") }
        default: false
        }
    }
}

extension CommandContext {
    /// Whether the history lacks an acknowledged change: one with durability `interval` is
    /// acknowledged before the commit thread has taken it.
    ///
    /// The command waits for what there was when it came, however much is written meanwhile.
    func mustWaitForCommits() -> Bool {
        if connection.inbound.awaitedRevision == 0 {
            connection.inbound.awaitedRevision = core.newestAcknowledged
        }
        if core.isBehind(connection.inbound.awaitedRevision) { return true }
        connection.inbound.awaitedRevision = 0
        return false
    }
}

/// In the words of Redis, which clients look for.
func unknownCommand(_ arguments: Arguments) -> StateError {
    var text = "unknown command '\(arguments[0].prefix(128).shown)', with args beginning with: "
    for index in 1..<max(1, min(arguments.count, 20)) where text.utf8.count < 256 {
        text += "'\(arguments[index].prefix(128).shown)' "
    }
    return StateError(.err, text)
}
