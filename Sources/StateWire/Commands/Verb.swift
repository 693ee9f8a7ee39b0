package import StateModel

/// A command's name and the properties of all its calls.
///
/// Four words without references: each command looks one up, and would count references.
@usableFromInline
package struct Verb: Sendable {
    @usableFromInline
    package enum Name: String, CaseIterable, Sendable {
        case hello, auth, ping, echo, quit, reset, select, client, info, command, config, dbsize
        case type, time, exists, get, set, getdel, mget, mset, msetnx, del, unlink, strlen, append
        case incr, incrby, decr, decrby, keys, scan, multi, exec, discard, watch, unwatch
        case setex, psetex, getex, expire, pexpire, expireat, pexpireat
        case ttl, pttl, expiretime, pexpiretime, persist
        case setnx, getset, getrange, substr, setrange, incrbyfloat, msetex, delex, digest
        case rename, renamenx, copy, touch, randomkey, object, memory, flushall, flushdb
        case dump, restore
        case role, wait, waitaof, lastsave, module, acl, slowlog, latency, monitor
        case eval, evalsha, script
        case evalRo = "eval_ro"
        case evalshaRo = "evalsha_ro"
        case subscribe, unsubscribe, psubscribe, punsubscribe, publish, pubsub
        case ssubscribe, sunsubscribe, spublish
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
        case stateBackup = "state.backup"
        case stateStatus = "state.status"
        case stateMetrics = "state.metrics"
        case stateTop = "state.top"
        case stateMoment = "state.moment"
        case stateSync = "state.sync"
        case stateHandler = "state.handler"
        case stateHandlers = "state.handlers"
        case stateReload = "state.reload"
        case stateExplain = "state.explain"
        case stateRules = "state.rules"
        case stateDefaults = "state.defaults"
        case stateCheck = "state.check"
        case stateClaim = "state.claim"
        case stateMirror = "state.mirror"
    }

    @usableFromInline package let name: Name
    @usableFromInline let signedArity: Int8
    /// Whether it may change entries.
    package let isWrite: Bool
    private let signedKeys: (first: Int8, last: Int8, step: Int8)
    /// One line for COMMAND DOCS.
    package let summary: StaticString

    /// Its place in ``all``.
    package let index: Int

    init(
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
        index = 0
    }

    private init(_ verb: Verb, index: Int) {
        (name, signedArity, isWrite) = (verb.name, verb.signedArity, verb.isWrite)
        (signedKeys, summary, self.index) = (verb.signedKeys, verb.summary, index)
    }

    /// All verbs, in the order in which their names are declared.
    package static let all: [Verb] = rows.enumerated().map { Verb($1, index: $0) }

    /// The number of arguments, including the name; negative: at least so many (as in Redis).
    @inlinable package var arity: Int { Int(signedArity) }

    /// First and last key among the arguments and the step between them, as in COMMAND INFO; 0 if
    /// there are none.
    package var keys: (first: Int, last: Int, step: Int) {
        (Int(signedKeys.first), Int(signedKeys.last), Int(signedKeys.step))
    }

    /// Whether it belongs to the category `pubsub` of COMMAND INFO.
    package var isAboutChannels: Bool {
        switch name {
        case .subscribe, .unsubscribe, .psubscribe, .punsubscribe, .publish, .pubsub,
            .ssubscribe, .sunsubscribe, .spublish:
            true
        default: false
        }
    }

    /// Whether it executes a transaction.
    @inlinable package var isExecution: Bool { if case .exec = name { true } else { false } }

    @inlinable
    package func accepts(argumentCount: Int) -> Bool {
        arity >= 0 ? argumentCount == arity : argumentCount >= -arity
    }

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

        @inline(__always)
        init?(_ name: Bytes) {
            guard let base = name.baseAddress, name.count > 0, name.count <= 16 else { return nil }
            byteCount = name.count
            low = Packed.lowerCase(Packed.word(base, min(byteCount, 8)))
            if byteCount > 8 { high = Packed.lowerCase(Packed.word(base + 8, byteCount - 8)) }
        }

        /// The first `count` bytes, 1 to 8, read in two pieces that may overlap.
        @inline(__always)
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
        @inline(__always)
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
            return Int(truncatingIfNeeded: mixed >> 55)
        }
    }

    /// A hash table with open addressing over 512 slots.
    private struct Table {
        private var places: [(key: Packed, verb: Verb)?] = Array(repeating: nil, count: 512)

        init(_ verbs: [Verb]) {
            for verb in verbs {
                var name = verb.name.rawValue
                name.withUTF8 { bytes in
                    guard let key = Packed(Bytes(bytes)) else { return }
                    var place = key.place
                    while places[place] != nil { place = (place + 1) & 511 }
                    places[place] = (key, verb)
                }
            }
        }

        @inline(__always)
        func find(_ key: Packed) -> Verb? {
            var place = key.place
            while let found = places[place] {
                if found.key == key { return found.verb }
                place = (place + 1) & 511
            }
            return nil
        }
    }

    private static let table = Table(all)
}
