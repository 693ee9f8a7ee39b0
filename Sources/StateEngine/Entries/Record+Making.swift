import StatePlatform

/// Versions that are not written by a command, and the memory of all.
extension Record {
    /// Allocates a version, with memory that is of no pool.
    package static func make(
        _ fields: Fields,
        key: Bytes,
        value: Bytes?,
        appending suffix: Bytes? = nil
    ) -> Record {
        var none = RecordPool()
        return make(fields, key: key, value: value, appending: suffix, in: &none)
    }

    package func deallocate() { StatePlatform.free(address - front) }

    /// Replaces how the entry was counted; only while its transaction is open.
    ///
    /// - Returns: False, and changes nothing, if the version has no room for such numbers.
    package func recount(created: Int64, version: Int64) -> Bool {
        if word & Record.wideBit != 0 {
            address.storeBytes(of: created, toByteOffset: -24, as: Int64.self)
            address.storeBytes(of: version, toByteOffset: -16, as: Int64.self)
            return true
        }
        guard let age = UInt32(exactly: revision &- created), let count = UInt32(exactly: version)
        else { return false }
        address.storeBytes(of: age, toByteOffset: 16, as: UInt32.self)
        address.storeBytes(of: count, toByteOffset: 20, as: UInt32.self)
        return true
    }

    /// The memory that it takes, in bytes, without that of the tree.
    package var footprint: Int { RecordPool.roomByteCount(memoryByteCount) + 8 }
}

extension Record.Fields {
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

/// Ends the process: acknowledged writes are stored, and nothing else can be served.
func noMemory(for byteCount: Int) -> Never {
    fatalError(
        "out of memory: \(byteCount) bytes cannot be allocated; "
            + "raise the limit (ulimit -v, memory.max) or store less"
    )
}
