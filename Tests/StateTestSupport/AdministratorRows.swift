package import StateWire

/// What a verb may tell an administrator of `/` who may not read a key: the column beside ``VisibilityRow``.
extension Verb.Name {
    /// Each way in which the verb can meet a key, as an administrator uses it.
    ///
    /// The switch has no default: a new verb has to say what it tells an administrator.
    package var administratorRows: [VisibilityRow] {
        switch self {
        // It does the same for everybody.
        case .hello, .auth, .ping, .echo, .quit, .reset, .select, .command, .dbsize, .type, .time,
            .exists, .get, .set, .getdel, .mget, .mset, .msetnx, .del, .unlink, .strlen, .append,
            .incr, .incrby, .decr, .decrby, .keys, .scan, .multi, .exec, .discard, .watch, .unwatch,
            .setex, .psetex, .getex, .expire, .pexpire, .expireat, .pexpireat, .ttl, .pttl,
            .expiretime, .pexpiretime, .persist, .setnx, .getset, .getrange, .substr, .setrange,
            .incrbyfloat, .msetex, .delex, .digest, .rename, .renamenx, .copy, .touch, .randomkey,
            .object, .memory, .dump, .restore, .role, .wait, .waitaof, .lastsave, .module, .eval,
            .evalsha, .script, .evalRo, .evalshaRo, .subscribe, .unsubscribe, .psubscribe,
            .punsubscribe, .publish, .ssubscribe, .sunsubscribe, .spublish, .stateGet, .stateSet,
            .stateApply, .stateList, .stateWatch, .stateUnwatch, .stateHistory, .stateChanges,
            .stateMoment, .stateSync, .stateHandler, .stateClaim, .stateMirror, .stateDefaults,
            .stateExplain, .stateRules:
            visibilityRows
        // It shows what others do.
        case .client: visibilityRows + [VisibilityRow("CLIENT LIST"), VisibilityRow("CLIENT ID")]
        case .info: [VisibilityRow("INFO")]
        case .config: visibilityRows + [VisibilityRow("CONFIG RESETSTAT")]
        case .pubsub:
            visibilityRows + [
                VisibilityRow("PUBSUB CHANNELS"), VisibilityRow("PUBSUB SHARDCHANNELS"),
                VisibilityRow("PUBSUB NUMSUB AREAchannel"),
            ]
        case .acl: visibilityRows + [VisibilityRow("ACL USERS")]
        case .slowlog: [.amounts("SLOWLOG GET -1"), .amounts("SLOWLOG LEN")]
        case .latency:
            [.amounts("LATENCY LATEST"), .amounts("LATENCY HISTORY command")]
        case .monitor: [VisibilityRow("MONITOR")]
        case .stateWatches: [VisibilityRow("STATE.WATCHES")]
        case .stateHandlers: [VisibilityRow("STATE.HANDLERS")]
        case .stateStatus: [VisibilityRow("STATE.STATUS")]
        case .stateMetrics: [.amounts("STATE.METRICS")]
        case .stateTop: [VisibilityRow("STATE.TOP")]
        // It looks at all keys, or changes them.
        case .stateCheck:
            [
                VisibilityRow("STATE.CHECK"), VisibilityRow("STATE.CHECK / LIMIT 0"),
                VisibilityRow("STATE.CHECK AREA"), VisibilityRow("STATE.CHECK KEY"),
                VisibilityRow("STATE.CHECK / AFTER KEY"), VisibilityRow("STATE.CHECK *7"),
                VisibilityRow("MULTI", "STATE.CHECK", "EXEC"),
            ]
        case .stateReload:
            [VisibilityRow("STATE.RELOAD DRYRUN"), VisibilityRow("STATE.RELOAD")]
        case .stateBackup: visibilityRows
        case .stateRevert:
            visibilityRows + [
                VisibilityRow("STATE.REVERT / TO 2 DRYRUN"), VisibilityRow("STATE.REVERT KEY TO 2"),
            ]
        case .stateDelete: visibilityRows + [VisibilityRow("STATE.DELETE / DRYRUN")]
        case .stateCompact: [VisibilityRow("STATE.COMPACT 1")]
        case .flushall: [VisibilityRow("FLUSHALL")]
        case .flushdb: [VisibilityRow("FLUSHDB")]
        }
    }
}

extension VisibilityRow {
    /// What counts over all keys, or over time: an administrator may see amounts, and only them.
    package static func amounts(_ command: String) -> VisibilityRow {
        var row = VisibilityRow(command)
        row.hasAmounts = true
        return row
    }
}
