import CLinux
import StateEngine
import StateWire

/// What a command may cost that has to be one moment, in steps: each key that it changes or looks at is one.
extension ServerOptions {
    /// How many steps a command or a transaction of a connection may take.
    ///
    /// Nobody else is served meanwhile. An administrator can stop the daemon anyway: for it the limit is that of a transaction.
    func stepLimit(_ context: borrowing CommandContext) -> Int {
        context.isAdmin
            ? limits.transactionChangeCount : min(stepCount, limits.transactionChangeCount)
    }

    /// Refuses a command of more steps than its connection may take, before it begins.
    ///
    /// - Throws: ``StateError/Code/limit``, naming the limit.
    func checkSteps(
        _ verb: Verb,
        _ arguments: Arguments,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        let steps = verb.steps(argumentCount: arguments.count)
        guard steps > 64 else { return }
        let limit = stepLimit(context)
        guard steps <= limit else { throw tooManySteps(limit) }
    }

    func tooManySteps(_ limit: Int) -> StateError {
        guard limit < limits.transactionChangeCount else {
            return StateError(.tooBig, "a transaction of more than \(limit) changes")
        }
        return StateError(
            .limit,
            "more than \(limit) keys in one commit or command; do it in parts (limits.steps, which "
                + "administrators are not held to)"
        )
    }

    /// Refuses globs of watches and subscriptions beyond what a user without admin rights may have.
    ///
    /// - Throws: ``StateError/Code/limit``, naming the user and the limit.
    func checkGlobs(
        _ count: Int,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        let wanted = (context.connection.share.account?.globCount ?? 0) + count
        guard count > 0, wanted > globCount, !context.isAdmin else { return }
        throw StateError(
            .limit,
            "uid \(context.connection.peer.uid) would have \(wanted) globs in watches "
                + "and subscriptions; the limit is \(globCount) (limits.globs); prefixes that end in / "
                + "have none"
        )
    }

    /// Refuses a reply that has grown beyond its limit.
    func checkReply(_ byteCount: Int) throws(StateError) {
        guard byteCount > replyByteCount else { return }
        throw replyTooBig(replyByteCount)
    }

    /// The patterns that a command names.
    func patternSet(_ patterns: Arguments) throws(StateError) -> PatternSet {
        guard patterns.count <= watchCount else {
            throw StateError(.limit, "more than \(watchCount) patterns")
        }
        var read: [Pattern] = []
        for index in 0..<patterns.count { read.append(try Pattern(patterns[index])) }
        return PatternSet(read)
    }
}

extension Verb {
    /// What a command with so many arguments costs: of those that list, without what they list.
    func steps(argumentCount: Int) -> Int {
        switch name {
        case .mset, .msetnx: argumentCount / 2
        case .mget, .exists, .watch, .del, .unlink: argumentCount
        // SET key value, DELETE key.
        case .stateApply: argumentCount / 2
        default: 1
        }
    }
}
