import CLinux
import StateEngine

/// Ends what would run again for ever, because storage refuses what was read as old but tells of nothing newer.
struct StalePatience {
    private static let nanoseconds: Int64 = 5_000_000_000
    private var reads: [Revision] = []
    private var end: Int64 = 0

    /// - Throws: ``StateError/Code/conflict``, naming `key`, where nothing else than these was read for 5 seconds.
    mutating func check(_ reads: [Revision], of key: Key) throws(StateError) {
        let now = clinux_monotonic_nanoseconds()
        if reads != self.reads {
            self.reads = reads
            end = now + Self.nanoseconds
        }
        guard now > end else { return }
        throw StateError(
            .conflict,
            "key '\(key)': what was read of it is refused as old, and nothing newer was told for 5 s"
        )
    }
}
