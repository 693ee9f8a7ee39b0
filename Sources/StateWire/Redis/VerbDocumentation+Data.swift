extension VerbDocumentation {
    static let aboutValues: [VerbDocumentation] = [
        .init(
            .get,
            .string,
            since: "1.0.0",
            "key",
            differs: "an absent key may have the default of a rule"
        ),
        .init(
            .set,
            .string,
            since: "1.0.0",
            """
            key value [NX | XX | IFEQ ifeq-value | IFNE ifne-value | IFDEQ ifdeq-digest | \
            IFDNE ifdne-digest] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds \
            | PXAT unix-time-milliseconds | KEEPTTL]
            """,
            differs: "a rule may give the time of a key whose SET names none"
        ),
        .init(.getdel, .string, since: "6.2.0", "key"),
        .init(
            .mget,
            .string,
            since: "1.0.0",
            "key [key ...]",
            differs: "an absent key may have the default of a rule"
        ),
        .init(.mset, .string, since: "1.0.1", "key value [key value ...]"),
        .init(.msetnx, .string, since: "1.0.1", "key value [key value ...]"),
        .init(
            .msetex,
            .string,
            since: "8.4.0",
            """
            numkeys key value [key value ...] [NX | XX] [EX seconds | PX milliseconds | EXAT \
            unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]
            """
        ),
        .init(.strlen, .string, since: "2.2.0", "key"),
        .init(.append, .string, since: "2.0.0", "key value"),
        .init(.incr, .string, since: "1.0.0", "key"),
        .init(.incrby, .string, since: "1.0.0", "key increment"),
        .init(.decr, .string, since: "1.0.0", "key"),
        .init(.decrby, .string, since: "1.0.0", "key decrement"),
        .init(.incrbyfloat, .string, since: "2.6.0", "key increment"),
        .init(.setnx, .string, since: "1.0.0", "key value"),
        .init(.getset, .string, since: "1.0.0", "key value"),
        .init(.getrange, .string, since: "2.4.0", "key start end"),
        .init(.substr, .string, since: "1.0.0", "key start end"),
        .init(
            .setrange,
            .string,
            since: "2.2.0",
            "key offset value",
            differs: "the limit is that of values"
        ),
        .init(
            .delex,
            .string,
            since: "8.4.0",
            """
            key [IFEQ ifeq-value | IFNE ifne-value | IFDEQ ifdeq-digest | IFDNE \
            ifdne-digest]
            """
        ),
        .init(.digest, .string, since: "8.4.0", "key"),
        .init(.setex, .string, since: "2.0.0", "key seconds value"),
        .init(.psetex, .string, since: "2.6.0", "key milliseconds value"),
        .init(
            .getex,
            .string,
            since: "6.2.0",
            """
            key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT \
            unix-time-milliseconds | PERSIST]
            """,
            differs: "a wrong time is refused also if the key is absent"
        ),
    ]

    static let aboutKeys: [VerbDocumentation] = [
        .init(.type, .generic, since: "1.0.0", "key"),
        .init(.exists, .generic, since: "1.0.0", "key [key ...]"),
        .init(.del, .generic, since: "1.0.0", "key [key ...]"),
        .init(.unlink, .generic, since: "4.0.0", "key [key ...]"),
        .init(
            .keys,
            .generic,
            since: "1.0.0",
            "pattern",
            differs: "in key order, as of one moment"
        ),
        .init(
            .scan,
            .generic,
            since: "2.8.0",
            "cursor [MATCH pattern] [COUNT count] [TYPE type]",
            differs: """
                a cursor belongs to a user, and is void after a restart; a key is listed once
                """
        ),
        .init(
            .rename,
            .generic,
            since: "1.0.0",
            "key newkey",
            differs: "a source without a time takes that of the rule of its new name"
        ),
        .init(.renamenx, .generic, since: "1.0.0", "key newkey", differs: "as RENAME"),
        .init(
            .copy,
            .generic,
            since: "6.2.0",
            "source destination [DB destination-db] [REPLACE]",
            differs: "as RENAME; DB 0 only"
        ),
        .init(
            .touch,
            .generic,
            since: "3.2.1",
            "key [key ...]",
            differs: "has no effect on keys: nothing is evicted"
        ),
        .init(
            .randomkey,
            .generic,
            since: "1.0.0",
            differs: "needs the right to read all keys; keys are not equally likely"
        ),
        .init(
            .object,
            .generic,
            since: "2.2.3",
            "<ENCODING key | IDLETIME key | FREQ key | REFCOUNT key | HELP>",
            differs: """
                IDLETIME counts from the last change; ENCODING is what Redis would choose for \
                the value
                """
        ),
        .init(.dump, .generic, since: "2.6.0", "key"),
        .init(
            .restore,
            .generic,
            since: "2.6.0",
            """
            key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]
            """,
            differs: "strings only"
        ),
        .init(.expire, .generic, since: "1.0.0", "key seconds [NX | XX] [GT | LT]"),
        .init(.pexpire, .generic, since: "2.6.0", "key milliseconds [NX | XX] [GT | LT]"),
        .init(.expireat, .generic, since: "1.2.0", "key unix-time-seconds [NX | XX] [GT | LT]"),
        .init(
            .pexpireat,
            .generic,
            since: "2.6.0",
            "key unix-time-milliseconds [NX | XX] [GT | LT]"
        ),
        .init(.ttl, .generic, since: "1.0.0", "key"),
        .init(.pttl, .generic, since: "2.6.0", "key"),
        .init(.expiretime, .generic, since: "7.0.0", "key"),
        .init(.pexpiretime, .generic, since: "7.0.0", "key"),
        .init(.persist, .generic, since: "2.2.0", "key"),
        .init(
            .wait,
            .generic,
            since: "3.0.0",
            "numreplicas timeout",
            differs: "returns 0 once everything written so far is on stable storage"
        ),
        .init(
            .waitaof,
            .generic,
            since: "7.2.0",
            "numlocal numreplicas timeout",
            differs: "returns 1 and 0 once everything written so far is on stable storage"
        ),
    ]
}
