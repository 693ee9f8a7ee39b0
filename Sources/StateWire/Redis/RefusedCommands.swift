/// Redis's commands that this daemon refuses, as unknown, and why.
package struct RefusedCommands: Sendable {
    package let reason: StaticString
    /// Their names in upper case.
    package let names: [String]

    private init(_ reason: StaticString, _ names: StaticString) {
        self.reason = reason
        self.names = "\(names)".split(separator: " ").map { String($0) }
    }

    /// The reason for a name in any case; nil if it is no such command.
    package static func reason(for name: String) -> StaticString? {
        let name = name.uppercased()
        return all.first { $0.names.contains(name) }?.reason
    }

    package static let all: [RefusedCommands] = [
        .init(
            "values are strings: there are no lists",
            """
            BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH LINDEX LINSERT LLEN LMOVE LMPOP LPOP LPOS \
            LPUSH LPUSHX LRANGE LREM LSET LTRIM RPOP RPOPLPUSH RPUSH RPUSHX
            """
        ),
        .init(
            "values are strings: there are no hashes",
            """
            HDEL HEXISTS HEXPIRE HEXPIREAT HEXPIRETIME HGET HGETALL HGETDEL HGETEX HINCRBY \
            HINCRBYFLOAT HKEYS HLEN HMGET HMSET HPERSIST HPEXPIRE HPEXPIREAT HPEXPIRETIME \
            HPTTL HRANDFIELD HSCAN HSET HSETEX HSETNX HSTRLEN HTTL HVALS
            """
        ),
        .init(
            "values are strings: there are no sets",
            """
            SADD SCARD SDIFF SDIFFSTORE SINTER SINTERCARD SINTERSTORE SISMEMBER SMEMBERS \
            SMISMEMBER SMOVE SPOP SRANDMEMBER SREM SSCAN SUNION SUNIONSTORE
            """
        ),
        .init(
            "values are strings: there are no sorted sets",
            """
            BZMPOP BZPOPMAX BZPOPMIN ZADD ZCARD ZCOUNT ZDIFF ZDIFFSTORE ZINCRBY ZINTER \
            ZINTERCARD ZINTERSTORE ZLEXCOUNT ZMPOP ZMSCORE ZPOPMAX ZPOPMIN ZRANDMEMBER \
            ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANGESTORE ZRANK ZREM ZREMRANGEBYLEX \
            ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE \
            ZREVRANK ZSCAN ZSCORE ZUNION ZUNIONSTORE
            """
        ),
        .init(
            """
            values are strings: there are no streams; watch keys with STATE.WATCH or \
            STATE.CHANGES
            """,
            """
            XACK XADD XAUTOCLAIM XCLAIM XDEL XGROUP XINFO XLEN XPENDING XRANGE XREAD \
            XREADGROUP XREVRANGE XSETID XTRIM
            """
        ),
        .init(
            "values are strings: there are no places",
            """
            GEOADD GEODIST GEOHASH GEOPOS GEORADIUS GEORADIUSBYMEMBER GEORADIUSBYMEMBER_RO \
            GEORADIUS_RO GEOSEARCH GEOSEARCHSTORE
            """
        ),
        .init(
            "values are strings: there are no sketches",
            "PFADD PFCOUNT PFDEBUG PFMERGE PFSELFTEST"
        ),
        .init(
            "values are strings: there is nothing to sort",
            "SORT SORT_RO"
        ),
        .init(
            "values are read and written whole or by bytes, not by bits",
            "BITCOUNT BITFIELD BITFIELD_RO BITOP BITPOS GETBIT SETBIT"
        ),
        .init(
            "values are not compared with each other",
            "LCS"
        ),
        .init(
            "there is one database",
            "MOVE SWAPDB"
        ),
        .init(
            "there is one daemon for each machine: no replicas",
            "FAILOVER PSYNC REPLCONF REPLICAOF SLAVEOF SYNC"
        ),
        .init(
            "there is one daemon for each machine: no cluster",
            "ASKING CLUSTER MIGRATE READONLY READWRITE RESTORE-ASKING"
        ),
        .init(
            """
            every acknowledged write is on stable storage already; use STATE.SYNC for \
            durability interval
            """,
            "BGREWRITEAOF BGSAVE SAVE"
        ),
        .init(
            "no code runs in the daemon",
            "FCALL FCALL_RO FUNCTION"
        ),
        .init(
            "the service manager or a signal stops the daemon",
            "SHUTDOWN"
        ),
        .init(
            "it is for tests of Redis itself",
            "DEBUG LOLWUT"
        ),
    ]
}
