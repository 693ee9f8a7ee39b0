/// How a version reaches storage, and the versions before it.
extension Record {
    /// The operation follows in the word of ``ordinal``: a transaction has fewer changes than 2^24.
    @usableFromInline static let ordinalBits: UInt32 = 24
    @usableFromInline static let ordinalMask: UInt32 = 1 << ordinalBits - 1

    /// The most changes of a transaction.
    static let changeLimit = Int(ordinalMask)

    /// Whether only its deadline differs from the version before; storage does not keep this.
    @inlinable
    package var isRenewal: Bool { timeAndKey & Record.renewalBit != 0 }

    /// When it expires, in milliseconds of CLOCK_BOOTTIME; nil if it does not expire.
    var knownDeadline: Int64? { hasDeadline && !isHeld ? deadline : nil }

    /// Whether it has expired at `now`, in milliseconds of CLOCK_BOOTTIME; nil for one without a
    /// deadline.
    @inline(__always)
    func isDue(at now: Int64?) -> Bool { now.map { deadline <= $0 } ?? false }

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

    /// Its index among the deadlines or the keys of its holder, negative if it is not there; only
    /// if it has a deadline.
    var deadlineSlot: Int {
        get { address.load(fromByteOffset: Record.headerByteCount + 16, as: Int.self) }
        nonmutating set {
            address.storeBytes(
                of: newValue,
                toByteOffset: Record.headerByteCount + 16,
                as: Int.self
            )
        }
    }

    /// Whether its rule lets storage have it later than readers.
    @inlinable
    package var isDeferrable: Bool { timeAndKey & Record.deferrableBit != 0 }

    /// Whether its change was published before it was durable: then nothing undoes it.
    @inlinable
    package var isPublished: Bool { timeAndKey & Record.publishedBit != 0 }

    func markPublished() {
        address.storeBytes(of: timeAndKey | Record.publishedBit, toByteOffset: 8, as: UInt64.self)
    }

    /// The newest version of the chain whose revision is at most `revision`.
    @inlinable
    package func version(at revision: Int64) -> Record? {
        var record = self
        while record.revision > revision {
            guard let older = record.older else { return nil }
            record = older
        }
        return record
    }
}
