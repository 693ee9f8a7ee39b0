import CLinux
import StateEngine
import StateWire

/// The limit of a command that must run at one moment, in steps: each key that it changes or visits
/// is a step.
extension ServerOptions {
    /// How many steps a command or a transaction of a connection may take.
    ///
    /// Nobody else is served meanwhile. An administrator could stop the daemon anyway, so for one
    /// only the limit of a transaction applies.
    func stepLimit(_ context: borrowing CommandContext) -> Int {
        context.isAdmin
            ? limits.transactionChangeCount : min(stepCount, limits.transactionChangeCount)
    }

    /// Whether so many files wait for the commit thread that no more are written now.
    func mustWaitForFiles(_ core: KeyspaceCore) -> Bool {
        core.pending.fileSteps >= limits.fileStepCount
    }

    /// Refuses a command of more steps than its connection may take, before it begins; an open
    /// transaction is refused as well.
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
        guard steps <= limit else {
            context.connection.session.transaction?.refuse()
            throw tooManySteps(limit)
        }
    }

    func tooManySteps(_ limit: Int) -> StateError {
        guard limit < limits.transactionChangeCount else {
            return StateError(.tooBig, "a transaction can have at most \(limit) changes")
        }
        return StateError(
            .limit,
            "more than \(limit) keys in one commit or command, the limit of users without admin "
                + "rights (limits.steps); do it in parts"
        )
    }

    /// Refuses globs of watches and subscriptions above the limit of a user without admin rights.
    ///
    /// - Throws: ``StateError/Code/limit``, naming the user and the limit.
    func checkGlobs(
        _ count: Int,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        let total = (context.connection.share.account?.globCount ?? 0) + count
        guard count > 0, total > globCount, !context.isAdmin else { return }
        throw StateError(
            .limit,
            "uid \(context.connection.peer.uid) would have \(total) globs in watches "
                + "and subscriptions; the limit is \(globCount) (limits.globs); use prefixes that "
                + "end in /, which do not count"
        )
    }

    /// Refuses patterns of watches and subscriptions above the limit of a user without admin rights:
    /// a written key is shown to each watch that matches it, at one moment.
    ///
    /// - Throws: ``StateError/Code/limit``, naming the user and the limit.
    func checkPatterns(
        _ count: Int,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        let total = (context.connection.share.account?.patternCount ?? 0) + count
        guard total > watchPatternCount, !context.isAdmin else { return }
        throw StateError(
            .limit,
            "uid \(context.connection.peer.uid) would have \(total) patterns in watches and "
                + "subscriptions of all its clients; the limit is \(watchPatternCount) (ten times "
                + "limits.watches); use prefixes instead of many keys"
        )
    }

    /// Refuses a reply that is written at one moment above its size limit.
    func checkReply(_ byteCount: Int) throws(StateError) {
        let limit = min(replyByteCount, momentByteCount + limits.valueByteCount)
        guard byteCount > limit else { return }
        throw StateError(
            .tooBig,
            "the reply would have more than \(limit) bytes, the limit of a command that is answered "
                + "at one moment; ask for less at once"
        )
    }

    /// The patterns of a command.
    func patternSet(_ patterns: Arguments) throws(StateError) -> PatternSet {
        guard patterns.count <= watchCount else {
            throw StateError(.limit, "more than \(watchCount) patterns, the limit (limits.watches)")
        }
        var read: [Pattern] = []
        for index in 0..<patterns.count { read.append(try Pattern(patterns[index])) }
        return PatternSet(read)
    }
}

extension Connection {
    /// Whether it may write nothing until earlier changes are on disk: too many wait, or too many of
    /// its user.
    ///
    /// Whoever writes next waits for all of them, so a user may have a sixteenth of the queue.
    func mustWaitForDisk(_ options: ServerOptions, _ core: KeyspaceCore) -> Bool {
        let (limit, waiting) = (options.limits.queueByteCount, core.pending.byteCount)
        let ofUser = max(1, limit / 16)
        guard waiting >= ofUser else { return false }
        return waiting >= limit
            || share.account?.hasUnstored(ofUser, durable: core.revisions.durable) ?? false
    }
}

extension Verb {
    /// The cost of a command with so many arguments, in the time that it takes to set a key.
    ///
    /// What depends on the state is counted when the command runs, in
    /// ``CommandContext/Execution/visitsLeft``: entries that are listed, connections and watches that
    /// are looked at, bytes of long values. There is no default, so that each new verb has a cost.
    func steps(argumentCount: Int) -> Int {
        switch name {
        case .hello, .auth, .ping, .echo, .quit, .reset, .select, .dbsize, .type, .time: 1
        case .get, .set, .getdel, .strlen, .append, .incr, .incrby, .decr, .decrby: 1
        case .setex, .psetex, .getex, .expire, .pexpire, .expireat, .pexpireat: 1
        case .ttl, .pttl, .expiretime, .pexpiretime, .persist: 1
        case .setnx, .getset, .getrange, .substr, .setrange, .incrbyfloat, .delex, .digest: 1
        case .rename, .renamenx, .copy: 2
        case .randomkey, .object, .dump, .restore, .role, .wait, .waitaof, .lastsave, .module: 1
        case .stateGet, .stateSet, .stateSync, .stateClaim, .stateHistory, .stateHandler: 1
        case .mset, .msetnx, .msetex: argumentCount / 2
        case .mget, .exists, .watch, .del, .unlink, .touch, .eval, .evalsha, .evalRo, .evalshaRo:
            argumentCount
        // SET key value, DELETE key.
        case .stateApply: argumentCount / 2
        case .multi, .exec, .discard, .unwatch, .stateUnwatch: 1
        // Entries that are visited count in addition.
        case .keys, .scan, .flushall, .flushdb, .stateList, .stateDelete, .stateRevert: 1
        case .stateChanges, .stateCheck, .stateMoment, .stateBackup, .stateMirror: 1
        case .subscribe, .unsubscribe, .psubscribe, .punsubscribe, .ssubscribe, .sunsubscribe,
            .stateWatch:
            argumentCount
        // Many subscribers get the message in slices.
        case .publish, .spublish: 1
        // What describes the daemon takes as long as so many keys: up to 0.4 ms for a name.
        case .command: 1_000 + 100 * argumentCount
        case .stateMetrics, .stateTop: 500
        case .info: 16 + argumentCount
        case .stateStatus, .stateWatches, .stateExplain, .stateRules, .stateDefaults,
            .stateHandlers, .stateCompact, .stateReload, .memory, .acl, .slowlog, .latency,
            .monitor:
            16 + argumentCount
        case .client: 4 * argumentCount
        case .config, .script, .pubsub: 1 + 4 * argumentCount
        }
    }
}

extension CommandContext {
    /// Counts connections or watches that a command looks at, of which many take as long as one key.
    mutating func noteWalk(over count: Int) { execution?.visitsLeft -= count / 32 }
}
