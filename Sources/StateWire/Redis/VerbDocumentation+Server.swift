extension VerbDocumentation {
    static let aboutServer: [VerbDocumentation] = [
        .init(
            .hello,
            .connection,
            since: "6.0.0",
            "[protover [AUTH username password] [SETNAME clientname]]",
            differs: "the version is that of the dialect; AUTH accepts the user default"
        ),
        .init(
            .auth,
            .connection,
            since: "1.0.0",
            "[username] password",
            differs: "decides nothing: the kernel names the user"
        ),
        .init(.ping, .connection, since: "1.0.0", "[message]"),
        .init(.echo, .connection, since: "1.0.0", "message"),
        .init(.quit, .connection, since: "1.0.0"),
        .init(.reset, .connection, since: "6.2.0", differs: "also ends watches"),
        .init(.select, .connection, since: "1.0.0", "index", differs: "0 only"),
        .init(
            .client,
            .connection,
            since: "2.4.0",
            """
            <SETNAME connection-name | GETNAME | SETINFO <LIB-NAME libname | LIB-VER libver> \
            | ID | INFO | LIST [TYPE <normal | master | replica | pubsub>] [ID client-id \
            [client-id ...]] | KILL <ip:port | [ID client-id] [TYPE <normal | master | \
            replica | pubsub>] [USER username] [ADDR ip:port] [LADDR ip:port] [SKIPME <yes | \
            no>] [MAXAGE maxage]> | REPLY <ON | OFF | SKIP> | NO-EVICT <ON | OFF> | NO-TOUCH \
            <ON | OFF> | PAUSE timeout [WRITE | ALL] | UNPAUSE | UNBLOCK client-id [TIMEOUT \
            | ERROR] | TRACKING <ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX \
            prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP] | CACHING <YES | NO> | GETREDIR | \
            TRACKINGINFO | HELP>
            """,
            differs: """
                users are uids, addresses a path and a pid; others' connections need admin; \
                NO-EVICT and NO-TOUCH have no effect
                """
        ),
        .init(
            .info,
            .server,
            since: "1.0.0",
            "[section [section ...]]",
            differs: """
                fields that mean nothing here are missing; times of cheap commands are samples
                """
        ),
        .init(
            .command,
            .server,
            since: "2.8.13",
            """
            [COUNT | DOCS [command-name [command-name ...]] | GETKEYS command [arg [arg \
            ...]] | GETKEYSANDFLAGS command [arg [arg ...]] | INFO [command-name \
            [command-name ...]] | LIST | HELP]
            """,
            differs: "no key specifications; LIST has no FILTERBY"
        ),
        .init(
            .config,
            .server,
            since: "2.0.0",
            """
            <GET parameter [parameter ...] | SET parameter value [parameter value ...] | \
            RESETSTAT | HELP>
            """,
            differs: """
                SET accepts notify-keyspace-events only; REWRITE is refused: the configuration \
                is a file with STATE.RELOAD
                """
        ),
        .init(.dbsize, .server, since: "1.0.0", differs: "needs the right to read all keys"),
        .init(.time, .server, since: "2.6.0"),
        .init(
            .memory,
            .server,
            since: "4.0.0",
            "<USAGE key [SAMPLES count] | STATS | DOCTOR | HELP>",
            differs: "STATS has fewer fields"
        ),
        .init(
            .flushall,
            .server,
            since: "1.0.0",
            "[ASYNC | SYNC]",
            differs: "needs admin; one commit, which is in the history; at most 1,000,000 keys"
        ),
        .init(.flushdb, .server, since: "1.0.0", "[ASYNC | SYNC]", differs: "as FLUSHALL"),
        .init(.role, .server, since: "2.8.12", differs: "always a master without replicas"),
        .init(
            .lastsave,
            .server,
            since: "1.0.0",
            differs: "the present: all that was acknowledged is on stable storage"
        ),
        .init(
            .module,
            .server,
            since: "4.0.0",
            "<LIST | HELP>",
            differs: "LIST only, which is empty"
        ),
        .init(
            .acl,
            .server,
            since: "6.0.0",
            "<WHOAMI | CAT [category] | LIST | USERS | HELP>",
            differs: "users are uids, from the kernel; rules say who may do what"
        ),
        .init(
            .slowlog,
            .server,
            since: "2.2.12",
            "<GET [count] | LEN | RESET | HELP>",
            differs: """
                needs admin; commands of 10 ms or more, at most 128; without arguments for those \
                who may not read all keys
                """
        ),
        .init(
            .latency,
            .server,
            since: "2.8.13",
            """
            <HISTOGRAM [command [command ...]] | LATEST | HISTORY event | RESET [event \
            [event ...]] | DOCTOR | HELP>
            """,
            differs: """
                needs admin; the only event is command; times of cheap commands are samples
                """
        ),
        .init(
            .monitor,
            .server,
            since: "1.0.0",
            differs: """
                needs admin, and the right to read all keys
                """
        ),
    ]

    static let aboutChannels: [VerbDocumentation] = [
        .init(.multi, .transactions, since: "1.2.0"),
        .init(
            .exec,
            .transactions,
            since: "1.2.0",
            differs: "all or nothing: a command that fails undoes all"
        ),
        .init(.discard, .transactions, since: "2.0.0"),
        .init(.watch, .transactions, since: "2.2.0", "key [key ...]"),
        .init(.unwatch, .transactions, since: "2.2.0"),
        .init(.subscribe, .pubsub, since: "2.0.0", "channel [channel ...]"),
        .init(.unsubscribe, .pubsub, since: "2.0.0", "[channel [channel ...]]"),
        .init(.psubscribe, .pubsub, since: "2.0.0", "pattern [pattern ...]"),
        .init(.punsubscribe, .pubsub, since: "2.0.0", "[pattern [pattern ...]]"),
        .init(.publish, .pubsub, since: "2.0.0", "channel message"),
        .init(
            .pubsub,
            .pubsub,
            since: "2.8.0",
            """
            <CHANNELS [pattern] | NUMSUB [channel [channel ...]] | NUMPAT | SHARDCHANNELS \
            [pattern] | SHARDNUMSUB [shardchannel [shardchannel ...]] | HELP>
            """
        ),
        .init(
            .ssubscribe,
            .pubsub,
            since: "7.0.0",
            "shardchannel [shardchannel ...]",
            differs: "there is one shard"
        ),
        .init(.sunsubscribe, .pubsub, since: "7.0.0", "[shardchannel [shardchannel ...]]"),
        .init(
            .spublish,
            .pubsub,
            since: "7.0.0",
            "shardchannel message",
            differs: "there is one shard"
        ),
        .init(
            .eval,
            .scripting,
            since: "2.6.0",
            "script numkeys [key [key ...]] [arg [arg ...]]",
            differs: "only scripts of locks and rate limits that are known; no Lua"
        ),
        .init(
            .evalsha,
            .scripting,
            since: "2.6.0",
            "sha1 numkeys [key [key ...]] [arg [arg ...]]",
            differs: "as EVAL"
        ),
        .init(
            .evalRo,
            .scripting,
            since: "7.0.0",
            "script numkeys [key [key ...]] [arg [arg ...]]",
            differs: "as EVAL; the known scripts write"
        ),
        .init(
            .evalshaRo,
            .scripting,
            since: "7.0.0",
            "sha1 numkeys [key [key ...]] [arg [arg ...]]",
            differs: "as EVAL; the known scripts write"
        ),
        .init(
            .script,
            .scripting,
            since: "2.6.0",
            "<LOAD script | EXISTS sha1 [sha1 ...] | FLUSH [ASYNC | SYNC] | HELP>",
            differs: "as EVAL"
        ),
    ]
}
