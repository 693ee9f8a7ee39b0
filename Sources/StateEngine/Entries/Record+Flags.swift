/// How a version reaches storage.
extension Record {
    /// Whether no storage keeps it.
    @inlinable
    package var isVolatile: Bool { timeAndKey & Record.volatileBit != 0 }

    /// Whether only its deadline differs from the version before; storage does not keep this.
    @inlinable
    package var isRenewal: Bool { timeAndKey & Record.renewalBit != 0 }

    /// When it expires, in milliseconds of CLOCK_BOOTTIME; nil if it does not expire.
    var knownDeadline: Int64? { hasDeadline ? deadline : nil }

    /// Whether its rule lets storage have it later than readers.
    @inlinable
    package var isDeferrable: Bool { timeAndKey & Record.deferrableBit != 0 }

    /// Whether its change was published before it was durable: then nothing undoes it.
    @inlinable
    package var isPublished: Bool { timeAndKey & Record.publishedBit != 0 }

    func markPublished() {
        address.storeBytes(of: timeAndKey | Record.publishedBit, toByteOffset: 32, as: UInt64.self)
    }
}
