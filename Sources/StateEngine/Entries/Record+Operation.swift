/// How a commit changed an entry, for those who are notified of more than the result.
///
/// Memory only: storage keeps the result.
package enum ChangeOperation: UInt8, Sendable {
    /// Set, deleted, or given another deadline, as the version itself shows.
    case plain
    /// Set with a time that the writer named.
    case timedSet
    /// A number was added to an integer.
    case add
    /// A number was added to a floating-point number.
    case addFloat
    /// Bytes were appended.
    case append
    /// A part was overwritten.
    case setRange
    /// Deleted, because it has another name now.
    case renameFrom
    /// Set to what another key had, which is deleted.
    case renameTo
    /// Set to what another key has.
    case copyTo
    /// Set from a dump.
    case restore
}

extension Record {
    /// How the commit changed the entry.
    package var operation: ChangeOperation {
        ChangeOperation(rawValue: UInt8(word >> Record.ordinalBits & 0xF)) ?? .plain
    }
}
