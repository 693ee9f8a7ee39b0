import CLinux
import StatePlatform

/// One version of one entry, in one allocation: 40 bytes of fields, the key, the value.
///
/// ```
/// -24 created, -16 version, where 16 has no room for them
///  -8 older     address of the version that this one supersedes, while this one is not durable;
///               not there if this one was loaded
///   0 revision
///   8 time (48 bits), flags (5), key length (11)
///  16 revision - created, version
///  24 ordinal (24 bits), operation (4), flags (4), owner
///  32 cause, value length (all ones: deleted)
///  40 time of expiry and the fields of Deadlines, if it expires (24); key bytes, value bytes
/// ```
///
/// Memory is managed by hand, because a store holds millions of records: a Swift object costs 16
/// bytes more each and an atomic pair for each access. The rule that makes it safe: **a record
/// belongs to the chain of its key in the ``EntryStore``**, from `make` until the table frees it,
/// when a later version is durable or this one is undone. Everything but `older` and the fields of
/// ``Deadlines`` is constant once its transaction is finished, so the commit thread may read it
/// while its batch is in progress.
@frozen
@usableFromInline
package struct Record: Equatable {
    @usableFromInline package let address: UnsafeMutableRawPointer

    @inlinable
    package init(address: UnsafeMutableRawPointer) { self.address = address }

    @usableFromInline static let headerByteCount = 40
    @usableFromInline static let deletedBit = UInt32.max

    // Flags beside the ordinal: what there is before the address.
    /// Room for `older`, at -8.
    @usableFromInline static let chainBit: UInt32 = 1 << 28
    /// The complete `created` and `version`, before that.
    @usableFromInline static let wideBit: UInt32 = 1 << 29
    static let chainByteCount = 8
    static let wideByteCount = 24

    // Flags beside the time.
    @usableFromInline static let keyLengthMask: UInt64 = 0x7FF
    /// Only its deadline differs from the version before.
    @usableFromInline static let renewalBit: UInt64 = 1 << 11
    /// Bytes before the key of a record that expires: that time, and the fields of ``Deadlines``.
    @usableFromInline static let deadlineByteCount = 24
    /// Its rule lets storage have it later; see ``DeferredChanges``.
    @usableFromInline static let deferrableBit: UInt64 = 1 << 12
    @usableFromInline static let expiryBit: UInt64 = 1 << 13
    /// Its change was published before it was durable: a failed commit does not undo it.
    @usableFromInline static let publishedBit: UInt64 = 1 << 14
    /// No storage keeps it.
    @usableFromInline static let volatileBit: UInt64 = 1 << 15

    /// The fields of a version besides key and value.
    package struct Fields {
        package var revision: Int64
        package var created: Int64
        package var version: Int64
        package var time: Int64
        package var ordinal: Int32
        package var owner: UInt32
        package var cause: UInt32
        /// As ``Record/storedExpiry``.
        package var expires: Int64?
        package var isVolatile: Bool
        /// Whether storage may have it later than readers; see ``DeferredChanges``.
        package var isDeferrable = false
        /// Whether only the deadline differs from the version before.
        package var isRenewal = false
        package var operation = ChangeOperation.plain
        /// Whether no version before it will ever be known: storage has had it before.
        package var isLoaded = false
        /// Whether the cluster may count it otherwise while its transaction is open.
        package var mayBeRecounted = false

        /// Whether `created` and `version` need 8 bytes each.
        fileprivate var isWide: Bool {
            mayBeRecounted || UInt32(exactly: revision &- created) == nil
                || UInt32(exactly: version) == nil
        }

        package init(
            revision: Int64,
            created: Int64,
            version: Int64,
            time: Int64,
            ordinal: Int32,
            owner: UInt32,
            cause: UInt32,
            expires: Int64? = nil,
            isVolatile: Bool = false
        ) {
            self.revision = revision
            self.created = created
            self.version = version
            self.time = time
            self.ordinal = ordinal
            self.owner = owner
            self.cause = cause
            self.expires = expires
            self.isVolatile = isVolatile
        }
    }

    /// Allocates a version, with memory of `pool` if it has some; a nil `value` is a delete.
    ///
    /// - Complexity: O(*n*) to copy key and value.
    static func make(
        _ fields: Fields,
        key: Bytes,
        value: Bytes?,
        appending suffix: Bytes? = nil,
        in pool: inout RecordPool
    ) -> Record {
        let valueByteCount = (value?.count ?? 0) + (suffix?.count ?? 0)
        let keyStart = headerByteCount + (fields.expires == nil ? 0 : deadlineByteCount)
        let isWide = fields.isWide
        let front = isWide ? wideByteCount : fields.isLoaded ? 0 : chainByteCount
        let size = front + keyStart + key.count + valueByteCount
        guard let start = pool.take(size) ?? malloc(RecordPool.roomByteCount(size)) else {
            noMemory(for: size)
        }
        clinux_note_allocation(start)
        let address = start + front
        var word = UInt32(truncatingIfNeeded: fields.ordinal) & ordinalMask
        word |= UInt32(fields.operation.rawValue) << ordinalBits
        if front > 0 {
            word |= isWide ? chainBit | wideBit : chainBit
            address.storeBytes(of: 0, toByteOffset: -8, as: UInt.self)
        }
        if isWide {
            address.storeBytes(of: fields.created, toByteOffset: -24, as: Int64.self)
            address.storeBytes(of: fields.version, toByteOffset: -16, as: Int64.self)
        }
        address.storeBytes(of: fields.revision, as: Int64.self)
        var timeAndKey = UInt64(truncatingIfNeeded: fields.time) << 16 | UInt64(key.count)
        if fields.isVolatile { timeAndKey |= volatileBit }
        if fields.isDeferrable { timeAndKey |= deferrableBit }
        if fields.isRenewal { timeAndKey |= renewalBit }
        if let expires = fields.expires {
            timeAndKey |= expiryBit
            address.storeBytes(of: expires, toByteOffset: headerByteCount, as: Int64.self)
            address.storeBytes(of: .max, toByteOffset: headerByteCount + 8, as: Int64.self)
            address.storeBytes(of: -1, toByteOffset: headerByteCount + 16, as: Int.self)
        }
        address.storeBytes(of: timeAndKey, toByteOffset: 8, as: UInt64.self)
        let age = UInt32(truncatingIfNeeded: fields.revision &- fields.created)
        address.storeBytes(of: age, toByteOffset: 16, as: UInt32.self)
        let version = UInt32(truncatingIfNeeded: fields.version)
        address.storeBytes(of: version, toByteOffset: 20, as: UInt32.self)
        address.storeBytes(of: word, toByteOffset: 24, as: UInt32.self)
        address.storeBytes(of: fields.owner, toByteOffset: 28, as: UInt32.self)
        address.storeBytes(of: fields.cause, toByteOffset: 32, as: UInt32.self)
        let length = value == nil ? deletedBit : UInt32(valueByteCount)
        address.storeBytes(of: length, toByteOffset: 36, as: UInt32.self)
        if let base = key.baseAddress { memcpy(address + keyStart, base, key.count) }
        var end = keyStart + key.count
        if let value, let base = value.baseAddress {
            memcpy(address + end, base, value.count)
            end += value.count
        }
        if let suffix, let base = suffix.baseAddress {
            memcpy(address + end, base, suffix.count)
        }
        return Record(address: address)
    }

    func deallocate(into pool: inout RecordPool) {
        pool.give(address - front, memoryByteCount)
    }

    /// The bytes that were asked for.
    var memoryByteCount: Int { front + keyStart + byteCount }

    /// The bytes before the address.
    var front: Int {
        if word & Record.chainBit == 0 { return 0 }
        return word & Record.wideBit == 0 ? Record.chainByteCount : Record.wideByteCount
    }

    /// The version that this one supersedes; nil once this one is durable, and for the first
    /// version.
    ///
    /// Must not be set in a version that was loaded.
    @inlinable
    package var older: Record? {
        get {
            guard word & Record.chainBit != 0 else { return nil }
            let bits = address.load(fromByteOffset: -8, as: UInt.self)
            return UnsafeMutableRawPointer(bitPattern: bits).map(Record.init)
        }
        nonmutating set {
            precondition(word & Record.chainBit != 0, "a loaded version supersedes nothing known")
            let bits = newValue.map { UInt(bitPattern: $0.address) } ?? 0
            address.storeBytes(of: bits, toByteOffset: -8, as: UInt.self)
        }
    }

    /// The commit that made this version.
    @inlinable
    package var revision: Int64 { address.load(as: Int64.self) }

    /// The commit that created the entry.
    @inlinable
    package var created: Int64 {
        guard word & Record.wideBit == 0 else {
            return address.load(fromByteOffset: -24, as: Int64.self)
        }
        return revision - Int64(address.load(fromByteOffset: 16, as: UInt32.self))
    }

    /// How many times the entry was set since it was created.
    @inlinable
    package var version: Int64 {
        guard word & Record.wideBit == 0 else {
            return address.load(fromByteOffset: -16, as: Int64.self)
        }
        return Int64(address.load(fromByteOffset: 20, as: UInt32.self))
    }

    /// Ordinal, operation, and flags.
    @inlinable
    var word: UInt32 { address.load(fromByteOffset: 24, as: UInt32.self) }

    /// Wall time in milliseconds since 1970.
    @inlinable
    package var time: Int64 { Int64(timeAndKey >> 16) }

    /// The position of this change in its commit.
    @inlinable
    package var ordinal: Int32 {
        get { Int32(truncatingIfNeeded: word & Record.ordinalMask) }
        nonmutating set {
            let ordinal = UInt32(truncatingIfNeeded: newValue) & Record.ordinalMask
            let others = word & ~Record.ordinalMask
            address.storeBytes(of: others | ordinal, toByteOffset: 24, as: UInt32.self)
        }
    }

    /// The uid that created the entry.
    @inlinable
    package var owner: UInt32 { address.load(fromByteOffset: 28, as: UInt32.self) }

    /// The number in the ``CauseTable`` of its writer.
    @inlinable
    package var cause: UInt32 { address.load(fromByteOffset: 32, as: UInt32.self) }

    /// Whether this version is a delete.
    @inlinable
    package var isDeleted: Bool {
        address.load(fromByteOffset: 36, as: UInt32.self) == Record.deletedBit
    }

    @inlinable
    var timeAndKey: UInt64 { address.load(fromByteOffset: 8, as: UInt64.self) }

    /// Whether no storage keeps it.
    @inlinable
    package var isVolatile: Bool { timeAndKey & Record.volatileBit != 0 }

    /// Wall time in milliseconds since 1970 at which it expires, or if negative its ``Holder``; nil
    /// if it does not end by itself.
    @inlinable
    package var storedExpiry: Int64? {
        guard timeAndKey & Record.expiryBit != 0 else { return nil }
        return address.load(fromByteOffset: Record.headerByteCount, as: Int64.self)
    }

    /// Whether it ends by itself, at a time or with its holder.
    @inlinable
    package var hasDeadline: Bool { timeAndKey & Record.expiryBit != 0 }

    @inlinable
    var keyStart: Int {
        let flag = timeAndKey & Record.expiryBit
        return Record.headerByteCount + Int(flag >> 10 | flag >> 9)
    }

    /// The key, for as long as the record lives.
    @inlinable
    package var key: Bytes { Bytes(start: address + keyStart, count: keyByteCount) }

    @inlinable
    var keyByteCount: Int { Int(timeAndKey & Record.keyLengthMask) }

    /// The value, for as long as the record lives; nil for a delete.
    @inlinable
    package var value: Bytes? {
        let length = address.load(fromByteOffset: 36, as: UInt32.self)
        guard length != Record.deletedBit else { return nil }
        return Bytes(start: address + (keyStart + keyByteCount), count: Int(length))
    }

    /// Bytes of key and value.
    @inlinable
    package var byteCount: Int { keyByteCount + (value?.count ?? 0) }
}
