package import StateModel

/// A command's name and the properties of all its calls.
///
/// Four words without references: each command looks one up, and would count references.
package struct Verb: Sendable {
    package enum Name: String, CaseIterable, Sendable {
        case hello, auth, ping, echo, quit, reset, select, client, info, command, config, dbsize
        case type, time, exists, get, set, getdel, mget, mset, msetnx, del, unlink, strlen, append
        case incr, incrby, decr, decrby, keys, scan, multi, exec, discard, watch, unwatch
        case setex, psetex, getex, expire, pexpire, expireat, pexpireat
        case ttl, pttl, expiretime, pexpiretime, persist
        case subscribe, unsubscribe, psubscribe, punsubscribe, publish, pubsub
        case stateGet = "state.get"
        case stateSet = "state.set"
        case stateApply = "state.apply"
        case stateDelete = "state.delete"
        case stateList = "state.list"
        case stateWatch = "state.watch"
        case stateUnwatch = "state.unwatch"
        case stateWatches = "state.watches"
        case stateHistory = "state.history"
        case stateRevert = "state.revert"
        case stateChanges = "state.changes"
        case stateCompact = "state.compact"
        case stateStatus = "state.status"
        case stateSync = "state.sync"
        case stateHandler = "state.handler"
        case stateHandlers = "state.handlers"
        case stateReload = "state.reload"
        case stateExplain = "state.explain"
        case stateRules = "state.rules"
        case stateCheck = "state.check"
    }

    package let name: Name
    private let signedArity: Int8
    /// Whether it may change entries.
    package let isWrite: Bool
    private let signedKeys: (first: Int8, last: Int8, step: Int8)
    /// One line for COMMAND DOCS.
    package let summary: StaticString

    private init(
        _ name: Name,
        _ arity: Int8,
        writes isWrite: Bool = false,
        keys: (Int8, Int8, Int8) = (0, 0, 0),
        _ summary: StaticString
    ) {
        self.name = name
        self.signedArity = arity
        self.isWrite = isWrite
        self.signedKeys = keys
        self.summary = summary
    }

    /// The number of arguments, including the name; negative: at least so many (as in Redis).
    package var arity: Int { Int(signedArity) }

    /// First and last key among the arguments and the step between them, as in COMMAND INFO; 0 if
    /// there are none.
    package var keys: (first: Int, last: Int, step: Int) {
        (Int(signedKeys.first), Int(signedKeys.last), Int(signedKeys.step))
    }

    /// Whether it belongs to the category `pubsub` of COMMAND INFO.
    package var isAboutChannels: Bool {
        switch name {
        case .subscribe, .unsubscribe, .psubscribe, .punsubscribe, .publish, .pubsub: true
        default: false
        }
    }

    /// Whether it executes a transaction.
    package var isExecution: Bool { if case .exec = name { true } else { false } }

    package func accepts(argumentCount: Int) -> Bool {
        arity >= 0 ? argumentCount == arity : argumentCount >= -arity
    }

    /// All verbs, in the order in which their names are declared.
    package static let all: [Verb] = [
        Verb(.hello, -1, "Chooses the protocol version and names the connection."),
        Verb(.auth, -2, "Authenticates; no password is set here."),
        Verb(.ping, -1, "Returns PONG, or its argument."),
        Verb(.echo, 2, "Returns its argument."),
        Verb(.quit, -1, "Ends the connection."),
        Verb(.reset, 1, "Resets the connection to its initial state."),
        Verb(.select, 2, "Chooses the database; there is one, 0."),
        Verb(.client, -2, "Returns or sets properties of connections."),
        Verb(.info, -1, "Returns information about the server."),
        Verb(.command, -1, "Returns information about the commands."),
        Verb(.config, -2, "Returns or sets the configuration, as far as Redis clients need it."),
        Verb(.dbsize, 1, "Counts the entries."),
        Verb(.type, 2, keys: (1, 1, 1), "Returns the type of an entry: string or none."),
        Verb(.time, 1, "Returns the time."),
        Verb(.exists, -2, keys: (1, -1, 1), "Counts how many of the keys exist."),
        Verb(.get, 2, keys: (1, 1, 1), "Returns the value of a key."),
        Verb(.set, -3, writes: true, keys: (1, 1, 1), "Sets the value of a key."),
        Verb(
            .getdel,
            2,
            writes: true,
            keys: (1, 1, 1),
            "Returns the value of a key and deletes it."
        ),
        Verb(.mget, -2, keys: (1, -1, 1), "Returns the values of several keys."),
        Verb(.mset, -3, writes: true, keys: (1, -1, 2), "Sets several keys in one commit."),
        Verb(.msetnx, -3, writes: true, keys: (1, -1, 2), "Sets several keys if none exists."),
        Verb(.del, -2, writes: true, keys: (1, -1, 1), "Deletes keys."),
        Verb(.unlink, -2, writes: true, keys: (1, -1, 1), "Deletes keys."),
        Verb(.strlen, 2, keys: (1, 1, 1), "Returns the length of a value."),
        Verb(.append, 3, writes: true, keys: (1, 1, 1), "Appends to a value."),
        Verb(.incr, 2, writes: true, keys: (1, 1, 1), "Adds 1 to a number."),
        Verb(.incrby, 3, writes: true, keys: (1, 1, 1), "Adds to a number."),
        Verb(.decr, 2, writes: true, keys: (1, 1, 1), "Subtracts 1 from a number."),
        Verb(.decrby, 3, writes: true, keys: (1, 1, 1), "Subtracts from a number."),
        Verb(.keys, 2, "Lists the keys that match a glob."),
        Verb(.scan, -2, "Lists the keys piece by piece."),
        Verb(.multi, 1, "Begins a transaction."),
        Verb(.exec, 1, "Commits the transaction."),
        Verb(.discard, 1, "Discards the transaction."),
        Verb(.watch, -2, keys: (1, -1, 1), "Makes EXEC depend on keys being unchanged."),
        Verb(.unwatch, 1, "Forgets the keys of WATCH."),
        Verb(.setex, 4, writes: true, keys: (1, 1, 1), "Sets a value that expires after seconds."),
        Verb(
            .psetex,
            4,
            writes: true,
            keys: (1, 1, 1),
            "Sets a value that expires after milliseconds."
        ),
        Verb(
            .getex,
            -2,
            writes: true,
            keys: (1, 1, 1),
            "Returns a value and changes when it expires."
        ),
        Verb(.expire, -3, writes: true, keys: (1, 1, 1), "Makes a key expire after seconds."),
        Verb(.pexpire, -3, writes: true, keys: (1, 1, 1), "Makes a key expire after milliseconds."),
        Verb(.expireat, -3, writes: true, keys: (1, 1, 1), "Makes a key expire at a Unix time."),
        Verb(
            .pexpireat,
            -3,
            writes: true,
            keys: (1, 1, 1),
            "Makes a key expire at a Unix time in ms."
        ),
        Verb(.ttl, 2, keys: (1, 1, 1), "Returns how many seconds a key has left."),
        Verb(.pttl, 2, keys: (1, 1, 1), "Returns how many milliseconds a key has left."),
        Verb(.expiretime, 2, keys: (1, 1, 1), "Returns when a key expires, as a Unix time."),
        Verb(.pexpiretime, 2, keys: (1, 1, 1), "Returns when a key expires, in ms."),
        Verb(.persist, 2, writes: true, keys: (1, 1, 1), "Makes a key never expire."),
        Verb(.subscribe, -2, "Subscribes to channels by name."),
        Verb(.unsubscribe, -1, "Ends subscriptions by name; without names, all of them."),
        Verb(.psubscribe, -2, "Subscribes to the channels whose names match globs."),
        Verb(.punsubscribe, -1, "Ends subscriptions by glob; without globs, all of them."),
        Verb(.publish, 3, "Sends a message to the current subscribers of a channel."),
        Verb(.pubsub, -2, "Returns information about channels and their subscribers."),
        Verb(.stateGet, -2, keys: (1, 1, 1), "Returns an entry with its metadata."),
        Verb(.stateSet, -3, writes: true, keys: (1, 1, 1), "Sets a value under conditions."),
        Verb(.stateApply, -2, writes: true, "Sets, deletes and checks keys in one commit."),
        Verb(.stateDelete, -2, writes: true, "Deletes the keys that match patterns in one commit."),
        Verb(.stateList, -2, "Lists the keys that match a pattern in key order."),
        Verb(.stateWatch, -2, "Pushes every commit that changes a key that matches patterns."),
        Verb(.stateUnwatch, 2, "Ends a watch."),
        Verb(.stateWatches, 1, "Lists the watches and how far each is."),
        Verb(.stateHistory, -2, keys: (1, 1, 1), "Returns the changes of a key, newest first."),
        Verb(.stateRevert, 4, writes: true, "Restores keys to their state at a revision."),
        Verb(.stateChanges, -4, "Returns the commits since a revision, or waits for the next."),
        Verb(.stateCompact, -1, "Removes superseded changes from the history."),
        Verb(.stateStatus, 1, "Returns the state of the store and the daemon."),
        Verb(.stateSync, 1, "Replies once everything written so far is on stable storage."),
        Verb(.stateHandler, -3, writes: true, "Attaches, advances or forgets a named handler."),
        Verb(.stateHandlers, 1, "Lists the named handlers and the position of each."),
        Verb(.stateReload, 1, "Reloads the configuration and returns what changed."),
        Verb(.stateExplain, 2, keys: (1, 1, 1), "Returns the options of a key and their rules."),
        Verb(.stateRules, 1, "Lists the rules of the configuration."),
        Verb(.stateCheck, -1, "Lists the stored values that a rule now refuses."),
    ]

    // MARK: Look-up

    /// The verb of this name, in any case.
    ///
    /// - Complexity: O(1).
    package static func named(_ name: Bytes) -> Verb? {
        guard let packed = Packed(name) else { return nil }
        return table.find(packed)
    }

    /// A name of at most 16 bytes in lower case, as two words padded with zeros.
    private struct Packed: Equatable {
        var low: UInt64
        var high: UInt64 = 0
        /// Distinguishes a zero in the name from padding.
        var byteCount: Int

        init?(_ name: Bytes) {
            guard let base = name.baseAddress, name.count > 0, name.count <= 16 else { return nil }
            byteCount = name.count
            low = Packed.lowerCase(Packed.word(base, min(byteCount, 8)))
            if byteCount > 8 { high = Packed.lowerCase(Packed.word(base + 8, byteCount - 8)) }
        }

        /// The first `count` bytes, 1 to 8, read in two pieces that may overlap.
        private static func word(_ base: UnsafeRawPointer, _ count: Int) -> UInt64 {
            let rest = UInt64(count * 8)
            if count >= 4 {
                let start = base.loadUnaligned(as: UInt32.self)
                let end = (base + (count - 4)).loadUnaligned(as: UInt32.self)
                return UInt64(start) | UInt64(end) << (rest - 32)
            }
            let end = UInt64((base + (count - 1)).load(as: UInt8.self)) << (rest - 8)
            return count == 1 ? end : UInt64(base.loadUnaligned(as: UInt16.self)) | end
        }

        /// Adds 0x20 to each byte from A to Z, all eight at a time.
        private static func lowerCase(_ word: UInt64) -> UInt64 {
            let ones: UInt64 = 0x0101_0101_0101_0101
            let highest = 0x80 * ones
            let low = word & ~highest
            // The highest bit of each byte is set: from A on; above Z.
            let isFromA = low + (0x80 - UInt64(UInt8(ascii: "A"))) * ones
            let isBeyondZ = low + (0x7F - UInt64(UInt8(ascii: "Z"))) * ones
            return word | (isFromA & ~isBeyondZ & ~word & highest) >> 2
        }

        var place: Int {
            let mixed = (low &* 0x9E37_79B9_7F4A_7C15 ^ high) &* 0xC2B2_AE3D_27D4_EB4F
            return Int(truncatingIfNeeded: mixed >> 56)
        }
    }

    /// A hash table with open addressing over 256 slots.
    private struct Table {
        private var places: [(key: Packed, verb: Verb)?] = Array(repeating: nil, count: 256)

        init(_ verbs: [Verb]) {
            for verb in verbs {
                var name = verb.name.rawValue
                name.withUTF8 { bytes in
                    guard let key = Packed(Bytes(bytes)) else { return }
                    var place = key.place
                    while places[place] != nil { place = (place + 1) & 255 }
                    places[place] = (key, verb)
                }
            }
        }

        func find(_ key: Packed) -> Verb? {
            var place = key.place
            while let found = places[place] {
                if found.key == key { return found.verb }
                place = (place + 1) & 255
            }
            return nil
        }
    }

    private static let table = Table(all)
}
