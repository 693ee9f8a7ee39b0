/// A condition on a key, without which a mutation fails.
package enum Condition {
    /// No entry.
    case isAbsent
    /// An entry.
    case isPresent
    /// The entry was last modified at this revision; 0: no entry.
    case revision(Int64)
    /// The entry has exactly this value.
    case value(Bytes)
}
