import CLinux
import StatePlatform

/// One version of one entry, in one allocation: 56 bytes of fields, the key, the value.
///
/// ```
///  0 older      address of the version that this one supersedes, while this one is not durable
///  8 revision   24 version       40 ordinal (24 bits), operation (8), owner
/// 16 created    32 time (48 bits), flags (5), key length (11)
/// 48 cause, value length (all ones: deleted)
/// 56 time of expiry, if there is one (8); key bytes, value bytes
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

    @usableFromInline static let headerByteCount = 56
    @usableFromInline static let deletedBit = UInt32.max

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

        /// The stored fields of a version, with the number of its cause.
        init(_ change: borrowing StoredChange, cause: UInt32) {
            self.init(
                revision: change.revision,
                created: change.created,
                version: change.version,
                time: change.time,
                ordinal: change.ordinal,
                owner: change.owner,
                cause: cause,
                expires: change.expires
            )
        }
    }

    /// Allocates a version; a nil `value` is a delete.
    ///
    /// - Complexity: O(*n*) to copy key and value.
    package static func make(
        _ fields: Fields,
        key: Bytes,
        value: Bytes?,
        appending suffix: Bytes? = nil
    ) -> Record {
        var none = RecordPool()
        return make(fields, key: key, value: value, appending: suffix, in: &none)
    }

    /// The same with memory of `pool`, if it has some.
    static func make(
        _ fields: Fields,
        key: Bytes,
        value: Bytes?,
        appending suffix: Bytes? = nil,
        in pool: inout RecordPool
    ) -> Record {
        let valueByteCount = (value?.count ?? 0) + (suffix?.count ?? 0)
        let keyStart = headerByteCount + (fields.expires == nil ? 0 : deadlineByteCount)
        let size = keyStart + key.count + valueByteCount
        guard let address = pool.take(size) ?? malloc(RecordPool.roomByteCount(size)) else {
            noMemory(for: size)
        }
        clinux_note_allocation(address)
        let record = Record(address: address)
        address.storeBytes(of: 0, as: UInt.self)
        address.storeBytes(of: fields.revision, toByteOffset: 8, as: Int64.self)
        address.storeBytes(of: fields.created, toByteOffset: 16, as: Int64.self)
        address.storeBytes(of: fields.version, toByteOffset: 24, as: Int64.self)
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
        address.storeBytes(of: timeAndKey, toByteOffset: 32, as: UInt64.self)
        let operation = UInt32(fields.operation.rawValue) << ordinalBits
        let ordinal = UInt32(truncatingIfNeeded: fields.ordinal) & ordinalMask | operation
        address.storeBytes(of: ordinal, toByteOffset: 40, as: UInt32.self)
        address.storeBytes(of: fields.owner, toByteOffset: 44, as: UInt32.self)
        address.storeBytes(of: fields.cause, toByteOffset: 48, as: UInt32.self)
        let length = value == nil ? deletedBit : UInt32(valueByteCount)
        address.storeBytes(of: length, toByteOffset: 52, as: UInt32.self)
        if let base = key.baseAddress { memcpy(address + keyStart, base, key.count) }
        var end = keyStart + key.count
        if let value, let base = value.baseAddress {
            memcpy(address + end, base, value.count)
            end += value.count
        }
        if let suffix, let base = suffix.baseAddress {
            memcpy(address + end, base, suffix.count)
        }
        return record
    }

    package func deallocate() { StatePlatform.free(address) }

    func deallocate(into pool: inout RecordPool) {
        pool.give(address, keyStart + byteCount)
    }

    /// The version that this one supersedes; nil once this one is durable, and for the first
    /// version.
    @inlinable
    package var older: Record? {
        get { UnsafeMutableRawPointer(bitPattern: address.load(as: UInt.self)).map(Record.init) }
        nonmutating set {
            address.storeBytes(
                of: newValue.map { UInt(bitPattern: $0.address) } ?? 0,
                as: UInt.self
            )
        }
    }

    /// The commit that made this version.
    @inlinable
    package var revision: Int64 { address.load(fromByteOffset: 8, as: Int64.self) }

    /// The commit that created the entry.
    @inlinable
    package var created: Int64 { address.load(fromByteOffset: 16, as: Int64.self) }

    /// How many times the entry was set since it was created.
    @inlinable
    package var version: Int64 { address.load(fromByteOffset: 24, as: Int64.self) }

    /// Wall time in milliseconds since 1970.
    @inlinable
    package var time: Int64 { Int64(address.load(fromByteOffset: 32, as: UInt64.self) >> 16) }

    /// The position of this change in its commit.
    @inlinable
    package var ordinal: Int32 {
        get {
            let word = address.load(fromByteOffset: 40, as: UInt32.self)
            return Int32(truncatingIfNeeded: word & Record.ordinalMask)
        }
        nonmutating set {
            let word = address.load(fromByteOffset: 40, as: UInt32.self) & ~Record.ordinalMask
            let ordinal = UInt32(truncatingIfNeeded: newValue) & Record.ordinalMask
            address.storeBytes(of: word | ordinal, toByteOffset: 40, as: UInt32.self)
        }
    }

    /// The uid that created the entry.
    @inlinable
    package var owner: UInt32 { address.load(fromByteOffset: 44, as: UInt32.self) }

    /// The number in the ``CauseTable`` of its writer.
    @inlinable
    package var cause: UInt32 { address.load(fromByteOffset: 48, as: UInt32.self) }

    /// Whether this version is a delete.
    @inlinable
    package var isDeleted: Bool {
        address.load(fromByteOffset: 52, as: UInt32.self) == Record.deletedBit
    }

    @inlinable
    var timeAndKey: UInt64 { address.load(fromByteOffset: 32, as: UInt64.self) }

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

    /// When it expires, in milliseconds of CLOCK_BOOTTIME; valid once ``Deadlines`` has the record.
    var deadline: Int64 {
        get { address.load(fromByteOffset: Record.headerByteCount + 8, as: Int64.self) }
        nonmutating set {
            address.storeBytes(
                of: newValue,
                toByteOffset: Record.headerByteCount + 8,
                as: Int64.self
            )
        }
    }

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
        let length = address.load(fromByteOffset: 52, as: UInt32.self)
        guard length != Record.deletedBit else { return nil }
        return Bytes(start: address + (keyStart + keyByteCount), count: Int(length))
    }

    /// Bytes of key and value.
    @inlinable
    package var byteCount: Int { keyByteCount + (value?.count ?? 0) }
}

/// Ends the process: acknowledged writes are stored, and nothing else can be served.
func noMemory(for byteCount: Int) -> Never {
    fatalError(
        "out of memory: \(byteCount) bytes cannot be allocated; "
            + "raise the limit (ulimit -v, memory.max) or store less"
    )
}
