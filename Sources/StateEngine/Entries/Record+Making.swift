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
