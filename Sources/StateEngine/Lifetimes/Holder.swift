import StateModel

/// The connection or process without which a key is deleted.
///
/// An entry has it in place of the time at which it expires, as a negative number: so it is part of
/// the entry's commit, and of each row of the history, without a field of its own.
///
/// ```
/// -1 - (tag << 32 | uid)            a connection; its tag has 20 bits, from 1 on
/// -1 - (1 << 52 | tag << 22 | pid)  a process; its tag has 30 bits
/// ```
///
/// For example, connection 5 of uid 1000 is -1 - (5 << 32 | 1000) = -21474837481. The number is at
/// least -2^53, as all numbers of the history are, so that a daemon that does not know holders takes
/// it for a time long past and deletes the key.
///
/// The tag of a connection makes its number unique, and the uid decides who may claim it. The tag
/// of a process is made of its start and of the identity of the boot: after a restart of the daemon
/// it distinguishes the process from a later one with the same number. A table of holders beside the
/// entries was rejected: it would have to be committed with them.
package struct Holder: Hashable, Sendable {
    /// The number in the place of a time.
    package let stored: Int64

    private static let processBit: Int64 = 1 << 52
    private static let connectionTags: Int64 = 1 << 20 - 1
    private static let processTags: Int64 = 1 << 30 - 1
    private static let processNumbers: Int64 = 1 << 22 - 1

    private var bits: Int64 { -1 - stored }

    /// The holder in the place of a time; nil for a time.
    package init?(stored: Int64?) {
        guard let stored, stored < 0 else { return nil }
        self.stored = stored
    }

    private init(bits: Int64) { stored = -1 - bits }

    /// A connection of `uid`, with any 20 bits that make it unique.
    package init(connectionOf uid: UInt32, tag: UInt32) {
        let tag = max(1, Int64(tag) & Holder.connectionTags)
        self.init(bits: tag << 32 | Int64(uid))
    }

    /// The process `pid`, with bits that a later process of that number does not have.
    package init(process pid: Int32, tag: UInt64) {
        let tag = Int64(truncatingIfNeeded: tag % UInt64(Holder.processTags))
        self.init(bits: Holder.processBit | tag << 22 | Int64(pid) & Holder.processNumbers)
    }

    package var lifetime: Lifetime {
        bits & Holder.processBit == 0 ? .connection : .process
    }

    /// The user who may claim a connection's keys.
    package var uid: UInt32 { UInt32(truncatingIfNeeded: bits) }

    /// The number of a process.
    package var pid: Int32 { Int32(bits & Holder.processNumbers) }

    /// What a client remembers to claim the keys again: 16 hexadecimal digits.
    package var claim: String {
        let digits = String(bits, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    /// The connection of a ``claim``; nil for anything else.
    package init?(claim: Bytes) {
        guard claim.count == 16,
            let bits = Int64(String(decoding: claim, as: UTF8.self), radix: 16),
            bits > UInt32.max, bits < Holder.processBit
        else { return nil }
        self.init(bits: bits)
    }
}

extension Record {
    /// Whether it has a holder, instead of a time at which it expires.
    @inlinable
    package var isHeld: Bool { (storedExpiry ?? 0) < 0 }

    /// Without whom the key is deleted; nil if it does not depend on anybody.
    package var holder: Holder? { Holder(stored: storedExpiry) }

    /// Wall time in milliseconds since 1970 at which it expires; nil if it does not expire.
    @inlinable
    package var expires: Int64? {
        guard let time = storedExpiry, time >= 0 else { return nil }
        return time
    }
}
