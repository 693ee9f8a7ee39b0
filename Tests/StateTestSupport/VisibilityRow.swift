package import StateWire

/// What a verb may tell of a key that its client may not read.
package struct VisibilityRow: Sendable {
    /// The keys of a rule: who may do what to them.
    package enum Area: String, CaseIterable {
        /// Whoever creates a key reads and writes it.
        case own
        /// The same, and values are numbers.
        case typed
        /// The same, and the client is the administrator.
        case ops
        /// Everybody writes, who creates a key reads it.
        case drop
        /// The same, and a key is set once.
        case once
        /// The client may do nothing.
        case shut
    }

    /// Sent one behind the other; KEY is the key, AREA its prefix.
    package var commands: [String]
    /// Where the name of a hidden key is told to be taken: where an absent key would have been created.
    package var taken: Set<Area> = []
    /// Whether an absent key is created, and a hidden one perhaps overwritten.
    package var creates = false
    /// Whether the connection is of no use for other rows afterwards.
    package var needsConnection = false
    /// Whether its numbers are amounts, which may differ.
    package var hasAmounts = false
    /// What the last push begins with.
    package var last: String?

    package init(_ commands: String...) { self.commands = commands }

    /// Areas in which a client may create keys.
    package static let open = Set(Area.allCases).subtracting([.shut])
    /// Of these, where a key that is there may not be set again by another.
    package static let kept = open.subtracting([.drop])

    /// A write that does not depend on what the key was.
    package static func blind(_ commands: String...) -> VisibilityRow {
        var row = VisibilityRow()
        (row.commands, row.creates, row.taken) = (commands, true, kept)
        return row
    }

    /// A write that does.
    package static func conditional(_ commands: String...) -> VisibilityRow {
        var row = VisibilityRow()
        (row.commands, row.creates, row.taken) = (commands, true, open)
        return row
    }

    /// What leaves a connection in another state, or pushes until `last`.
    package static func alone(_ commands: String..., until last: String? = nil) -> VisibilityRow {
        var row = VisibilityRow()
        (row.commands, row.needsConnection, row.last) = (commands, true, last)
        return row
    }
}

extension Verb.Name {
    /// Each way in which the verb can meet a key.
    package var visibilityRows: [VisibilityRow] {
        switch self {
        case .hello: [.alone("HELLO"), .alone("HELLO 2", "HELLO 3")]
        case .auth: [VisibilityRow("AUTH KEY")]
        case .ping: [VisibilityRow("PING KEY")]
        case .echo: [VisibilityRow("ECHO KEY")]
        case .quit: [.alone("QUIT")]
        case .reset: [.alone("RESET")]
        case .select: [VisibilityRow("SELECT 0")]
        case .client: [VisibilityRow("CLIENT LIST"), VisibilityRow("CLIENT INFO")]
        case .info: [VisibilityRow("INFO")]
        case .command: [VisibilityRow("COMMAND COUNT"), VisibilityRow("COMMAND KEY")]
        case .config: [VisibilityRow("CONFIG GET *"), VisibilityRow("CONFIG SET KEY 1")]
        case .dbsize: [VisibilityRow("DBSIZE")]
        case .type: [VisibilityRow("TYPE KEY")]
        case .time: [VisibilityRow("TIME")]
        case .exists: [VisibilityRow("EXISTS KEY free KEY")]
        case .get: [VisibilityRow("GET KEY")]
        case .set:
            [
                VisibilityRow("SET KEY 1 XX"), VisibilityRow("SET KEY 1 XX GET"),
                .blind("SET KEY 1"), .conditional("SET KEY 1 NX"), .conditional("SET KEY 1 GET"),
                .blind("SET KEY 1 EX 1000"), .conditional("SET KEY 1 KEEPTTL"),
            ]
        case .getdel: [VisibilityRow("GETDEL KEY")]
        case .mget: [VisibilityRow("MGET free KEY")]
        case .mset: [.blind("MSET KEY 1")]
        case .msetnx: [VisibilityRow("MSETNX KEY 1 free 1"), .conditional("MSETNX KEY 1")]
        case .del: [VisibilityRow("DEL KEY")]
        case .unlink: [VisibilityRow("UNLINK KEY")]
        case .strlen: [VisibilityRow("STRLEN KEY")]
        case .append: [.conditional("APPEND KEY 1")]
        case .incr: [.conditional("INCR KEY")]
        case .incrby: [.conditional("INCRBY KEY 5")]
        case .decr: [.conditional("DECR KEY")]
        case .decrby: [.conditional("DECRBY KEY 5")]
        case .keys:
            [VisibilityRow("KEYS *"), VisibilityRow("KEYS KEY"), VisibilityRow("KEYS AREA*")]
        case .scan: [VisibilityRow("SCAN 0 MATCH AREA* COUNT 1"), VisibilityRow("SCAN 0 COUNT 1")]
        case .multi: [VisibilityRow("MULTI", "GET KEY", "TYPE KEY", "DISCARD")]
        case .exec:
            [
                VisibilityRow("MULTI", "GET KEY", "DEL KEY", "SET KEY 1 XX", "EXISTS KEY", "EXEC"),
                .conditional("MULTI", "INCR KEY", "EXEC"),
            ]
        case .discard: [VisibilityRow("MULTI", "SET KEY 1", "DISCARD")]
        case .watch: [VisibilityRow("WATCH KEY", "MULTI", "GET free", "EXEC")]
        case .unwatch: [VisibilityRow("WATCH KEY", "UNWATCH")]
        case .subscribe: [.alone("SUBSCRIBE KEY __keyspace@0__:KEY __keyevent@0__:set")]
        case .unsubscribe: [.alone("SUBSCRIBE __keyspace@0__:KEY", "UNSUBSCRIBE")]
        case .psubscribe: [.alone("PSUBSCRIBE __keyspace@0__:AREA*")]
        case .punsubscribe: [.alone("PSUBSCRIBE __keyspace@0__:KEY", "PUNSUBSCRIBE")]
        case .publish:
            [VisibilityRow("PUBLISH KEY 1"), VisibilityRow("PUBLISH __keyspace@0__:KEY set")]
        case .pubsub:
            [VisibilityRow("PUBSUB CHANNELS"), VisibilityRow("PUBSUB NUMSUB __keyspace@0__:KEY")]
        default: isAboutTime ? timeRows : laterRows.isEmpty ? ownRows : laterRows
        }
    }

    /// The same for verbs about parts of values, names of keys, and the server.
    private var laterRows: [VisibilityRow] {
        switch self {
        case .setnx: [.conditional("SETNX KEY 1")]
        case .getset: [.conditional("GETSET KEY 1")]
        case .getrange: [VisibilityRow("GETRANGE KEY 0 -1")]
        case .substr: [VisibilityRow("SUBSTR KEY 0 -1")]
        case .setrange: [.conditional("SETRANGE KEY 0 1")]
        case .incrbyfloat: [.conditional("INCRBYFLOAT KEY 5")]
        case .msetex:
            [
                .blind("MSETEX 1 KEY 1 EX 1000"), .conditional("MSETEX 1 KEY 1 NX"),
                VisibilityRow("MSETEX 1 KEY 1 XX"),
            ]
        case .delex: [VisibilityRow("DELEX KEY"), VisibilityRow("DELEX KEY IFNE 5")]
        case .digest: [VisibilityRow("DIGEST KEY")]
        case .rename: [VisibilityRow("RENAME KEY free")]
        case .renamenx: [VisibilityRow("RENAMENX KEY free")]
        case .copy: [VisibilityRow("COPY KEY free")]
        case .touch: [VisibilityRow("TOUCH KEY")]
        case .randomkey: [VisibilityRow("PING")]
        case .object: [VisibilityRow("OBJECT ENCODING KEY"), VisibilityRow("OBJECT REFCOUNT KEY")]
        case .memory: [VisibilityRow("MEMORY USAGE KEY")]
        case .flushall: [VisibilityRow("FLUSHALL")]
        case .flushdb: [VisibilityRow("FLUSHDB")]
        case .dump: [VisibilityRow("DUMP KEY")]
        case .restore: [VisibilityRow("RESTORE KEY 0 junk REPLACE")]
        case .role: [VisibilityRow("ROLE")]
        case .wait: [VisibilityRow("WAIT 0 0")]
        case .waitaof: [VisibilityRow("WAITAOF 0 0 0")]
        case .lastsave: [VisibilityRow("ROLE", "WAIT 0 0")]
        case .module: [VisibilityRow("MODULE LIST")]
        case .acl: [VisibilityRow("ACL WHOAMI"), VisibilityRow("ACL LIST")]
        case .slowlog: [VisibilityRow("SLOWLOG GET")]
        case .latency: [VisibilityRow("LATENCY LATEST")]
        case .monitor: [VisibilityRow("MONITOR")]
        case .eval: [VisibilityRow("EVAL script 1 KEY 7")]
        case .evalRo: [VisibilityRow("EVAL_RO script 1 KEY 7")]
        case .evalsha:
            [VisibilityRow("EVALSHA c3f8721cbb97f72bc19e972846bd7aaf91901658 1 KEY 7")]
        case .evalshaRo:
            [VisibilityRow("EVALSHA_RO a4aada0b36710970eedaaaeec4a6b7d8c78c4f80 1 KEY 7")]
        case .script: [VisibilityRow("SCRIPT EXISTS KEY")]
        case .ssubscribe: [.alone("SSUBSCRIBE KEY")]
        case .sunsubscribe: [.alone("SSUBSCRIBE KEY", "SUNSUBSCRIBE")]
        case .spublish: [VisibilityRow("SPUBLISH KEY 1")]
        default: []
        }
    }

    private var isAboutTime: Bool { !timeRows.isEmpty }

    /// The same for verbs about the time of keys.
    private var timeRows: [VisibilityRow] {
        switch self {
        case .setex: [.blind("SETEX KEY 1000 1")]
        case .psetex: [.blind("PSETEX KEY 1000000 1")]
        case .getex: [VisibilityRow("GETEX KEY"), VisibilityRow("GETEX KEY EX 1000")]
        case .expire: [VisibilityRow("EXPIRE KEY 1000"), VisibilityRow("EXPIRE KEY 0")]
        case .pexpire: [VisibilityRow("PEXPIRE KEY 1000000 NX")]
        case .expireat: [VisibilityRow("EXPIREAT KEY 33177117420 LT")]
        case .pexpireat: [VisibilityRow("PEXPIREAT KEY 33177117420000 GT")]
        case .ttl: [VisibilityRow("TTL KEY")]
        case .pttl: [VisibilityRow("PTTL KEY")]
        case .expiretime: [VisibilityRow("EXPIRETIME KEY")]
        case .pexpiretime: [VisibilityRow("PEXPIRETIME KEY")]
        case .persist: [VisibilityRow("PERSIST KEY")]
        default: []
        }
    }

    /// The same for our own verbs.
    private var ownRows: [VisibilityRow] {
        switch self {
        case .stateGet: [VisibilityRow("STATE.GET KEY"), VisibilityRow("STATE.GET KEY AT 2")]
        case .stateSet:
            [
                VisibilityRow("STATE.SET KEY 1 XX"), VisibilityRow("STATE.SET KEY 1 IFREV 2"),
                VisibilityRow("STATE.SET KEY 1 IFVAL 7"), .blind("STATE.SET KEY 1"),
                .blind("STATE.SET KEY 1 DURABILITY memory"), .blind("STATE.SET KEY 1 EXPIRES 1h"),
                .blind("STATE.SET KEY 1 LIFETIME process"),
                .conditional("STATE.SET KEY 1 EXPIRES keep"), .conditional("STATE.SET KEY 1 NX"),
                .conditional("STATE.SET KEY 1 IFREV 0"),
            ]
        case .stateApply:
            [
                VisibilityRow("STATE.APPLY 1 CHECK KEY 0"),
                VisibilityRow("STATE.APPLY 1 CHECK KEY 2"),
                VisibilityRow("STATE.APPLY 2 CHECK KEY 0 SET free 1"),
                VisibilityRow("STATE.APPLY 1 DELETE KEY"),
                VisibilityRow("STATE.APPLY 1 DELETE KEY IFREV 0"),
                VisibilityRow("STATE.APPLY 1 DELETE KEY IFREV 2"),
                VisibilityRow("STATE.APPLY 1 SET KEY 1 IFREV 2"),
                .blind("STATE.APPLY 1 SET KEY 1"), .blind("STATE.APPLY 1 SET KEY 1 EXPIRES 1h"),
                .conditional("STATE.APPLY 1 SET KEY 1 IFREV 0"),
            ]
        case .stateDelete:
            [
                VisibilityRow("STATE.DELETE KEY DRYRUN"), VisibilityRow("STATE.DELETE AREA DRYRUN"),
                VisibilityRow("STATE.DELETE KEY"), VisibilityRow("STATE.DELETE AREA"),
                VisibilityRow("STATE.DELETE AREA*"),
            ]
        case .stateList:
            ["", " KEYS", " COUNT", " LONG", " LIMIT 1", " AT 2", " COUNT AT 2", " CHILDREN"]
                .flatMap {
                    options in
                    ["KEY", "AREA", "AREA*", "/"].map {
                        VisibilityRow("STATE.LIST \($0)\(options)")
                    }
                }
        case .stateWatch:
            [
                .alone("STATE.WATCH KEY"), .alone("STATE.WATCH AREA"),
                .alone("STATE.WATCH AREA free SNAPSHOT BY", until: "state.synced"),
                .alone("STATE.WATCH AREA* SNAPSHOT LATEST", until: "state.synced"),
                .alone("STATE.WATCH AREA FROM 1 PREVIOUS", until: "state.progress"),
            ]
        case .stateUnwatch: [.alone("STATE.WATCH AREA", "STATE.UNWATCH 1")]
        case .stateWatches: [VisibilityRow("STATE.WATCHES")]
        case .stateHistory:
            [
                VisibilityRow("STATE.HISTORY KEY"), VisibilityRow("STATE.HISTORY KEY LIMIT 1"),
                VisibilityRow("STATE.HISTORY KEY BEFORE 3"),
            ]
        case .stateRevert:
            [
                VisibilityRow("STATE.REVERT KEY TO 1"), VisibilityRow("STATE.REVERT AREA TO 1"),
                VisibilityRow("STATE.REVERT AREA TO 1 DRYRUN"),
            ]
        case .stateChanges:
            [
                VisibilityRow("STATE.CHANGES SINCE 1 KEY"),
                VisibilityRow("STATE.CHANGES SINCE 1 PREVIOUS AREA*"),
                VisibilityRow("STATE.CHANGES SINCE 1 BLOCK 1 AREA"),
                VisibilityRow("STATE.CHANGES SINCE 99999 AREA /"),
            ]
        case .stateCompact: [VisibilityRow("STATE.COMPACT")]
        case .stateBackup:
            [VisibilityRow("STATE.BACKUP BEGIN"), VisibilityRow("STATE.BACKUP NEXT")]
        case .stateMetrics: [VisibilityRow("STATE.METRICS")]
        case .stateTop: [VisibilityRow("STATE.TOP")]
        case .stateMoment: [VisibilityRow("STATE.MOMENT 1000000000000000")]
        case .stateStatus: [VisibilityRow("STATE.STATUS")]
        case .stateSync: [VisibilityRow("STATE.SYNC")]
        case .stateHandler:
            [
                VisibilityRow("STATE.HANDLER ATTACH h KEY"),
                VisibilityRow("STATE.HANDLER FORGET KEY"),
            ]
        case .stateHandlers: [VisibilityRow("STATE.HANDLERS")]
        case .stateReload:
            [VisibilityRow("STATE.RELOAD"), VisibilityRow("STATE.RELOAD DRYRUN")]
        case .stateExplain: [VisibilityRow("STATE.EXPLAIN KEY")]
        case .stateRules: [VisibilityRow("STATE.RULES")]
        case .stateDefaults: [VisibilityRow("STATE.DEFAULTS")]
        case .stateCheck: [VisibilityRow("STATE.CHECK"), VisibilityRow("STATE.CHECK AREA")]
        case .stateClaim: [.alone("STATE.CLAIM KEY"), .alone("STATE.CLAIM 0000000500000000")]
        case .stateMirror:
            [
                VisibilityRow("STATE.MIRROR BEGIN"),
                VisibilityRow("STATE.MIRROR COMMIT 1 2 s DELETE KEY"),
            ]
        default: []
        }
    }
}
